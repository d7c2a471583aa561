//! The allowlist against what our own client sends, what providers' APIs have besides, and chance.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::activity::Activity;
use crate::provider::anthropic::{self, Anthropic, ApiVersion};
use crate::provider::catalogue::built_in;
use crate::provider::chat::OpenAiChat;
use crate::provider::responses::Responses;
use crate::provider::{
    CacheLifetime, Effort, Message, ModelRequest, RequestOptions, Temperature, Thinking, ThinkingDisplay,
    UserBlock,
};
use crate::tools::Registry;

const PRICED: [(ProviderKind, &str); 3] = [
    (ProviderKind::Anthropic, "claude-opus-5-5"),
    (ProviderKind::OpenAi, "gpt-5-mini"),
    (ProviderKind::Responses, "gpt-5-mini"),
];

fn bounds(facts: &(dyn Fn(&str) -> Facts + Send + Sync)) -> Bounds<'_> {
    let chat = Form {
        path: "/v1/chat/completions",
        reply_limit: ReplyLimit::MaxCompletionTokens,
        takes_stream_options: true,
    };
    Bounds { facts, models: &[], max_reply: 32_000, chat }
}

fn facts(model: &str) -> Facts {
    Facts::of(&built_in(model))
}

fn read(kind: ProviderKind, body: &str) -> Result<Value, String> {
    let understood = understand(kind, body.as_bytes(), &bounds(&facts)).map_err(|why| why.to_string())?;
    Ok(serde_json::from_slice(&understood.body).expect("our own JSON"))
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("JSON")
}

/// A conversation with everything in it that a conversation of ours has.
fn conversation(kind: ProviderKind) -> Vec<Arc<Message>> {
    let image = picture::read(&include_bytes!("../../../../fixtures/images/lossless.webp")[..]).expect("one");
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
        Arc::new(Message::User(vec![result("a", vec![image]), result("b", vec![]), UserBlock::Text("?".to_owned())])),
    ]
}

