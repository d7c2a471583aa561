//! The scripted model: its requests are parsed, and its replies are served. A reply depends only on its request.
//!
//! Therefore a repeated request gets the same reply, and an interrupted turn continues from its last call.

use std::io;
use std::time::Duration;

use serde_json::Value;

use model::replay::{Block, RecordedRequest, ReplayServer, Reply, Script, Usage, sse};

/// Number of bytes of a reply that are sent at once. A pause before each piece lets a person watch.
const CHUNK: usize = 512;
const PACE: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DemoTurn {
    /// The request has no reply of the model yet.
    First,
    /// The model's last reply made these calls, which now have results.
    After(Vec<Answered>),
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Id that the model gave the call.
    pub id: String,
    /// True if the call failed, was denied, or was not approved.
    pub is_error: bool,
}

impl DemoTurn {
    /// Parses the body of a request of the Messages API.
    pub fn of(body: &[u8]) -> Self {
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(last) = messages.iter().rposition(|message| message["role"] == "assistant") else {
            return Self::First;
        };
        let (said, after) = messages[last..].split_at(1);
        let calls = blocks(said, "tool_use").filter_map(|call| call["id"].as_str());
        let calls: Vec<_> = calls.collect();
        let result = |block: &Value| Answered {
            id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
            is_error: block["is_error"] == true,
        };
        let results = blocks(after, "tool_result").map(result);
        let results: Vec<_> = results.filter(|result| calls.contains(&result.id.as_str())).collect();
        if results.is_empty() { Self::Over } else { Self::After(results) }
    }
}

fn blocks<'a>(messages: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(move |block| block["type"] == kind)
}

pub(super) fn call(id: &str, tool: &str, input: &Value) -> Block {
    Block::tool_use(id, tool, input.to_string())
}

/// Serves a scripted model on the loopback interface.
pub fn serve(mut model: impl FnMut(&DemoTurn) -> Vec<Block> + Send + 'static) -> io::Result<ReplayServer> {
    let answer = move |_, request: &RecordedRequest| {
        let blocks = model(&DemoTurn::of(&request.body));
        let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let reason = if calls { "tool_use" } else { "end_turn" };
        let text = sse::message(&blocks, reason, Usage::default());
        Some(Reply::sse(text).chunked(CHUNK).paced(PACE))
    };
    ReplayServer::start_checked(Script::new(), Box::new(answer))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(messages: &Value) -> DemoTurn {
        DemoTurn::of(json!({"messages": messages}).to_string().as_bytes())
    }

    #[test]
    fn the_last_reply_and_its_results_decide() {
        let user = json!({"role": "user", "content": [{"type": "text", "text": "fix it"}]});
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]});
        let words = json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]});
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "is_error": true},
            {"type": "text", "text": "typed meanwhile"},
        ]});
        let after = DemoTurn::After(vec![Answered { id: "a".to_owned(), is_error: true }]);
        assert_eq!(turn(&json!([user])), DemoTurn::First);
        assert_eq!(turn(&json!([user, call, result])), after);
        assert_eq!(turn(&json!([user, call, result, words, user])), DemoTurn::Over);
        assert_eq!(turn(&json!([user, words, user])), DemoTurn::Over);
        assert_eq!(DemoTurn::of(b"no JSON"), DemoTurn::First);
    }
}
