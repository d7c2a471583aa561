//! Tests of the allowlist with valid requests, other features of the APIs, and random changes.

mod chance;
mod features;
mod recorded;

use std::sync::{Arc, LazyLock};

use gate::activity::Activity;
use gate::tools::Registry;
use serde_json::{Value, json};

use self::features::features;
use super::*;
use crate::provider::anthropic::{self, Anthropic, ApiVersion};
use crate::provider::catalogue::built_in;
use crate::provider::chat::OpenAiChat;
use crate::provider::responses::Responses;
use crate::provider::{
    CacheLifetime, Effort, Message, ModelRequest, RequestOptions, Temperature, Thinking, ThinkingDisplay,
    UserBlock,
};

const PRICED: [(ProviderKind, &str); 3] = [
    (ProviderKind::Anthropic, "claude-opus-5-5"),
    (ProviderKind::OpenAi, "gpt-5-mini"),
    (ProviderKind::Responses, "gpt-5-mini"),
];

fn bounds(facts: &(dyn Fn(&str) -> Facts + Send + Sync)) -> RequestBounds<'_> {
    let chat = Form {
        path: "/v1/chat/completions",
        reply_limit: ReplyLimit::MaxCompletionTokens,
        takes_stream_options: true,
    };
    RequestBounds { facts, models: &[], max_reply: 32_000, chat }
}

fn facts(model: &str) -> Facts {
    Facts::of(&built_in(model))
}

fn read(kind: ProviderKind, body: &str) -> Result<Value, String> {
    let understood = understand(kind, body.as_bytes(), &bounds(&facts), &CountedPrompts::default())
        .map_err(|why| why.to_string())?;
    Ok(serde_json::from_slice(&understood.body).expect("our own JSON"))
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("JSON")
}

fn conversation(kind: ProviderKind) -> Vec<Arc<Message>> {
    let image =
        picture::read(&include_bytes!("../../../../../../fixtures/images/lossless.webp")[..]).expect("one");
    let result = |id: &str, images| UserBlock::ToolResult {
        tool_use: id.into(),
        content: "ok \"usage\" ü\u{1f980}".to_owned(),
        is_error: id == "b",
        images,
    };
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "a", "n": [1, {"x": null}]}});
    let reply = match kind {
        ProviderKind::Anthropic => vec![
            json!({"type": "thinking", "thinking": "", "signature": "s="}),
            json!({"type": "redacted_thinking", "data": "d"}),
            json!({"type": "text", "text": "So.", "citations": null}),
            call("a"),
            json!({"type": "tool_use", "id": "b", "name": "f", "input": {}, "caller": {"type": "direct"}}),
        ],
        ProviderKind::OpenAi => vec![
            json!({"type": "thinking", "thinking": "hm", "field": "reasoning_content"}),
            json!({"type": "text", "text": "So."}),
            call("a"),
            json!({"type": "tool_use", "id": "b", "name": "f", "input": {}, "arguments": "{ }",
                "extra_content": {"google": {"thought_signature": "s"}}}),
        ],
        ProviderKind::Responses => vec![
            json!({"type": "reasoning", "item": {"id": "rs_1", "type": "reasoning", "encrypted_content": "e", "summary": [{"type": "summary_text", "text": "t"}], "content": null}}),
            json!({"type": "text", "text": "So.", "item": {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}]}}),
            json!({"type": "tool_use", "id": "a", "name": "f", "input": {}, "item": {"id": "fc_1", "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "status": "completed"}}),
            call("b"),
        ],
    };
    vec![
        Arc::new(Message::User(vec![UserBlock::Image(image.clone()), UserBlock::Text("do".to_owned())])),
        Arc::new(Message::Assistant(reply.iter().map(raw).collect())),
        Arc::new(Message::User(vec![
            result("a", vec![image]),
            result("b", vec![]),
            UserBlock::Text("?".to_owned()),
        ])),
    ]
}

fn body(kind: ProviderKind, model: &str, options: RequestOptions) -> String {
    body_of(kind, model, options, conversation(kind))
}

fn body_of(kind: ProviderKind, model: &str, options: RequestOptions, messages: Vec<Arc<Message>>) -> String {
    let request = ModelRequest {
        model: model.to_owned(),
        system: "be brief".into(),
        tools: Registry::for_activity(Activity::Execute).definitions(),
        messages,
        max_tokens: 8_000,
        options,
    };
    let connection = kind.connection(None, None, String::new());
    let body = match kind {
        ProviderKind::Anthropic => {
            let version = ApiVersion::V2023_06_01;
            let config = anthropic::AnthropicConfig { version, ..anthropic::AnthropicConfig::at(connection) };
            Anthropic::new(config).expect("a client").body(&request)
        }
        ProviderKind::OpenAi => {
            let config = crate::provider::chat::Config::at(connection);
            OpenAiChat::new(config).expect("a client").body(&request)
        }
        ProviderKind::Responses => Responses::new(connection).expect("a client").body(&request),
    };
    String::from_utf8(body.expect("a body").to_vec()).expect("UTF-8")
}

