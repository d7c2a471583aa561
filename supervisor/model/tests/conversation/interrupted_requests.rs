//! Checks the requests that follow interruptions: by rules that all APIs have, and by those of each API.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::provider::{Message, ProviderKind, UserBlock};
use serde_json::Value;

/// Checks the messages of a request: the user's are first and last, roles alternate, and each call has its result.
pub(crate) fn check_messages(name: &str, messages: &[Arc<Message>]) {
    let is_user = |message: &Message| matches!(message, Message::User(_));
    assert!(messages.first().is_some_and(|first| is_user(first)), "{name}: the user begins");
    assert!(messages.last().is_some_and(|last| is_user(last)), "{name}: the user has the last word");
    for pair in messages.windows(2) {
        assert_ne!(is_user(&pair[0]), is_user(&pair[1]), "{name}: roles alternate");
        if let (Message::Assistant(blocks), Message::User(answers)) = (&*pair[0], &*pair[1]) {
            let blocks: Vec<Value> =
                blocks.iter().map(|block| serde_json::from_str(block.get()).expect("JSON")).collect();
            assert!(!blocks.is_empty(), "{name}: an empty reply");
            check_results(name, &blocks, answers);
        }
    }
}

fn of_type<'a>(blocks: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    blocks.iter().filter(move |block| block["type"] == kind)
}

fn check_results(name: &str, blocks: &[Value], answers: &[UserBlock]) {
    let asked: Vec<_> =
        of_type(blocks, "tool_use").map(|block| block["id"].as_str().expect("an id")).collect();
    let answered: Vec<_> = answers
        .iter()
        .filter_map(|answer| match answer {
            UserBlock::ToolResult { tool_use, content, .. } => {
                assert!(!content.is_empty(), "{name}: an empty result");
                Some(tool_use.as_str())
            }
            UserBlock::Text(_) | UserBlock::Image(_) => None,
        })
        .collect();
    assert_eq!(asked, answered, "{name}: each call has its result");
}

pub(crate) fn check_body(name: &str, kind: ProviderKind, body: &Value) {
    match kind {
        ProviderKind::Anthropic => check_content(name, list(&body["messages"])),
        ProviderKind::OpenAi => check_chat(name, list(&body["messages"])),
        ProviderKind::Responses => check_items(name, list(&body["input"])),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).expect("a list")
}

fn check_content(name: &str, messages: &[Value]) {
    for message in messages {
        let content = list(&message["content"]);
        assert!(!content.is_empty(), "{name}: a message without content");
        for text in of_type(content, "text") {
            assert_ne!(text["text"], "", "{name}: empty text");
        }
        for thinking in of_type(content, "thinking") {
            assert!(
                thinking["signature"].as_str().is_some_and(|it| !it.is_empty()),
                "{name}: unsigned: {thinking}"
            );
        }
        if message["role"] == "assistant" {
            let last = content.last().map(|last| last["type"].as_str().unwrap_or_default());
            assert!(!last.unwrap_or_default().ends_with("thinking"), "{name}: thinking is last");
        }
    }
}

/// Checks that the results of all calls in a message follow that message directly.
fn check_chat(name: &str, messages: &[Value]) {
    let mut open = BTreeSet::new();
    for message in messages {
        match message["role"].as_str().expect("a role") {
            "tool" => {
                let id = message["tool_call_id"].as_str().expect("an id");
                assert!(open.remove(id), "{name}: a result without a call: {id}");
            }
            "assistant" => {
                assert!(open.is_empty(), "{name}: calls without results: {open:?}");
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                open.extend(calls.iter().map(|call| call["id"].as_str().expect("an id").to_owned()));
                let says = message["content"].as_str().is_some_and(|text| !text.is_empty());
                assert!(says || !calls.is_empty(), "{name}: an empty reply: {message}");
            }
            _ => assert!(open.is_empty(), "{name}: calls without results: {open:?}"),
        }
    }
    assert!(open.is_empty(), "{name}: calls without results: {open:?}");
}

/// Checks that each call has its output, and that reasoning comes before the items to which it led.
fn check_items(name: &str, items: &[Value]) {
    let ids = |kind: &'static str| -> BTreeSet<_> {
        of_type(items, kind).map(|item| item["call_id"].to_string()).collect()
    };
    assert_eq!(ids("function_call"), ids("function_call_output"), "{name}: each call has its output");
    // For some models a gateway puts reasoning after the items that it led to.
    let leads_on = |item: &Value| {
        item["type"] == "reasoning"
            && item["format"].as_str().is_none_or(|format| format.starts_with("openai"))
    };
    for pair in items.windows(2).filter(|pair| leads_on(&pair[0])) {
        assert_ne!(pair[1]["role"], "user", "{name}: reasoning that led to nothing");
    }
}

pub(crate) fn said(kind: ProviderKind, body: &Value) -> Vec<String> {
    let (messages, is_part) = match kind {
        ProviderKind::Responses => (list(&body["input"]), "output_text"),
        ProviderKind::Anthropic | ProviderKind::OpenAi => (list(&body["messages"]), "text"),
    };
    let mut said = Vec::new();
    // Servers may leave the role of an item out.
    let is_models = |message: &&Value| !matches!(message["role"].as_str(), Some("user" | "tool" | "system"));
    for message in messages.iter().filter(is_models) {
        match &message["content"] {
            Value::String(text) => said.push(text.clone()),
            Value::Array(parts) => {
                let parts = parts.iter().filter(|part| part["type"] == is_part || part["type"] == "refusal");
                let text = |part: &Value| {
                    part["text"].as_str().or_else(|| part["refusal"].as_str()).unwrap_or_default().to_owned()
                };
                let parts: Vec<_> = parts.map(text).collect();
                said.push(parts.concat());
                said.extend(parts);
            }
            _ => {}
        }
    }
    said
}