/// The body that our own client makes of a conversation.
fn body(kind: ProviderKind, model: &str, options: RequestOptions) -> String {
    let request = ModelRequest {
        model: model.to_owned(),
        system: "be brief".into(),
        tools: Registry::for_activity(Activity::Execute).definitions(),
        messages: conversation(kind),
        max_tokens: 8_000,
        options,
    };
    let connection = kind.connection(None, None, String::new());
    let body = match kind {
        ProviderKind::Anthropic => {
            let version = ApiVersion::V2023_06_01;
            let config = anthropic::Config { version, ..anthropic::Config::at(connection) };
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
    let (_, model) = PRICED.into_iter().find(|(known, _)| *known == kind).expect("a model");
    serde_json::from_str(&body(kind, model, RequestOptions::default())).expect("JSON")
}

#[test]
fn whatever_our_own_client_asks_for_goes_on_unchanged() {
    let display = Some(ThinkingDisplay::Summarized);
    let options = [
        RequestOptions::default(),
        RequestOptions { cache: CacheLifetime::OneHour, thinking: Thinking::Off, ..RequestOptions::default() },
        RequestOptions { thinking: Thinking::Adaptive { display }, effort: Some(Effort::Max), ..RequestOptions::default() },
        RequestOptions { thinking: Thinking::Budget { tokens: 2048 }, effort: Some(Effort::Low), ..RequestOptions::default() },
        RequestOptions { temperature: Temperature::new(0.5), ..RequestOptions::default() },
    ];
    for ((kind, model), options) in PRICED.into_iter().flat_map(|one| options.map(|options| (one, options))) {
        let sent = body(kind, model, options);
        let before: Value = serde_json::from_str(&sent).expect("JSON");
        assert_eq!(read(kind, &sent).as_ref(), Ok(&before), "{}", kind.as_str());
        // The conversation goes on byte for byte: a cache is found by its bytes.
        let name = if kind == ProviderKind::Responses { "\"input\":[" } else { "\"messages\":[" };
        let understood = understand(kind, sent.as_bytes(), &bounds(&facts)).expect("ours");
        let ours = std::str::from_utf8(&understood.body).expect("UTF-8");
        assert_eq!(ours.split(name).last(), sent.split(name).last());
        assert_eq!(understood.estimate.output, 8_000);
        assert!(understood.estimate.prompt > sent.len() as u64 / 2);
    }
}

/// Parts of the APIs that reach the network, other clients, or other prices; each with the place at which it stands.
fn features(kind: ProviderKind) -> Vec<(&'static str, Value)> {
    let url = json!("https://x.example/a.png");
    match kind {
        ProviderKind::Anthropic => vec![
            ("tools[+]", json!({"type": "web_search_20250305", "name": "web_search"})),
            ("tools[+]", json!({"type": "web_fetch_20250910", "name": "web_fetch"})),
            ("tools[+]", json!({"type": "code_execution_20250825", "name": "code_execution"})),
            ("tools[+]", json!({"type": "bash_20250124", "name": "bash"})),
            ("tools[+]", json!({"type": "computer_20250124", "name": "computer", "display_width_px": 1})),
            ("tools[+]", json!({"type": "memory_20250818", "name": "memory"})),
            ("tools[+]", json!({"type": "mcp_toolset", "mcp_server_name": "m"})),
            ("tools[+]", json!({"name": "f", "input_schema": {"type": "object", "$ref": "https://x.example/s"}})),
            ("tools[0].allowed_callers", json!(["code_execution_20250825"])),
            ("tools[0].defer_loading", json!(true)),
            ("mcp_servers", json!([{"type": "url", "url": "https://x.example", "name": "m"}])),
            ("container", json!("c")),
            ("metadata", json!({"user_id": "u"})),
            ("service_tier", json!("auto")),
            ("inference_geo", json!("us")),
            ("speed", json!("fast")),
            ("context_management", json!({"edits": []})),
            ("fallbacks", json!(["claude-x"])),
            ("diagnostics", json!({"previous_message_id": "m"})),
            ("tool_choice", json!({"type": "any"})),
            ("stop_sequences", json!(["x"])),
            ("top_k", json!(1)),
            ("n", json!(2)),
            ("messages[0].content[0].source", json!({"type": "url", "url": url})),
            ("messages[0].content[0].source", json!({"type": "file", "file_id": "file_1"})),
            ("messages[0].content[0].source.url", url.clone()),
            ("messages[0].content[+]", json!({"type": "document", "source": {"type": "url", "url": url}})),
            ("messages[0].content[+]", json!({"type": "container_upload", "file_id": "f"})),
            ("messages[0].content[+]", json!({"type": "search_result", "source": "s", "title": "t", "content": []})),
            ("messages[1].content[+]", json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
            ("messages[1].content[+]", json!({"type": "mcp_tool_use", "id": "s", "name": "n", "server_name": "m", "input": {}})),
            ("messages[1].content[4].caller", json!({"type": "code_execution_20250825", "tool_id": "t"})),
            ("messages[2].content[0].content[+]", json!({"type": "document", "source": {"type": "file", "file_id": "f"}})),
            ("messages[+]", json!({"role": "system", "content": "x"})),
        ],
        ProviderKind::OpenAi => vec![
            ("tools[+]", json!({"type": "web_search"})),
            ("tools[+]", json!({"type": "code_interpreter", "container": {"type": "auto"}})),
            ("tools[+]", json!({"type": "custom", "custom": {"name": "x"}})),
            ("tools[+]", json!({"type": "mcp", "server_url": "https://x.example"})),
            ("web_search_options", json!({})),
            ("search_parameters", json!({"mode": "on"})),
            ("plugins", json!([{"id": "web"}])),
            ("functions", json!([])),
            ("metadata", json!({"a": "b"})),
            ("store", json!(true)),
            ("n", json!(2)),
            ("service_tier", json!("priority")),
            ("prediction", json!({"type": "content", "content": "x"})),
            ("modalities", json!(["audio"])),
            ("audio", json!({"voice": "v", "format": "wav"})),
            ("user", json!("u")),
            ("models", json!(["a", "b"])),
            ("provider", json!({"order": ["x"]})),
            ("prompt_cache_key", json!("k")),
            ("logit_bias", json!({"1": 1})),
            ("response_format", json!({"type": "json_object"})),
            ("stream", json!(false)),
            ("messages[1].content[0].image_url.url", url),
            ("messages[1].content[0].image_url.url", json!("data:text/html;base64,AAAA")),
            ("messages[1].content[+]", json!({"type": "file", "file": {"file_id": "f"}})),
            ("messages[1].content[+]", json!({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}})),
            ("messages[2].audio", json!({"id": "a"})),
            ("messages[2].tool_calls[0].extra_content", json!({"other": {}})),
            ("messages[+]", json!({"role": "developer", "content": "x"})),
        ],
        ProviderKind::Responses => vec![
            ("tools[+]", json!({"type": "web_search"})),
            ("tools[+]", json!({"type": "web_search_preview"})),
            ("tools[+]", json!({"type": "file_search", "vector_store_ids": ["v"]})),
            ("tools[+]", json!({"type": "code_interpreter", "container": {"type": "auto"}})),
            ("tools[+]", json!({"type": "mcp", "server_label": "m", "server_url": "https://x.example"})),
            ("tools[+]", json!({"type": "image_generation"})),
            ("tools[+]", json!({"type": "computer_use_preview"})),
            ("tools[+]", json!({"type": "local_shell"})),
            ("background", json!(true)),
            ("store", json!(true)),
            ("previous_response_id", json!("resp_1")),
            ("conversation", json!("conv_1")),
            ("prompt", json!({"id": "pmpt_1"})),
            ("metadata", json!({"a": "b"})),
            ("service_tier", json!("flex")),
            ("safety_identifier", json!("s")),
            ("user", json!("u")),
            ("truncation", json!("auto")),
            ("max_tool_calls", json!(3)),
            ("include[0]", json!("web_search_call.action.sources")),
            ("include[+]", json!("file_search_call.results")),
            ("stream", json!(false)),
            ("input[0].content[0].image_url", url.clone()),
            ("input[0].content[0].file_id", json!("file_1")),
            ("input[0].content[+]", json!({"type": "input_file", "file_url": url})),
            ("input[+]", json!({"type": "item_reference", "id": "msg_1"})),
            ("input[+]", json!({"type": "web_search_call", "id": "w", "status": "completed"})),
            ("input[+]", json!({"type": "mcp_approval_response", "approve": true, "approval_request_id": "a"})),
            ("input", json!("text alone")),
        ],
    }
}

/// Puts a value at a place; `[+]` is behind the last element.
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
        ("gpt-4o-search-preview", Some("looks things up")),
        ("o3-deep-research", Some("looks things up")),
        ("openai/gpt-5:online", Some("looks things up")),
        ("", Some("is no name")),
        ("a b", Some("is no name")),
    ] {
        let mut body = usual(ProviderKind::Anthropic);
        body["model"] = json!(model);
        let found = read(ProviderKind::Anthropic, &body.to_string()).err();
        assert_eq!(found.is_some(), expected.is_some(), "{model}: {found:?}");
        assert!(found.as_ref().is_none_or(|why| why.contains(expected.unwrap_or_default())), "{found:?}");
    }
    let allowed = ["claude-haiku-5-5".to_owned()];
    let only = Bounds { models: &allowed, ..bounds(&facts) };
    let body = usual(ProviderKind::Anthropic).to_string();
    let error = understand(ProviderKind::Anthropic, body.as_bytes(), &only).expect_err("another model");
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
    let error = understand(ProviderKind::Anthropic, b"{\"model\":\"\xff\"}", &bounds(&facts)).expect_err("no text");
    assert_eq!(error.to_string(), "the body: is not UTF-8");
    let long = twice("\"model\":", &format!("\"{}\\u001b[31m\":1,\"model\":", "x".repeat(5000)));
    let error = read(ProviderKind::Anthropic, &long).expect_err("an unknown member");
    assert!(error.len() < 200 && !error.contains('\u{1b}'), "{error}");
}

