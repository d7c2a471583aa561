//! One-line summaries of tool calls, for the terminal UI and for `exec`: `edit src/app.py +3 -1`, `run cargo test`.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::text::{Columns, SafeText, Wrap, wrap};

/// Verb of a shell command. Only commands can have several lines.
const RUN: &str = "run";

/// Verb of a call of an MCP server's tool.
const CALL: &str = "call";

/// Separator between the name of an MCP server and the name of a tool. Names of servers do not contain it.
const OF_SERVER: &str = "__";

/// Maximum number of characters of an MCP call's arguments in a summary.
const ARGUMENTS: usize = 60;

/// Summary of a tool call. Its texts come from the language model and must be sanitised before display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSummary {
    verb: String,
    object: String,
    stat: String,
}

impl ToolSummary {
    pub fn new(name: &str, input: &str) -> Self {
        let input: Value = serde_json::from_str(input).unwrap_or(Value::Null);
        let stat = match name {
            "edit_file" => edited(&input),
            "write_file" => written(&input),
            _ => String::new(),
        };
        Self { verb: verb(name).to_owned(), object: object(name, &input), stat }
    }

    pub fn text(&self) -> String {
        self.joined(&self.object)
    }

    /// Returns the summary on one line; of a command with several lines, only the first.
    pub fn one_line(&self) -> String {
        let lines = self.object.lines().count();
        match self.object.lines().find(|line| !line.trim().is_empty()) {
            Some(first) if lines > 1 && self.verb == RUN => {
                self.joined(&format!("{first} … ({lines} lines)"))
            }
            _ => self.text(),
        }
    }

    /// Returns the summary on one line; of a command with several lines, nothing but the verb.
    pub(crate) fn head(&self) -> String {
        if self.verb == RUN && self.object.contains('\n') { self.verb.clone() } else { self.text() }
    }

    /// Returns the [`head`](Self::head) with `stat`, such as `+3 -1`, instead of its line counts.
    pub(crate) fn head_with(&self, stat: &str) -> String {
        Self { stat: stat.to_owned(), ..self.clone() }.head()
    }

    pub(crate) fn verb(&self) -> &str {
        &self.verb
    }

    pub(crate) fn object(&self) -> &str {
        &self.object
    }

