//! Text search in the messages, replies and commands of a log.

use std::path::Path;

use protocol::event::EventKind;
use serde_json::Value;

use super::bounded::{BoundedLines, event};

/// Types of the events that are searched.
const TYPES: &[&str] = &["user_message", "assistant_message", "tool_call_started", "sub_agent_spawned"];

/// Maximum depth to which the JSON arguments of a call are searched.
const DEEPEST: usize = 32;

/// The text to search for. Upper and lower case count as the same unless the text has capital letters.
#[derive(Debug)]
pub(crate) struct Needle {
    text: String,
    is_exact: bool,
}

impl Needle {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), is_exact: text.chars().any(char::is_uppercase) }
    }

    /// Returns the first line that contains the text in a message, reply or command; `None` if the log has none.
    pub(crate) fn line_in(&self, log: &Path) -> Option<String> {
        let mut lines = BoundedLines::open(log).ok()?;
        while let Some(line) = lines.next().ok()? {
            let found = event(line, TYPES).and_then(|event| self.line_of(&event.kind));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn line_of(&self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::UserMessage { text, .. } => self.find(text),
            EventKind::SubAgentSpawned(spawned) => self.find(&spawned.task),
            EventKind::ToolCallStarted { input, .. } => {
                self.find_in(&serde_json::from_str(input.get()).ok()?, DEEPEST)
            }
            EventKind::AssistantMessage(message) => message.content.iter().find_map(|block| {
                let block: Value = serde_json::from_str(block.get()).ok()?;
                // Thinking is not searched, and calls have their own events.
                let text =
                    block.get("text").filter(|_| block.get("type").is_some_and(|kind| kind == "text"))?;
                self.find(text.as_str()?)
            }),
            _ => None,
        }
    }

    fn find_in(&self, value: &Value, deepest: usize) -> Option<String> {
        let deeper = deepest.checked_sub(1)?;
        match value {
            Value::String(text) => self.find(text),
            Value::Array(values) => values.iter().find_map(|value| self.find_in(value, deeper)),
            Value::Object(members) => members.values().find_map(|value| self.find_in(value, deeper)),
            _ => None,
        }
    }

    fn find(&self, text: &str) -> Option<String> {
        let has = |line: &&str| {
            if self.is_exact { line.contains(&self.text) } else { line.to_lowercase().contains(&self.text) }
        };
        text.lines().find(has).map(|line| line.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn log(events: &[(&str, Value)]) -> (tempfile::TempDir, std::path::PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.jsonl");
        let line = |(kind, data): &(&str, Value)| {
            let head = json!({"v": 6, "id": 1, "time_ms": 1, "session": "s", "agent": "1", "observed_by": "supervisor"});
            let mut event = head.as_object().unwrap().clone();
            event.insert("type".to_owned(), json!(kind));
            event.insert("data".to_owned(), data.clone());
            format!("{}\n", Value::Object(event))
        };
        fs::write(&path, events.iter().map(line).collect::<String>()).unwrap();
        (place, path)
    }

    #[test]
    fn messages_replies_and_commands_are_searched_and_capitals_count_where_there_are_some() {
        let usage = json!({"input": 1, "cache_creation": 0, "cache_read": 0, "output": 1});
        let blocks = json!([{"type": "thinking", "thinking": "secret thought"}, {"type": "text", "text": "a\n  The Reply \nb"}]);
        let reply = json!({"message_id": "i", "model": "m", "content": blocks, "stop_reason": "end_turn", "usage": usage});
        let call = json!({"call": 1, "tool_use": "t", "name": "shell_exec", "input": {"command": "make\ncargo test"}});
        let (_place, log) = log(&[
            ("user_message", json!({"text": "first\nFix it"})),
            ("assistant_message", reply),
            ("tool_call_started", call),
            ("notice", json!({"code": "x", "message": "a notice"})),
        ]);
        let found = |text: &str| Needle::new(text).line_in(&log);
        assert_eq!(found("fix").as_deref(), Some("Fix it"));
        assert_eq!(found("Fix").as_deref(), Some("Fix it"));
        assert_eq!(found("FIX"), None);
        assert_eq!(found("reply").as_deref(), Some("The Reply"));
        assert_eq!(found("cargo").as_deref(), Some("cargo test"));
        assert_eq!((found("thought"), found("a notice")), (None, None));
    }
}
