//! What the scripted model says.

use serde_json::Value;
use supervisor::replay::{ReplayServer, Reply, Script, sse};

/// A reply with these tool calls, all in one turn; their ids are `toolu_0`, `toolu_1` …
pub fn calls(calls: &[(&str, Value)]) -> String {
    let block = |(index, (name, input)): (usize, &(&str, Value))| {
        sse::Block::tool_use(format!("toolu_{index}"), *name, input.to_string())
    };
    let blocks: Vec<_> = calls.iter().enumerate().map(block).collect();
    sse::message(&blocks, "tool_use", sse::Usage::default())
}

/// A reply with one command.
pub fn shell(command: &str) -> String {
    calls(&[("shell_exec", serde_json::json!({"command": command}))])
}

/// A reply of words, which ends for this reason.
pub fn says(text: &str, stop_reason: &str) -> String {
    sse::message(&[sse::Block::text(text)], stop_reason, sse::Usage::default())
}

/// The last reply of a model that is done.
pub fn done() -> String {
    says("Done.", "end_turn")
}

/// A model that gives these replies.
pub fn model_of(replies: impl IntoIterator<Item = String>) -> ReplayServer {
    serve(replies.into_iter().map(Reply::sse))
}

/// A model that gives these replies, with whatever the network does to them.
pub fn serve(replies: impl IntoIterator<Item = Reply>) -> ReplayServer {
    let script = replies.into_iter().fold(Script::new(), Script::push);
    ReplayServer::start(script).expect("loopback")
}