    fn joined(&self, object: &str) -> String {
        let words = [self.verb.as_str(), object, &self.stat];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// Sanitises a text and cuts it to one line of at most `columns` columns.
pub fn cut(untrusted: &str, columns: usize) -> String {
    let text = SafeText::line(untrusted);
    let text = text.as_str();
    let mut rows = Vec::new();
    wrap(text, 0, Columns::all(columns.max(2)), Wrap::Anywhere, &mut rows);
    if rows.len() < 2 {
        return text.to_owned();
    }
    rows.clear();
    wrap(text, 0, Columns::all(columns.saturating_sub(1).max(2)), Wrap::Anywhere, &mut rows);
    let end = rows.first().map_or(0, |row| row.end);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Returns the verb for a tool; for an unknown tool, the tool's name.
fn verb(name: &str) -> &str {
    match name {
        "shell_exec" => RUN,
        "read_file" => "read",
        "write_file" => "write",
        "edit_file" => "edit",
        "list_directory" => "list",
        "search_files" => "search",
        "spawn_agent" => "delegate",
        "fetch_url" => "fetch",
        // A tool of an MCP server.
        "call_tool" => CALL,
        _ if of_server(name).is_some() => CALL,
        _ => name,
    }
}

/// Splits `SERVER__TOOL`, the name of an MCP server's tool, into server and tool; `None` for the name of another tool.
fn of_server(name: &str) -> Option<(&str, &str)> {
    name.split_once(OF_SERVER).filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

pub(crate) fn text<'a>(input: &'a Value, key: &str) -> Option<&'a str> {
    input.get(key).and_then(Value::as_str)
}

/// Returns the object of a call: a path, a pattern or a command.
fn object(name: &str, input: &Value) -> String {
    let of = |key| text(input, key).unwrap_or_default().to_owned();
    match name {
        "shell_exec" => {
            let access = text(input, "access").map(|access| format!("({access}) ")).unwrap_or_default();
            let is_networked = input.get("network").and_then(Value::as_bool) == Some(true);
            let net = if is_networked { "(network) " } else { "" };
            format!("{access}{net}{}", of("command").trim_end())
        }
        "search_files" => match text(input, "path") {
            Some(path) => format!("{} in {path}", of("pattern")),
            None => of("pattern"),
        },
        "read_file" | "write_file" | "edit_file" | "list_directory" => of("path"),
        "fetch_url" => of("url"),
        "spawn_agent" => first_line(&of("task")).to_owned(),
        "call_tool" => called(&of("name"), input.get("arguments")),
        _ if of_server(name).is_some() => called(name, Some(input)),
        _ => String::new(),
    }
}

/// Returns a summary of an MCP call, such as `docs search (text: "blank lines")`.
fn called(name: &str, arguments: Option<&Value>) -> String {
    let tool = of_server(name).map_or_else(|| name.to_owned(), |(server, tool)| format!("{server} {tool}"));
    let arguments = arguments.and_then(Value::as_object).filter(|arguments| !arguments.is_empty());
    let Some(arguments) = arguments else { return tool };
    let all: Vec<_> = arguments.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let all = all.join(", ");
    let end = all.char_indices().nth(ARGUMENTS);
    format!("{tool} ({})", end.map_or_else(|| all.clone(), |(end, _)| format!("{}…", &all[..end])))
}

/// Returns the old and new strings of an edit of a file, in order.
pub(crate) fn edits(input: &Value) -> Vec<(String, String)> {
    let pair = |edit: &Value| {
        Some((text(edit, "old_string")?.to_owned(), text(edit, "new_string").unwrap_or_default().to_owned()))
    };
    let more = input.get("edits").and_then(Value::as_array).into_iter().flatten();
    pair(input).into_iter().chain(more.filter_map(pair)).collect()
}

fn edited(input: &Value) -> String {
    let count = |tag| {
        let of_one = |(old, new): &(String, String)| {
            TextDiff::from_lines(old, new).iter_all_changes().filter(|change| change.tag() == tag).count()
        };
        edits(input).iter().map(of_one).sum::<usize>()
    };
    let signed = |sign, count| (count > 0).then(|| format!("{sign}{count}"));
    let (added, removed) = (signed('+', count(ChangeTag::Insert)), signed('-', count(ChangeTag::Delete)));
    added.into_iter().chain(removed).collect::<Vec<_>>().join(" ")
}

/// Returns the size of a written file, such as `(3 lines)`; not of added lines, since the old content is unknown.
fn written(input: &Value) -> String {
    match text(input, "content").map(|content| content.lines().count()) {
        Some(1) => "(1 line)".to_owned(),
        Some(lines) => format!("({lines} lines)"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(name: &str, input: &Value) -> String {
        ToolSummary::new(name, &input.to_string()).one_line()
    }

    #[test]
    fn each_tool_is_a_verb_and_its_object() {
        let edits = json!({"path": "src/app.py", "edits": [
            {"old_string": "a\n", "new_string": "b\nc\n"}, {"old_string": "", "new_string": "d\n"}]});
        let two_lines = json!({"command": "cd src\ncargo test\n", "access": "read", "network": true});
        let cases = [
            ("edit_file", edits, "edit src/app.py +3 -1"),
            ("edit_file", json!({"path": "x", "old_string": "a"}), "edit x -1"),
            ("write_file", json!({"path": "x", "content": "1\n2\n"}), "write x (2 lines)"),
            ("read_file", json!({"path": "src/parse.rs", "offset": 3}), "read src/parse.rs"),
            ("list_directory", json!({"path": "src"}), "list src"),
            ("search_files", json!({"pattern": "fn", "path": "src"}), "search fn in src"),
            ("search_files", json!({"pattern": "fn"}), "search fn"),
            ("shell_exec", json!({"command": "cargo test"}), "run cargo test"),
            ("shell_exec", two_lines, "run (read) (network) cd src … (2 lines)"),
            (
                "docs__find_all",
                json!({"text": "a\nb", "most": 3}),
                r#"call docs find_all (text: "a\nb", most: 3)"#,
            ),
            ("docs__read", json!({}), "call docs read"),
            ("call_tool", json!({"name": "docs__read", "arguments": {"id": 7}}), "call docs read (id: 7)"),
            ("bogus", json!({"path": "x"}), "bogus"),
            ("read_file", json!(["no", "object"]), "read"),
        ];
        for (name, input, expected) in cases {
            assert_eq!(line(name, &input), expected);
        }
        assert_eq!(ToolSummary::new("read_file", "{\"path\": ").text(), "read");
        let long = line("docs__read", &json!({"text": "word ".repeat(99)}));
        assert!(long.ends_with(" wor…)") && long.chars().count() < 90, "{long}");
    }

    #[test]
    fn a_line_fits_and_its_escapes_show() {
        assert_eq!(cut("edit a\u{1b}[2J\nb", 80), r"edit a\u{1b}[2J\u{a}b");
        assert_eq!(cut("read 漢字漢字", 10), "read 漢字…");
        assert_eq!(cut("read 漢字", 9), "read 漢字");
        assert_eq!(cut("abc", 0), "ab…", "a width that cannot be");
    }
}