fn usual(kind: ProviderKind) -> Value {
    static USUAL: LazyLock<Vec<(ProviderKind, Value)>> = LazyLock::new(|| {
        let of = |(kind, model)| {
            let body = body(kind, model, RequestOptions::default());
            (kind, serde_json::from_str(&body).expect("JSON"))
        };
        PRICED.into_iter().map(of).collect()
    });
    USUAL.iter().find(|(known, _)| *known == kind).expect("each kind").1.clone()
}

#[test]
fn whatever_our_own_client_asks_for_goes_on_unchanged() {
    let display = Some(ThinkingDisplay::Summarized);
    let options = [
        RequestOptions::default(),
        RequestOptions {
            cache: CacheLifetime::OneHour,
            thinking: Thinking::Off,
            ..RequestOptions::default()
        },
        RequestOptions {
            thinking: Thinking::Adaptive { display },
            effort: Some(Effort::Max),
            ..RequestOptions::default()
        },
        RequestOptions {
            thinking: Thinking::Budget { tokens: 2048 },
            effort: Some(Effort::Low),
            ..RequestOptions::default()
        },
        RequestOptions { temperature: Temperature::new(0.5), ..RequestOptions::default() },
    ];
    for ((kind, model), options) in PRICED.into_iter().flat_map(|one| options.map(|options| (one, options))) {
        let sent = body(kind, model, options);
        let before: Value = serde_json::from_str(&sent).expect("JSON");
        assert_eq!(read(kind, &sent).as_ref(), Ok(&before), "{}", kind.as_str());
        // The bytes of the conversation stay the same, so that a cache finds them.
        let name = if kind == ProviderKind::Responses { "\"input\":[" } else { "\"messages\":[" };
        let understood =
            understand(kind, sent.as_bytes(), &bounds(&facts), &CountedPrompts::default()).expect("ours");
        let ours = std::str::from_utf8(&understood.body).expect("UTF-8");
        assert_eq!(ours.split(name).last(), sent.split(name).last());
        assert_eq!(understood.estimate.output, 8_000);
        assert!(understood.estimate.prompt > sent.len() as u64 / 2);
    }
}

/// Sets the value at a path such as `messages[0].content`; `[+]` adds an element.
fn put(body: &mut Value, place: &str, value: Value) {
    let steps: Vec<_> = place.split(['.', '[']).map(|step| step.trim_end_matches(']')).collect();
    let (last, steps) = steps.split_last().expect("a place");
    let mut at = body;
    for step in steps {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[*step],
        };
    }
    match (*last, last.parse::<usize>()) {
        ("+", _) => at.as_array_mut().unwrap_or_else(|| panic!("{place} is no list")).push(value),
        (_, Ok(index)) => at[index] = value,
        (name, Err(_)) => at[name] = value,
    }
}

#[test]
fn every_way_to_the_network_to_others_and_to_other_prices_is_refused_by_its_name() {
    for kind in ProviderKind::ALL {
        let usual = usual(kind);
        assert_eq!(read(kind, &usual.to_string()).as_ref(), Ok(&usual), "the control of {}", kind.as_str());
        for (place, value) in features(kind) {
            let mut body = usual.clone();
            put(&mut body, place, value.clone());
            let why = read(kind, &body.to_string()).expect_err(&format!("{} {place} {value}", kind.as_str()));
            let field = place.trim_end_matches("[+]").split('.').next_back().unwrap_or_default();
            let field = field.split('[').next().unwrap_or_default();
            assert!(why.contains(field), "{place} {value}: {why}");
        }
    }
}

#[test]
fn models_are_named_by_people_or_have_a_price_and_never_look_things_up() {
    for (model, expected) in [
        ("claude-opus-5-5", None),
        ("claude-fable-5-2", Some("has no known price")),
        ("no-such-model", Some("has no known price")),
        ("gpt-4o-search-preview", Some("searches the network")),
        ("o3-deep-research", Some("searches the network")),
        ("openai/gpt-5:online", Some("searches the network")),
        ("", Some("is not a name")),
        ("a b", Some("is not a name")),
    ] {
        let mut body = usual(ProviderKind::Anthropic);
        body["model"] = json!(model);
        let found = read(ProviderKind::Anthropic, &body.to_string()).err();
        assert_eq!(found.is_some(), expected.is_some(), "{model}: {found:?}");
        assert!(found.as_ref().is_none_or(|why| why.contains(expected.unwrap_or_default())), "{found:?}");
    }
    let allowed = ["claude-haiku-5-5".to_owned()];
    let only = RequestBounds { models: &allowed, ..bounds(&facts) };
    let body = usual(ProviderKind::Anthropic).to_string();
    let error = understand(ProviderKind::Anthropic, body.as_bytes(), &only, &CountedPrompts::default())
        .expect_err("another model");
    assert!(error.why.contains("is not one of the models"), "{error}");
}