/// The places of all objects whose members are listed: arguments and schemas are the tools' own.
fn listed(value: &Value, at: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    match value {
        Value::Object(members) => {
            found.push(at.clone());
            for (name, value) in members {
                let is_free = matches!(name.as_str(), "input_schema" | "parameters")
                    || name == "input" && members.get("type") == Some(&json!("tool_use"));
                if !is_free {
                    at.push(Step::Member(name.clone()));
                    listed(value, at, found);
                    at.pop();
                }
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                at.push(Step::Element(index));
                listed(value, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

#[derive(Clone, Debug)]
enum Step {
    Member(String),
    Element(usize),
}

fn object_at<'a>(value: &'a mut Value, steps: &[Step]) -> &'a mut Map<String, Value> {
    let mut at = value;
    for step in steps {
        at = match step {
            Step::Member(name) => &mut at[name.as_str()],
            Step::Element(index) => &mut at[*index],
        };
    }
    at.as_object_mut().expect("an object")
}

fn kinds() -> impl Strategy<Value = ProviderKind> {
    prop::sample::select(ProviderKind::ALL.to_vec())
}

fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"type": "url", "url": "https://x.example"}])),
        Just(json!({"type": "web_search_20250305", "name": "web_search"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_unknown_member_is_refused_wherever_it_stands(
        kind in kinds(), place in any::<prop::sample::Index>(), name in "[a-z_]{1,12}", value in odd(),
    ) {
        let mut body = usual(kind);
        let mut found = Vec::new();
        listed(&body, &mut Vec::new(), &mut found);
        let members = object_at(&mut body, &found[place.index(found.len())]);
        let name = format!("zz_{name}");
        members.insert(name.clone(), value);
        let why = read(kind, &body.to_string()).expect_err("an unknown member");
        prop_assert!(why.contains(&name), "{}", why);
    }

    #[test]
    fn a_member_that_stands_twice_is_refused_wherever_it_stands(
        kind in kinds(), place in any::<prop::sample::Index>(), member in any::<prop::sample::Index>(),
    ) {
        let mut body = usual(kind);
        let mut found = Vec::new();
        listed(&body, &mut Vec::new(), &mut found);
        let members = object_at(&mut body, &found[place.index(found.len())]);
        prop_assume!(!members.is_empty());
        let (name, value) = members.iter().nth(member.index(members.len())).expect("a member");
        let twice = format!("\"{name}\":{value}");
        members.insert("zz_mark".to_owned(), json!(1));
        let text = body.to_string().replace("\"zz_mark\":1", &twice);
        prop_assert!(read(kind, &text).expect_err("twice").contains("twice"));
    }

    #[test]
    fn an_odd_value_is_refused_or_brings_nothing_along(
        kind in kinds(), place in any::<prop::sample::Index>(), member in any::<prop::sample::Index>(), value in odd(),
    ) {
        let mut body = usual(kind);
        let mut found = Vec::new();
        listed(&body, &mut Vec::new(), &mut found);
        let members = object_at(&mut body, &found[place.index(found.len())]);
        prop_assume!(!members.is_empty());
        let name = members.keys().nth(member.index(members.len())).expect("a member").clone();
        // What a tool is called with is its own, and no part of the API.
        prop_assume!(name != "input" || kind != ProviderKind::Anthropic);
        members.insert(name, value);
        if let Ok(sent) = read(kind, &body.to_string()) {
            let sent = sent.to_string();
            for reach in ["https://", "\"url\":", "web_search", "file_id"] {
                let ours = reach == "\"url\":" && sent.contains("\"url\":\"data:image/");
                prop_assert!(ours || !sent.contains(reach), "{}", sent);
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(kind in kinds(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(understand(kind, &bytes, &bounds(&facts)).is_err());
    }
}
