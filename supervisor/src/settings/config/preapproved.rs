//! Adds approvals to a project's table in the person's file: beginnings of commands, and tools of MCP servers. The rest
//! of the file stays the same, byte for byte.

use std::ffi::OsString;
use std::path::Path;

use boundary::policy::users_home;
use toml_edit::{Document, Item, TableLike, Value as Toml};

use super::effective::at_home;
use super::mcp::ToolGrant;
use super::parse::parse_users;
use super::taken_grants::without;
use super::user_tables::{TableError, is_head, quoted, read, replace};
use super::value::Value;

/// A list of approvals in a project's table in the person's file.
#[derive(Clone, Copy, Debug)]
struct ApprovalList {
    name: &'static str,
    /// Returns one element as TOML.
    element: fn(&[String]) -> String,
}

const PREAPPROVED: ApprovalList = ApprovalList { name: "preapproved", element: list_of_words };
const TOOLS: ApprovalList = ApprovalList { name: "tools", element: one_word };

/// Adds beginnings of commands to a project's table, except for those that the table already has.
pub fn allow_prefixes(file: &Path, project: &Path, prefixes: &[Vec<String>]) -> Result<(), TableError> {
    let text = read(file)?;
    let whole = PREAPPROVED.with(&text, file, project, prefixes).ok_or_else(|| failed(file, project))?;
    if whole == text { Ok(()) } else { replace(file, &whole) }
}

/// Adds a tool to those that run without a question in a project. Removes an approval of the tool's earlier definition.
pub fn allow_tool(file: &Path, project: &Path, grant: &ToolGrant) -> Result<(), TableError> {
    let text = read(file)?;
    let is_earlier = |name: &Path, other: &ToolGrant| {
        (&other.server, &other.tool) == (&grant.server, &grant.tool)
            && other.definition != grant.definition
            && is_of(name.to_str(), project)
    };
    let whole = without(&text, file, is_earlier)
        .and_then(|(kept, _)| TOOLS.with(&kept, file, project, &[vec![grant.to_string()]]));
    let whole = whole.ok_or_else(|| failed(file, project))?;
    if whole == text { Ok(()) } else { replace(file, &whole) }
}

fn failed(file: &Path, project: &Path) -> TableError {
    TableError::Project(project.display().to_string(), file.display().to_string())
}

impl ApprovalList {
    /// Returns the text with these elements added, except for those that the project's table already has. `None` if
    /// they cannot be added without changing anything else.
    fn with(self, text: &str, file: &Path, project: &Path, elements: &[Vec<String>]) -> Option<String> {
        let mut wanted = self.elements(text, file, project)?;
        let mut new: Vec<Vec<String>> = Vec::new();
        for words in elements {
            if !wanted.contains(words) && !new.contains(words) {
                new.push(words.clone());
            }
        }
        if new.is_empty() {
            return Some(text.to_owned());
        }
        let list = new.iter().map(|words| (self.element)(words)).collect::<Vec<_>>().join(", ");
        wanted.append(&mut new);
        wanted.sort();
        // Reads the new text. It is not written if a later session would read other elements.
        let is_as_wanted = |whole: &String| {
            let found = self.elements(whole, file, project);
            found.is_some_and(|mut found| {
                found.sort();
                found == wanted
            })
        };
        let ways = [self.in_its_list(text, project, &list), self.in_its_table(text, project, &list)];
        let ways = ways.into_iter().flatten().chain(self.in_new_table(text, project, &list));
        ways.into_iter().find(is_as_wanted)
    }

    fn key(self) -> String {
        format!("approvals.{}", self.name)
    }

    /// Returns the elements in the table of a project; `None` if the text cannot be read.
    fn elements(self, text: &str, file: &Path, project: &Path) -> Option<Vec<Vec<String>>> {
        let (_, projects) = parse_users(text, file).ok()?;
        let of_it = projects.iter().filter(|one| is_of(one.project.as_os_str().to_str(), project));
        let key = self.key();
        let values = of_it.filter_map(|one| one.layer.value(&key));
        let elements = values.flat_map(Value::elements);
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        Some(elements.map(|element| element.words.iter().map(text).collect()).collect())
    }