#[test]
fn a_reply_is_bounded_in_the_servers_own_word_and_store_is_off() {
    let mut chat = usual(ProviderKind::OpenAi);
    chat.as_object_mut().expect("an object").remove("max_completion_tokens");
    chat.as_object_mut().expect("an object").remove("stream_options");
    chat["max_tokens"] = json!(1_000_000);
    let sent = read(ProviderKind::OpenAi, &chat.to_string()).expect("ours");
    assert_eq!((&sent["max_completion_tokens"], sent.get("max_tokens")), (&json!(32_000), None));
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
    let mut responses = usual(ProviderKind::Responses);
    let members = responses.as_object_mut().expect("an object");
    members.remove("store");
    members.remove("max_output_tokens");
    let sent = read(ProviderKind::Responses, &responses.to_string()).expect("ours");
    assert_eq!((&sent["store"], &sent["max_output_tokens"]), (&json!(false), &json!(32_000)));
}

#[test]
fn a_reply_without_a_token_is_refused_in_each_of_its_words() {
    for (kind, names) in [
        (ProviderKind::Anthropic, &["max_tokens"][..]),
        (ProviderKind::OpenAi, &["max_tokens", "max_completion_tokens"]),
        (ProviderKind::Responses, &["max_output_tokens"]),
    ] {
        for name in names {
            let mut body = usual(kind);
            body[*name] = json!(0);
            let error = read(kind, &body.to_string()).expect_err("no reply");
            assert_eq!(error, format!("{name}: must be at least 1"));
            body[*name] = json!(1);
            assert!(read(kind, &body.to_string()).is_ok(), "the control: {name}");
        }
    }
}

#[test]
fn what_two_parsers_could_read_in_two_ways_is_refused() {
    let body = usual(ProviderKind::Anthropic).to_string();
    let twice = |from: &str, to: &str| body.replacen(from, to, 1);
    for (text, expected) in [
        (twice("{\"model\":", "{\"model\":\"x\",\"model\":"), "model twice"),
        (twice("{\"model\":", "{\"\\u006dodel\":\"x\",\"model\":"), "model twice"),
        (twice("{\"role\":\"user\"", "{\"role\":\"assistant\",\"role\":\"user\""), "role twice"),
        (twice("\"type\":\"base64\"", "\"type\":\"url\",\"type\":\"base64\""), "type twice"),
        (twice("\"input\":{\"path\":\"a\"", "\"input\":{\"path\":\"b\",\"path\":\"a\""), "a member twice"),
        (twice("\"text\":\"do\"", "\"text\":\"\\ud800\""), "must be a text"),
        (twice("\"text\":\"do\"", "\"text\":7"), "must be a text"),
        (twice("\"stream\":true", "\"stream\":1"), "stream"),
        (twice("\"max_tokens\":8000", "\"max_tokens\":-1"), "whole number"),
        (twice("\"max_tokens\":8000", "\"max_tokens\":8000.5"), "whole number"),
        (twice("\"max_tokens\":8000", "\"max_tokens\":1e999"), "whole number"),
        (format!("{body} {{}}"), "not a JSON object"),
        (format!("\u{feff}{body}"), "not a JSON object"),
        (body.replacen('{', "{,", 1), "not a JSON object"),
        ("[]".to_owned(), "not a JSON object"),
        (String::new(), "not a JSON object"),
    ] {
        let error = read(ProviderKind::Anthropic, &text).expect_err(expected);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = understand(
        ProviderKind::Anthropic,
        b"{\"model\":\"\xff\"}",
        &bounds(&facts),
        &CountedPrompts::default(),
    )
    .expect_err("no text");
    assert_eq!(error.to_string(), "the body: is not UTF-8");
    let long = twice("\"model\":", &format!("\"{}\\u001b[31m\":1,\"model\":", "x".repeat(5000)));
    let error = read(ProviderKind::Anthropic, &long).expect_err("an unknown member");
    assert!(error.len() < 200 && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn a_conversation_that_goes_on_is_bounded_by_what_was_counted_of_it() {
    for kind in ProviderKind::ALL {
        let counted = CountedPrompts::default();
        let estimate = |body: &Value| {
            let body = body.to_string();
            understand(kind, body.as_bytes(), &bounds(&facts), &counted).expect("ours")
        };
        let mut body = usual(kind);
        let first = estimate(&body);
        counted.learn(&first.trail, 700);
        let (name, more) = match kind {
            ProviderKind::Anthropic | ProviderKind::OpenAi => {
                ("messages", json!({"role": "user", "content": "and?"}))
            }
            ProviderKind::Responses => {
                ("input", json!({"type": "message", "role": "user", "content": "and?"}))
            }
        };
        let length = more.to_string().len() as u64;
        body[name].as_array_mut().expect("a list").push(more);
        let second = estimate(&body).estimate;
        assert_eq!(second.prompt, 700 + length + 1 + ADDED, "{}", kind.as_str());
        assert!(second.cost < first.estimate.cost);
        // A prompt with another beginning was not counted.
        body["model"] = json!(if kind == ProviderKind::Anthropic { "claude-opus-5" } else { "gpt-5" });
        assert!(estimate(&body).estimate.prompt > first.estimate.prompt);
    }
}
