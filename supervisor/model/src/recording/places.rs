use ipc::id::ConversationId;
use ipc::path::WirePath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Values that differ between two equal runs: paths, time, machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    pub project: WirePath,
    /// Path of the private temp directory; `None` if the agent sees the directory as `/tmp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp: Option<WirePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<WirePath>,
    pub conversation: ConversationId,
    pub date: String,
    pub platform: String,
}

impl Places {
    /// Replaces the values of this run, temp directories of commands, and durations in a request by placeholders.
    pub fn normalise(&self, body: &mut Value) {
        let names = self.names();
        visit(body, &|text| normalised(text, &names));
    }

    /// Returns the values with their placeholders, the longest value first, because one value may contain another.
    fn names(&self) -> Vec<(String, &'static str)> {
        let path = |path: &WirePath| path.as_path().to_string_lossy().into_owned();
        let mut names = vec![
            (path(&self.project), "<project>"),
            (self.conversation.as_str().to_owned(), "<session>"),
            (self.date.clone(), "<date>"),
            (self.platform.clone(), "<platform>"),
        ];
        names.extend(self.temp.as_ref().map(|temp| (path(temp), "<temp>")));
        names.extend(self.home.as_ref().map(|home| (path(home), "<home>")));
        // `/` is left out, because every path contains it.
        names.retain(|(name, _)| name.len() > 1);
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        names
    }
}

/// Changes every string in a value, but not the names of fields.
fn visit(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| visit(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn normalised(text: &str, names: &[(String, &'static str)]) -> String {
    let replaced =
        names.iter().fold(text.to_owned(), |text, (name, placeholder)| text.replace(name, placeholder));
    without_durations(&without_own_directories(&replaced))
}

/// Replaces the names of commands' temp directories by `<call>`. They consist of `r-` and sixteen hexadecimal digits.
fn without_own_directories(text: &str) -> String {
    const DIGITS: usize = 16;
    let is_own = |rest: &str| {
        let digits = rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
        digits == DIGITS && !rest[digits..].starts_with(|c: char| c.is_alphanumeric())
    };
    let mut parts = text.split("/r-");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        kept.push('/');
        kept.push_str(if is_own(rest) { "<call>" } else { "r-" });
        kept.push_str(if is_own(rest) { &rest[DIGITS..] } else { rest });
    }
    kept
}

/// Replaces durations in the output of commands and tests, such as `0.3 s`, `12.05s` and `1.5ms`, by `<time>`.
fn without_durations(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        kept.push_str(before);
        let length = match duration(number) {
            // Digits at the end of a word are not a number.
            Some(length) if !ends_in_word(&kept) => {
                kept.push_str("<time>");
                length
            }
            _ => {
                let digits = number.bytes().take_while(u8::is_ascii_digit).count();
                kept.push_str(&number[..digits]);
                digits
            }
        };
        rest = &number[length..];
    }
    kept + rest
}

/// Returns the length of a duration at the start of a text: a number, perhaps a blank, and a unit; `None` without one.
fn duration(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map(digits).filter(|count| *count > 0)?;
    let number = whole + 1 + fraction;
    let unit = &text[number..];
    let blank = usize::from(unit.starts_with(' '));
    let unit = &unit[blank..];
    let length = ["ms", "s"].iter().find(|name| unit.starts_with(**name))?.len();
    let ends = !unit[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ends.then_some(number + blank + length)
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places() -> Places {
        Places {
            project: "/home/me/p".into(),
            temp: Some("/home/me/p/tmp".into()),
            home: Some("/home/me".into()),
            conversation: ConversationId("0199-c".to_owned()),
            date: "2026-11-22".to_owned(),
            platform: "Linux 6.18 x86_64".to_owned(),
        }
    }

    #[test]
    fn places_have_placeholders_and_the_longest_wins() {
        let mut body = json!({
            "/home/me": [{"text": "/home/me/p/tmp/x /home/me/p/a /home/me/.x"}, 3, null],
            "date": "date: 2026-11-22\nplatform: Linux 6.18 x86_64 in 0199-c",
        });
        places().normalise(&mut body);
        assert_eq!(
            body,
            json!({
                "/home/me": [{"text": "<temp>/x <project>/a <home>/.x"}, 3, null],
                "date": "date: <date>\nplatform: <platform> in <session>",
            })
        );
    }

    #[test]
    fn the_directory_of_a_reading_command_has_a_placeholder() {
        let text = "/tmp/r-0123456789abcdef/x /tmp/r-0123456789abcdef0 /r-x /r-0123456789ABCDEF";
        let expected = "/tmp/<call>/x /tmp/r-0123456789abcdef0 /r-x /r-0123456789ABCDEF";
        assert_eq!(without_own_directories(text), expected);
    }

    #[test]
    fn only_durations_are_taken_for_durations() {
        for (text, expected) in [
            ("[exit code 0, 0.1 s]", "[exit code 0, <time>]"),
            ("ok. 3 passed; finished in 0.02s", "ok. 3 passed; finished in <time>"),
            ("1.25ms;10.5 s", "<time>;<time>"),
            ("v1.2 so 1.2 sum 3 s 4s x1.5s 1.2.3s", "v1.2 so 1.2 sum 3 s 4s x1.5s 1.2.3s"),
            ("1.", "1."),
            ("ä0.5sü", "ä0.5sü"),
        ] {
            assert_eq!(without_durations(text), expected);
        }
    }
}