    /// Returns the text with elements added at the end of the project's list; `None` if the text has no such list.
    fn in_its_list(self, text: &str, project: &Path, list: &str) -> Option<String> {
        let document = Document::parse(text).ok()?;
        let projects = document.get("project")?.as_table_like()?;
        let of_it = projects.iter().filter(|(name, _)| is_of(Some(name), project));
        let mut approvals =
            of_it.filter_map(|(_, table)| table.get("approvals").and_then(Item::as_table_like));
        let array = approvals.find_map(|approvals: &dyn TableLike| approvals.get(self.name)?.as_array())?;
        let (at, added) = match array.len().checked_sub(1).and_then(|end| array.get(end)) {
            Some(element) => (Toml::span(element)?.end, format!(", {list}")),
            None => (array.span()?.start + 1, list.to_owned()),
        };
        let (before, after) = text.split_at_checked(at)?;
        Some(format!("{before}{added}{after}"))
    }

    /// Returns the text with the setting inserted below the head of the project's table of approvals, or else of the
    /// project's table. `None` if the text has neither.
    fn in_its_table(self, text: &str, project: &Path, list: &str) -> Option<String> {
        let of_approvals = |line: &str| {
            let name = head(line).strip_suffix(".approvals]");
            name.is_some_and(|name| is_head(&format!("{name}]"), project))
        };
        let of_project = |line: &str| is_head(head(line), project);
        let has_approvals = text.lines().any(of_approvals);
        let key = if has_approvals { self.name.to_owned() } else { self.key() };
        let is_there = |line: &str| if has_approvals { of_approvals(line) } else { of_project(line) };
        let (mut whole, mut is_written) = (String::new(), false);
        for line in text.split_inclusive('\n') {
            whole.push_str(line);
            if !is_written && is_there(line) {
                let end = if line.ends_with('\n') { "" } else { "\n" };
                whole.extend([end, &key, " = [", list, "]\n"]);
                is_written = true;
            }
        }
        is_written.then_some(whole)
    }

    /// Returns the text with a new table for the project at its end; `None` if the path is not UTF-8.
    fn in_new_table(self, text: &str, project: &Path, list: &str) -> Option<String> {
        let name = quoted(project.to_str()?);
        let before = text.trim_end_matches('\n');
        let apart = if before.is_empty() { "" } else { "\n\n" };
        Some(format!("{before}{apart}[project.{name}]\n{} = [{list}]\n", self.key()))
    }
}

fn is_of(name: Option<&str>, project: &Path) -> bool {
    name.is_some_and(|name| at_home(name.as_ref(), users_home().as_deref()) == project)
}

/// Returns the head of a table without a comment behind it.
fn head(line: &str) -> &str {
    let end = line.find("] #").map_or(line.len(), |at| at + 1);
    line.get(..end).unwrap_or(line).trim()
}

