//! Tests of servers with strict rules about reasoning, each with the error texts of its vendor.

use std::sync::Arc;

use futures_util::StreamExt;
use ipc::id::ToolUseId;
use model::provider::chat::{Config, OpenAiChat};
use model::provider::{Message, ModelProvider, ModelRequest, UserBlock};
use model::replay::{Block, ReplayServer, Reply, Script, Usage, chat};
use serde_json::Value;

use crate::{Item, provider, raw, request_of, user};

/// Rule of a server: returns the error for a model's message, given with its index in the request; `None` if valid.
type Rule = fn(usize, &Value) -> Option<String>;

fn has_calls(message: &Value) -> bool {
    message["tool_calls"].is_array()
}

fn has_reasoning(message: &Value) -> bool {
    message["reasoning_content"].as_str().is_some_and(|text| !text.is_empty())
}

fn moonshot(index: usize, message: &Value) -> Option<String> {
    let words = format!(
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
    );
    (has_calls(message) && !has_reasoning(message)).then_some(words)
}

fn deepseek_v3_2(index: usize, message: &Value) -> Option<String> {
    let words =
        format!("Missing `reasoning_content` field in the assistant message at message index {index}.");
    (has_calls(message) && message["reasoning_content"].is_null()).then_some(words)
}

fn deepseek_v4(_: usize, message: &Value) -> Option<String> {
    let words = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    (!has_reasoning(message)).then(|| words.to_owned())
}

fn deepseek_r1(_: usize, message: &Value) -> Option<String> {
    let words = "The reasoning_content field is not allowed in the messages of a request.";
    (!message["reasoning_content"].is_null()).then(|| words.to_owned())
}

fn groq(index: usize, message: &Value) -> Option<String> {
    let words = format!("'messages.{index}' : property 'reasoning_content' is unsupported");
    (!message["reasoning_content"].is_null()).then_some(words)
}

const STRICT: [(&str, Rule); 5] = [
    ("Moonshot", moonshot),
    ("DeepSeek V3.2", deepseek_v3_2),
    ("DeepSeek V4", deepseek_v4),
    ("DeepSeek R1", deepseek_r1),
    ("Groq", groq),
];

fn fault(rule: Rule, body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let messages = body["messages"].as_array().expect("messages");
    let mut of_model = messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant");
    of_model.find_map(|(index, message)| rule(index, message))
}

/// Starts a server that rejects each request with a message that breaks the rule.
fn strict(rule: Rule) -> ReplayServer {
    let check = move |_: usize, request: &model::replay::RecordedRequest| {
        let done = || Reply::sse(chat::message(&[Block::text("Done.")], "stop", Usage::default()));
        Some(
            fault(rule, &request.body)
                .map_or_else(done, |words| Reply::error(400, "invalid_request_error", &words)),
        )
    };
    ReplayServer::start_checked(Script::new(), Box::new(check)).expect("loopback")
}

fn result() -> Arc<Message> {
    Arc::new(Message::User(vec![UserBlock::ToolResult {
        tool_use: ToolUseId("c".to_owned()),
        content: "x".to_owned(),
        is_error: false,
        images: vec![],
    }]))
}

fn of_model(blocks: &[&str]) -> Arc<Message> {
    Arc::new(Message::Assistant(blocks.iter().map(|block| raw(block)).collect()))
}

const CALL: &str = r#"{"type":"tool_use","id":"c","name":"read_file","input":{"path":"a"}}"#;
const TEXT: &str = r#"{"type":"text","text":"So."}"#;
const REASONING: &str = r#"{"type":"thinking","thinking":"Hm.","field":"reasoning_content"}"#;
const OTHERS: &str = r#"{"type":"thinking","thinking":"Hm.","field":"reasoning"}"#;
const BLANK: &str = r#"{"type":"thinking","thinking":"","field":"reasoning_content"}"#;
const SIGNED: &str = r#"{"type":"thinking","thinking":"Hm.","signature":"s"}"#;

/// Returns conversations within and after a tool loop. Their messages have reasoning all, in part, never, or from
/// another server.
fn conversations() -> Vec<Vec<Arc<Message>>> {
    let mut all = Vec::new();
    for first in [&[REASONING, CALL][..], &[CALL], &[OTHERS, CALL], &[BLANK, CALL], &[SIGNED, TEXT, CALL]] {
        for second in [&[REASONING, TEXT][..], &[TEXT]] {
            let within = vec![user("go"), of_model(first), result()];
            let behind = [within.clone(), vec![of_model(second), user("and now?")]].concat();
            all.extend([within, behind]);
        }
    }
    all
}

async fn asked(provider: &OpenAiChat, request: ModelRequest) -> Vec<Item> {
    provider.stream(request).collect().await
}

/// If the server's rule is unknown, one error teaches the rule. All later requests succeed.
#[tokio::test]
async fn r6_a_servers_rule_about_reasoning_is_learned_from_one_refusal() {
    for (name, rule) in STRICT {
        for messages in conversations() {
            let server = strict(rule);
            let provider = provider(&server, None);
            let request = request_of("m", &messages);
            let mut refusals = 0;
            for _ in 0..3 {
                let items = asked(&provider, request.clone()).await;
                if let Some(Err(error)) = items.last() {
                    assert!(error.retryable && error.blames.is_none(), "{name}: {error}");
                    refusals += 1;
                }
            }
            let last = asked(&provider, request).await;
            assert!(last.last().is_some_and(Result::is_ok), "{name}: {messages:?}");
            assert!(refusals <= 1, "{name}: {refusals} refusals of {messages:?}");
        }
    }
}

/// For a known server, even the first request follows its rule about reasoning.
#[test]
fn r6_known_hosts_have_their_rule_from_the_first_request_on() {
    let thinking = conversations().into_iter().filter(|messages| format!("{messages:?}").contains("field"));
    for messages in thinking {
        for (host, rules) in [
            ("https://api.moonshot.ai/v1", &[moonshot as Rule][..]),
            ("https://api.moonshot.cn/v1", &[moonshot]),
            ("https://api.deepseek.com", &[deepseek_v3_2, deepseek_v4]),
        ] {
            let mut config = Config::new(None);
            config.connection.base_url = host.to_owned();
            let provider = OpenAiChat::new(config).expect("a provider");
            let body = provider.body(&request_of("m", &messages)).expect("a body");
            for rule in rules {
                assert_eq!(fault(*rule, &body), None, "{host}: {messages:?}");
            }
        }
    }
}
