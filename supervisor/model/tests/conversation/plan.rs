//! A conversation of thirty requests. It has thinking, parallel calls, failed and invalid calls, text between calls, a
//! pause, a cut, retries, an interruption, and a turn with more blocks than a provider searches for a cached prefix.

use std::fmt::Write;

use model::provider::anthropic::ApiVersion;
use model::provider::{ProviderKind, RequestOptions};
use model::replay::{Block, Usage, chat, responses, sse};
use serde_json::{Value, json};

use crate::driver::{Answer, Conversation};
use crate::writer::Writer;

/// Index of the turn with more blocks than a provider searches for a cached prefix.
pub(crate) const LONG_TURN: usize = 11;

pub(crate) async fn play(version: ApiVersion, options: RequestOptions) -> Conversation {
    let answers = answers(ProviderKind::Anthropic);
    let mut conversation = Conversation::speaking(version, answers, options);
    talk(&mut conversation).await;
    assert_eq!(conversation.unused(), 0, "every answer was asked for");
    conversation
}

/// Plays the conversation with another API. It ends with a picture.
pub(crate) async fn play_as(kind: ProviderKind, options: RequestOptions) -> Conversation {
    let answers = answers(kind).into_iter().chain([Answer::Stream(end_of_turn(kind))]);
    let mut conversation = Conversation::written(Writer::new(kind), answers, options);
    talk(&mut conversation).await;
    let picture = picture::read(&include_bytes!("../../../../fixtures/images/shapes.gif")[..]);
    conversation.shows("And this?", vec![picture.expect("a picture")]).await;
    assert_eq!(conversation.unused(), 0, "every answer was asked for");
    conversation
}

async fn talk(conversation: &mut Conversation) {
    conversation.context(&guide()).await;
    conversation.user("Find out why the totals are wrong, and mend it.").await;
    conversation.user("And now the same for the report. 🦀").await;
    conversation.user("Go on where you were interrupted.").await;
}

/// Returns project instructions of an average length.
fn guide() -> String {
    let rule = |number| {
        format!("{number}. Keep module {number} small, test it, and say in its documentation what it is for.")
    };
    (0..90).map(rule).collect::<Vec<_>>().join("\n")
}

fn answers(kind: ProviderKind) -> Vec<Answer> {
    let mut answers = Vec::new();
    for turn in 0..28 {
        let mut blocks = blocks(turn);
        // The vendor's own chat completions have no reasoning, and other servers have other fields for it.
        blocks.retain(|block| kind != ProviderKind::OpenAi || !matches!(block, Block::Thinking { .. }));
        let reply = reply(kind, &blocks, "tool_use");
        match turn {
            4 => answers.push(Answer::Overloaded),
            8 => answers.push(Answer::Cut(reply.clone(), reply.len() / 2)),
            14 => answers.push(Answer::Stream(end_of_turn(kind))),
            17 if kind == ProviderKind::Anthropic => answers.push(Answer::Stream(paused())),
            20 => answers.push(Answer::Stream(cut_at_its_limit(kind))),
            24 => answers.push(Answer::Interrupted(reply.clone(), reply.len() / 3)),
            _ => {}
        }
        answers.push(Answer::Stream(reply));
    }
    answers.push(Answer::Stream(end_of_turn(kind)));
    answers
}

fn reply(kind: ProviderKind, blocks: &[Block], stop_reason: &str) -> String {
    let usage = Usage::default();
    match kind {
        ProviderKind::Anthropic => sse::message(blocks, stop_reason, usage),
        ProviderKind::OpenAi => {
            let finish_reason = match stop_reason {
                "tool_use" => "tool_calls",
                "max_tokens" => "length",
                _ => "stop",
            };
            chat::message(blocks, finish_reason, usage)
        }
        ProviderKind::Responses => responses::message(blocks, stop_reason, usage),
    }
}

fn blocks(turn: usize) -> Vec<Block> {
    let thought =
        if turn.is_multiple_of(3) { "" } else { "What did the last result say? I look at the next file." };
    let calls = if turn == LONG_TURN { 25 } else { 1 + turn % 3 };
    let mut blocks = vec![Block::thinking(thought, format!("c2lnbmF0dXJl{turn}=="))];
    if turn.is_multiple_of(2) {
        blocks.push(Block::text(format!("Step {turn}: I look at {calls} of them.")));
    }
    blocks.extend((0..calls).map(|call| self::call(turn, call)));
    blocks
}

fn call(turn: usize, call: usize) -> Block {
    let id = format!("toolu_{turn}_{call}");
    let read = |path: String| json!({ "path": path }).to_string();
    match (turn + call) % 8 {
        1 => Block::tool_use(id, "read_file", read(format!("missing_{turn}.rs"))),
        3 => Block::tool_use(id, "shell_exec", r#"{"command": "cargo test -- --fail"}"#),
        5 => Block::tool_use(
            id,
            "shell_exec",
            r#"{"command":"printf '\u001b[31mred\u0007 \\x80 äöü'","access":"read"}"#,
        ),
        6 if call == 0 => Block::tool_use(id, "no_such_tool", "{}"),
        7 if call == 0 => Block::tool_use(id, "read_file", r#"{"path": "cut"#),
        _ => Block::tool_use(id, "read_file", read(format!("src/part_{turn}_{call}.rs"))),
    }
}

fn end_of_turn(kind: ProviderKind) -> String {
    reply(kind, &[Block::text("That is done; the tests pass.")], "end_turn")
}

/// Returns a reply that the provider paused. A search by the provider's own tool was not complete within one reply.
fn paused() -> String {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "totals"}});
    let found = json!({"type": "web_search_result", "url": "https://example.org/", "title": "Totals", "encrypted_content": "eA=="});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]});
    stream_of(&[search, result], "pause_turn")
}

/// Returns a stream in which the start event of each block has the whole block.
fn stream_of(blocks: &[Value], stop_reason: &str) -> String {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []});
    let mut text = sse::event("message_start", &json!({ "message": message }));
    for (index, block) in blocks.iter().enumerate() {
        for (kind, rest) in [
            ("content_block_start", json!({"index": index, "content_block": block})),
            ("content_block_stop", json!({"index": index})),
        ] {
            let _ = write!(text, "{}", sse::event(kind, &rest));
        }
    }
    text += &sse::event(
        "message_delta",
        &json!({"delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 9}}),
    );
    text + &sse::event("message_stop", &json!({}))
}

fn cut_at_its_limit(kind: ProviderKind) -> String {
    let blocks = [
        Block::text("I write all of it anew."),
        Block::tool_use("toolu_cut", "write_file", r#"{"path": "a"#),
    ];
    reply(kind, &blocks, "max_tokens")
}
