//! Formats the first difference between two JSON values.

use std::fmt;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

const MAX_LINES: usize = 60;

const MAX_WIDTH: usize = 160;

/// Number of characters that are shown before the difference in a long line.
const BEFORE: usize = 40;

/// Number of equal lines that are shown before and after lines that differ.
const AROUND: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Path of the value that differs, such as `messages[2].content[0].text`.
    place: String,
    /// Recorded value as text; empty if the recording lacks the value.
    recorded: String,
    now: String,
}

impl Difference {
    /// Returns the first difference between two values; `None` if they are equal.
    pub(super) fn first(recorded: &Value, now: &Value) -> Option<Self> {
        let (place, recorded, now) = first("", Some(recorded), Some(now))?;
        let place = place.strip_prefix('.').unwrap_or(&place).to_owned();
        Some(Self { place, recorded: readable(recorded), now: readable(now) })
    }
}

type Differing<'a> = (String, Option<&'a Value>, Option<&'a Value>);

fn first<'a>(place: &str, recorded: Option<&'a Value>, now: Option<&'a Value>) -> Option<Differing<'a>> {
    match (recorded, now) {
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => (0..ours.len().max(theirs.len()))
            .find_map(|index| first(&format!("{place}[{index}]"), ours.get(index), theirs.get(index))),
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let more = theirs.keys().filter(|key| !ours.contains_key(*key));
            ours.keys()
                .chain(more)
                .find_map(|key| first(&format!("{place}.{key}"), ours.get(key), theirs.get(key)))
        }
        (recorded, now) => (recorded != now).then(|| (place.to_owned(), recorded, now)),
    }
}

/// Returns a string as it is, and any other value as JSON.
fn readable(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  at {}", self.place)?;
        writeln!(f, "--- recorded\n+++ this run")?;
        let diff = TextDiff::from_lines(&self.recorded, &self.now);
        let mut lines = Vec::new();
        for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
            lines.extend((index > 0).then(|| "…".to_owned()));
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                lines.push(format!("{sign}{}", change.value().trim_end_matches(['\n', '\r'])));
            }
        }
        let left_out = lines.len().saturating_sub(MAX_LINES);
        lines.truncate(MAX_LINES);
        let common = common_start(&lines);
        for line in &lines {
            writeln!(f, "{}", shortened(line, common))?;
        }
        if left_out > 0 {
            writeln!(f, "… {left_out} more lines")?;
        }
        Ok(())
    }
}

fn common_start(lines: &[String]) -> usize {
    let of = |sign: char| lines.iter().find_map(move |line| line.strip_prefix(sign));
    match (of('-'), of('+')) {
        (Some(gone), Some(came)) => gone.chars().zip(came.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    }
}

/// Shortens a long line to a part around the difference.
fn shortened(line: &str, common: usize) -> String {
    let length = line.chars().count();
    if length <= MAX_WIDTH {
        return line.to_owned();
    }
    let start = common.saturating_sub(BEFORE).min(length - MAX_WIDTH);
    let sign: String = line.chars().take(1).collect();
    let shown: String = line.chars().skip(1 + start).take(MAX_WIDTH).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if 1 + start + MAX_WIDTH < length { "…" } else { "" };
    format!("{sign}{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    fn shown(recorded: &Value, now: &Value) -> String {
        Difference::first(recorded, now).map(|difference| difference.to_string()).unwrap_or_default()
    }

    #[test]
    fn equal_values_do_not_differ() {
        assert_eq!(Difference::first(&json!({"a": [1, "x"]}), &json!({"a": [1, "x"]})), None);
    }

    #[test]
    fn a_text_is_compared_line_by_line() {
        let text = |middle: &str| json!({"messages": [{}, {"content": [{"text": format!("1\n2\n3\n4\n{middle}\n6\n")}]}]});
        assert_snapshot!(shown(&text("five"), &text("fünf")), @r"
          at messages[1].content[0].text
        --- recorded
        +++ this run
         2
         3
         4
        -five
        +fünf
         6
        ");
    }

    #[test]
    fn what_is_missing_or_more_is_shown_as_json() {
        assert_snapshot!(shown(&json!({"a": [1]}), &json!({"a": [1, {"b": [true]}]})), @r#"
          at a[1]
        --- recorded
        +++ this run
        +{
        +  "b": [
        +    true
        +  ]
        +}
        "#);
        assert_snapshot!(shown(&json!({"a": 1}), &json!({})), @r"
          at a
        --- recorded
        +++ this run
        -1
        ");
    }

    #[test]
    fn a_long_line_is_shown_where_it_differs() {
        let line = |middle: &str| json!(format!("{}{middle}{}", "a".repeat(500), "b".repeat(500)));
        let text = shown(&line("X"), &line("Y"));
        assert!(text.lines().all(|line| line.chars().count() <= MAX_WIDTH + 3), "{text}");
        assert!(text.contains("aaaX") || text.contains("aX"), "{text}");
        assert!(text.contains("aY"), "{text}");
    }

    #[test]
    fn a_large_difference_has_an_end() {
        let text = shown(&json!("gone\n".repeat(500)), &json!("came\n"));
        assert!(text.ends_with("more lines\n") && text.lines().count() == MAX_LINES + 4, "{text}");
    }
}
