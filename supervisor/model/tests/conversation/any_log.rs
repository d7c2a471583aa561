//! Tests that the log of any provider can be sent to every provider: each request follows all rules of its vendor.

use std::sync::{Arc, LazyLock};

use gate::tools::ToolDefinition;
use ipc::id::ToolUseId;
use model::provider::{Message, ModelRequest, ProviderKind, RequestOptions, UserBlock};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::strict;
use crate::writer::Writer;

/// Ids of calls in the forms of many vendors. Some of them occur twice.
const IDS: [&str; 9] = [
    "toolu_01A",
    "functions.shell_exec:0",
    "functions.shell_exec.0",
    "functions_shell_exec_0",
    "call_0",
    "call_x__thought__aGVsbG8gd29ybGQsIHRoaXMgaXMgYSBsb25nIHNpZ25hdHVyZSBvZiBhIHRob3VnaHQ=",
    "",
    "é|fc_1",
    "a b",
];

const TEXTS: [&str; 6] = ["", " ", "\n\t ", "So.", "\u{a0}", "é"];

static WRITERS: LazyLock<[Writer; 3]> = LazyLock::new(|| ProviderKind::ALL.map(Writer::new));

fn block(kind: usize, text: &str, id: &str) -> Value {
    match kind {
        0 | 1 => json!({"type": "text", "text": text}),
        2 => json!({"type": "thinking", "thinking": text, "signature": "sig"}),
        3 => json!({"type": "thinking", "thinking": text, "field": "reasoning_content"}),
        4 => json!({"type": "redacted_thinking", "data": "d"}),
        5 => {
            json!({"type": "reasoning", "item": {"type": "reasoning", "id": "rs_1", "encrypted_content": "e", "summary": []}})
        }
        6 => {
            json!({"type": "text", "text": text, "item": {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": text}]}})
        }
        7 => {
            json!({"type": "reasoning_details", "reasoning_details": [{"type": "reasoning.text", "text": text}]})
        }
        8 => json!({"type": "tool_use", "id": id, "name": "a.b/c", "input": {"x": text}}),
        9 => json!({"type": "tool_use", "id": id, "name": "f", "input": [1], "arguments": "{}"}),
        10 => {
            json!({"type": "tool_use", "id": id, "name": "f", "input": {}, "item": {"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}})
        }
        _ => json!({"type": "tool_use", "id": id, "name": "f", "input": {}}),
    }
}

fn any_reply() -> impl Strategy<Value = Vec<Value>> {
    let block = (0..13usize, 0..TEXTS.len(), 0..IDS.len())
        .prop_map(|(kind, text, id)| block(kind, TEXTS[text], IDS[id]));
    proptest::collection::vec(block, 0..6)
}

/// A user's message: the results of some of the open calls, and other content.
#[derive(Clone, Debug)]
struct Said {
    results: Vec<(bool, usize, bool)>,
    texts: Vec<usize>,
    orphan: bool,
}

fn any_said() -> impl Strategy<Value = Said> {
    let result = (prop::bool::weighted(0.9), 0..TEXTS.len(), any::<bool>());
    let results = proptest::collection::vec(result, 6);
    let texts = proptest::collection::vec(0..TEXTS.len(), 0..3);
    (results, texts, prop::bool::weighted(0.1)).prop_map(|(results, texts, orphan)| Said {
        results,
        texts,
        orphan,
    })
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("JSON")
}

fn result(id: &str, text: usize, is_error: bool) -> UserBlock {
    let (tool_use, content) = (ToolUseId(id.to_owned()), TEXTS[text].to_owned());
    UserBlock::ToolResult { tool_use, content, is_error, images: vec![] }
}

fn conversation(turns: &[(Said, Vec<Value>)], last: &Said) -> Vec<Arc<Message>> {
    let mut messages = vec![Arc::new(Message::User(vec![UserBlock::Text("begin".to_owned())]))];
    let mut open: Vec<String> = Vec::new();
    let user = |said: &Said, open: &[String]| {
        let answered = open.iter().zip(&said.results).filter(|(_, (answered, ..))| *answered);
        let mut blocks: Vec<_> = answered.map(|(id, (_, text, failed))| result(id, *text, *failed)).collect();
        if said.orphan {
            blocks.push(result("toolu_of_nobody", 3, false));
        }
        blocks.extend(said.texts.iter().map(|text| UserBlock::Text(TEXTS[*text].to_owned())));
        Arc::new(Message::User(blocks))
    };
    for (said, reply) in turns {
        messages.push(user(said, &open));
        open = reply
            .iter()
            .filter(|it| it["type"] == "tool_use")
            .map(|it| it["id"].as_str().unwrap_or_default().to_owned())
            .collect();
        messages.push(Arc::new(Message::Assistant(reply.iter().map(raw).collect())));
    }
    messages.push(user(last, &open));
    messages.push(Arc::new(Message::User(vec![UserBlock::Text("go on".to_owned())])));
    messages
}

fn tool(name: &'static str) -> ToolDefinition {
    let input_schema = raw(&json!({"type": "object", "properties": {"path": {"type": "string"}}}));
    ToolDefinition { name: name.into(), description: "A tool.".into(), input_schema }
}

fn request(messages: Vec<Arc<Message>>, model: &str) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        system: "be good".into(),
        tools: Arc::from([tool("read_file"), tool("shell_exec")]),
        messages,
        max_tokens: 100,
        options: RequestOptions::default(),
    }
}

const fn path(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Anthropic => "/v1/messages",
        ProviderKind::OpenAi => "/v1/chat/completions",
        ProviderKind::Responses => "/v1/responses",
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn z1_every_request_of_any_conversation_holds_to_the_vendors_rules(
        turns in proptest::collection::vec((any_said(), any_reply()), 0..6),
        last in any_said(),
    ) {
        let messages = conversation(&turns, &last);
        for writer in &*WRITERS {
            let kind = writer.kind();
            let mut before: Option<Vec<Value>> = None;
            for upto in (1..=messages.len()).filter(|upto| matches!(*messages[upto - 1], Message::User(_))) {
                let body = writer.body(&request(messages[..upto].to_vec(), "m"));
                let body: Value = serde_json::from_slice(&body).expect("JSON");
                prop_assert_eq!(strict::fault(path(kind), &body), None, "{:?}: {}", kind, body);
                // The part that was sent before stays the same.
                let calls = ids(&body.to_string());
                if let Some(before) = before.replace(calls.clone()) {
                    prop_assert!(calls.starts_with(&before), "{before:?} {calls:?}");
                }
            }
        }
    }

    #[test]
    fn z1_ids_of_nine_characters_are_nine_characters_and_stand_once(
        turns in proptest::collection::vec((any_said(), any_reply()), 1..6),
        last in any_said(),
    ) {
        let body = WRITERS[1].body(&request(conversation(&turns, &last), "devstral"));
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        prop_assert_eq!(strict::fault("/v1/chat/completions", &body), None);
        let messages = body["messages"].as_array().expect("a list");
        for call in messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten() {
            let id = call["id"].as_str().expect("an id");
            prop_assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{}", id);
        }
    }
}

/// Returns the ids of the tool calls in a request's body, in order.
fn ids(body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).expect("JSON");
    let messages =
        body["messages"].as_array().or_else(|| body["input"].as_array()).cloned().unwrap_or_default();
    let of_message = |message: &Value| {
        let blocks =
            message["content"].as_array().into_iter().flatten().filter(|it| it["type"] == "tool_use");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let own = (message["type"] == "function_call").then(|| message["call_id"].clone());
        blocks.chain(calls).map(|call| call["id"].clone()).chain(own).collect::<Vec<_>>()
    };
    messages.iter().flat_map(of_message).collect()
}

#[test]
fn z1_a_call_and_its_result_have_the_same_id_and_other_calls_another() {
    let call = |id: &str| raw(&json!({"type": "tool_use", "id": id, "name": "f", "input": {}}));
    let messages = vec![
        Arc::new(Message::User(vec![UserBlock::Text("go".to_owned())])),
        Arc::new(Message::Assistant(vec![call("functions.f:0"), call("functions.f.0")])),
        Arc::new(Message::User(vec![result("functions.f.0", 3, false), result("functions.f:0", 5, false)])),
    ];
    let body = WRITERS[0].body(&request(messages, "m"));
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let (calls, results) = (&body["messages"][1]["content"], &body["messages"][2]["content"]);
    assert_eq!(calls[0]["id"], "functions_f_0");
    assert_eq!(calls[1]["id"], "functions_f_0_2");
    assert_eq!(results[0]["tool_use_id"], "functions_f_0_2");
    assert_eq!(results[1]["tool_use_id"], "functions_f_0");
}