fn list_of_words(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

fn one_word(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const PROJECT: &str = "/home/me/a.b";

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn after(text: &str, prefixes: &[&str]) -> Result<String, TableError> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        fs::write(&file, text).unwrap();
        for prefix in prefixes {
            let done = allow_prefixes(&file, Path::new(PROJECT), &[words(prefix)]);
            if let Err(error) = done {
                assert_eq!(fs::read_to_string(&file).unwrap(), text, "nothing is changed");
                return Err(error);
            }
        }
        Ok(fs::read_to_string(&file).unwrap())
    }

    #[test]
    fn a_missing_file_gets_the_table_of_the_project() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        let list = [words("cargo test"), words("cargo fmt"), words("cargo test")];
        allow_prefixes(&file, Path::new(PROJECT), &list).unwrap();
        insta::assert_snapshot!(fs::read_to_string(&file).unwrap(), @r#"
        [project."/home/me/a.b"]
        approvals.preapproved = [["cargo", "test"], ["cargo", "fmt"]]
        "#);
    }

    #[test]
    fn the_same_beginning_twice_is_there_once_and_the_rest_stays() {
        let mine = "# mine\nmode = \"ask\"\n\n[project.\"/home/me/a.b\"] # work\nmode = \"deny\" # here\n\n[mcp.git]\ncommand = \"x\"\n";
        insta::assert_snapshot!(after(mine, &["cargo test", "make", "cargo test"]).unwrap(), @r##"
        # mine
        mode = "ask"

        [project."/home/me/a.b"] # work
        approvals.preapproved = [["cargo", "test"], ["make"]]
        mode = "deny" # here

        [mcp.git]
        command = "x"
        "##);
    }

    #[test]
    fn a_list_in_any_form_takes_another_element_and_keeps_its_comments() {
        for (text, wanted) in [
            (
                "[project.\"/home/me/a.b\"]\napprovals.preapproved = [\n  [\"make\"], # builds\n  # the tests\n  [\"cargo\", \"test\"],\n]\n",
                "[project.\"/home/me/a.b\"]\napprovals.preapproved = [\n  [\"make\"], # builds\n  # the tests\n  [\"cargo\", \"test\"], [\"git\", \"log\"],\n]\n",
            ),
            (
                "[project.\"/home/me/a.b\".approvals]\nconfirm_shell = true\npreapproved = [] # none yet\n",
                "[project.\"/home/me/a.b\".approvals]\nconfirm_shell = true\npreapproved = [[\"git\", \"log\"]] # none yet\n",
            ),
            (
                "[project.\"/home/me/a.b\".approvals]\nconfirm_shell = true # yes",
                "[project.\"/home/me/a.b\".approvals]\npreapproved = [[\"git\", \"log\"]]\nconfirm_shell = true # yes",
            ),
            (
                "project = { \"/home/me/a.b\" = { approvals = { preapproved = [[\"make\"]] } } }\n",
                "project = { \"/home/me/a.b\" = { approvals = { preapproved = [[\"make\"], [\"git\", \"log\"]] } } }\n",
            ),
            (
                "[project.\"/other\"]\napprovals.preapproved = [[\"git\", \"log\"]]\n",
                "[project.\"/other\"]\napprovals.preapproved = [[\"git\", \"log\"]]\n\n[project.\"/home/me/a.b\"]\napprovals.preapproved = [[\"git\", \"log\"]]\n",
            ),
        ] {
            assert_eq!(after(text, &["git log"]).unwrap(), wanted);
        }
    }

    #[test]
    fn a_table_in_another_form_and_a_file_with_faults_are_left_to_the_person() {
        for text in
            ["project = { \"/home/me/a.b\" = { mode = \"deny\" } }\n", "mode = \"none\"\n", "[project\n"]
        {
            let error = after(text, &["make"]).unwrap_err();
            assert!(matches!(&error, TableError::Project(..)), "{error}");
            assert!(error.to_string().contains("hint: edit "), "{error}");
        }
    }

    proptest! {
        /// Tests that any project names and words are read back unchanged, and that nothing else is added.
        #[test]
        fn no_name_and_no_word_adds_anything_else(
            name in r#"[a-z"'\\\]\[#=.~ \n\r\t\u{7f}é]{1,12}"#,
            words in vec(vec(prop_oneof![9 => "[a-z./=-]{1,8}", 1 => r#"["'\\\]\[#=, \n\u{7f}é]{1,8}"#], 1..4), 1..4),
        ) {
            let place = tempfile::tempdir().unwrap();
            let (file, project) = (place.path().join("config.toml"), Path::new("/home/me").join(name));
            let mine = "mode = \"ask\"\n\n[project.\"/other\"]\nmode = \"deny\"\n";
            fs::write(&file, mine).unwrap();
            if allow_prefixes(&file, &project, &words).is_err() {
                // The words contain one that no setting can have.
                prop_assert_eq!(fs::read_to_string(&file).unwrap(), mine);
                return Ok(());
            }
            let text = fs::read_to_string(&file).unwrap();
            prop_assert!(text.starts_with(mine.trim_end()));
            let mut wanted = words;
            wanted.sort();
            wanted.dedup();
            let mut found = PREAPPROVED.elements(&text, &file, &project).unwrap();
            found.sort();
            prop_assert_eq!(found, wanted);
            let document = Document::parse(&text).unwrap();
            prop_assert_eq!(document.as_table().len(), 2, "{}", text);
            let projects = document.get("project").and_then(Item::as_table_like).unwrap();
            prop_assert_eq!(projects.len(), 2, "{}", text);
            let added = projects.iter().find(|(name, _)| *name != "/other").unwrap().1.as_table_like().unwrap();
            prop_assert_eq!(added.len(), 1, "{}", text);
        }
    }

    #[test]
    fn a_tool_is_allowed_in_the_table_of_a_project_and_the_rest_stays() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        let (one, other) = ("0".repeat(64), "1".repeat(64));
        let allow = |tool: &str, digest: &str| {
            allow_tool(&file, Path::new("/home/me/a.b"), &ToolGrant::new("git", tool, digest))
        };
        allow("log", &one).unwrap();
        let whole = fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(whole.replace(&one, "DIGEST"), @r#"
        [project."/home/me/a.b"]
        approvals.tools = ["git/log@DIGEST"]
        "#);
        let mine = "# mine\nmode = \"ask\"\n\n[project.\"/home/me/a.b\"]\nmode = \"deny\" # here\n\n[mcp.git]\ncommand = \"x\"\n";
        fs::write(&file, mine).unwrap();
        for (tool, digest) in [("log", &one), ("show", &one), ("log", &other)] {
            allow(tool, digest).unwrap();
        }
        let whole = fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(whole.replace(&one, "ONE").replace(&other, "OTHER"), @r##"
        # mine
        mode = "ask"

        [project."/home/me/a.b"]
        approvals.tools = ["git/show@ONE", "git/log@OTHER"]
        mode = "deny" # here

        [mcp.git]
        command = "x"
        "##);
        fs::write(&file, "project = { \"/home/me/a.b\" = { mode = \"deny\" } }\n").unwrap();
        assert!(matches!(allow("log", &one), Err(TableError::Project(..))));
    }

    #[test]
    fn another_definition_replaces_the_earlier_one_in_a_list_of_any_form_and_in_this_project_alone() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        let (one, other) = ("0".repeat(64), "1".repeat(64));
        for (text, wanted) in [
            (
                "[project.\"/home/me/a.b\".approvals]\ntools = [\n  # looks\n  \"x/1@ONE\", # first\n  \"git/log@ONE\",\n] # mine\n",
                "[project.\"/home/me/a.b\".approvals]\ntools = [\n  # looks\n  \"x/1@ONE\", \"git/log@OTHER\", # first\n] # mine\n",
            ),
            (
                "[project.\"/other\"]\napprovals.tools = [\"git/log@ONE\"]\n\n[project.\"/home/me/a.b\"] # work\napprovals.tools = [\"git/log@ONE\"]\n",
                "[project.\"/other\"]\napprovals.tools = [\"git/log@ONE\"]\n\n[project.\"/home/me/a.b\"] # work\napprovals.tools = [\"git/log@OTHER\"]\n",
            ),
            (
                "project = { \"/home/me/a.b\" = { approvals = { tools = [\"git/log@ONE\"] } } }\n",
                "project = { \"/home/me/a.b\" = { approvals = { tools = [\"git/log@OTHER\"] } } }\n",
            ),
        ] {
            fs::write(&file, text.replace("ONE", &one)).unwrap();
            for _ in 0..2 {
                allow_tool(&file, Path::new(PROJECT), &ToolGrant::new("git", "log", &other)).unwrap();
                let found = fs::read_to_string(&file).unwrap();
                assert_eq!(found.replace(&one, "ONE").replace(&other, "OTHER"), wanted);
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_says_so() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("none/config.toml");
        let error = allow_prefixes(&file, Path::new(PROJECT), &[words("make")]).unwrap_err();
        assert!(matches!(&error, TableError::Write { .. }), "{error}");
        assert!(error.to_string().starts_with("cannot write "), "{error}");
    }
}
