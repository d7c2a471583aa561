use std::sync::Arc;

use futures_util::StreamExt;
use model::provider::anthropic::{Anthropic, AnthropicConfig, ApiVersion};
use model::provider::{
    ContentBlock, Credential, Message, ModelProvider, ProviderKind, StopReason, StreamEvent, UserBlock, debug,
};
use model::replay::{Block, Script, Usage, sse};
use protocol::event::TokenUsage;
use serde_json::json;

use crate::{Item, KEY, ask, config, hello, provider, raw, request, serve, user};

#[tokio::test]
async fn a_reply_comes_as_typed_events_and_the_request_as_the_api_wants_it() {
    let blocks = [
        Block::thinking("Hm. I look.", "sig=="),
        Block::text("Let me look."),
        Block::tool_use("toolu_1", "read_file", r#"{"path": "a b"}"#),
    ];
    let usage = Usage { input: 7, cache_creation: 5, cache_read: 3, output: 11 };
    let server = serve(Script::new().reply(sse::message(&blocks, "tool_use", usage)));
    let events = ask(&provider(&format!("{}/team/gw/", server.base_url()))).await;
    let events: Vec<_> = events.into_iter().collect::<Result<_, _>>().expect("no error");

    let Some(StreamEvent::MessageCompleted { stop_reason, usage }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(*stop_reason, StopReason::ToolUse);
    assert_eq!(
        *usage,
        TokenUsage { input: 7, cache_creation: 5, cache_read: 3, output: 11, ..TokenUsage::default() }
    );
    let closed = events.iter().filter_map(|event| match event {
        StreamEvent::BlockClosed { block, .. } => Some(block),
        _ => None,
    });
    let closed: Vec<_> = closed.collect();
    let call = ContentBlock::ToolUse {
        id: "toolu_1".into(),
        name: "read_file".to_owned(),
        input: Ok(r#"{"path": "a b"}"#.to_owned()),
    };
    assert_eq!(closed[2].content, call);
    assert_eq!(closed[0].raw.get(), r#"{"type":"thinking","thinking":"Hm. I look.","signature":"sig=="}"#);

    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/team/gw/v1/messages"));
    let header = |name| request.header(name).expect(name);
    assert_eq!(header("anthropic-version"), "2026-10-21");
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("x-api-key"), format!("[{} bytes]", KEY.len()));
    assert!(header("user-agent").starts_with("bailiwick/"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn r1_another_api_version_and_no_key_can_be_chosen() {
    let server = serve(Script::new().reply(hello()));
    let mut config = AnthropicConfig { version: ApiVersion::V2023_06_01, ..AnthropicConfig::new(None) };
    config.connection.base_url = server.base_url();
    ask(&Anthropic::new(config).expect("a provider")).await;
    let request = &server.requests()[0];
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("x-api-key"), None);
}

#[tokio::test]
async fn r1_a_token_goes_into_the_authorization_header_and_into_no_other() {
    let server = serve(Script::new().reply(hello()));
    let mut config = config(&server.base_url());
    config.connection.credential = Credential::Bearer;
    ask(&Anthropic::new(config).expect("a provider")).await;
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some(format!("Bearer [{} bytes]", KEY.len()).as_str()));
    assert_eq!(request.header("x-api-key"), None);
}

fn turns() -> [Vec<Arc<Message>>; 3] {
    let call = |id: &str| {
        raw(&format!(r#"{{"type":"tool_use","id":"{id}","name":"read_file","input":{{"path": "x"}}}}"#))
    };
    let result = |id: &str, content: &str| UserBlock::ToolResult {
        tool_use: id.into(),
        content: content.to_owned(),
        is_error: false,
        images: vec![],
    };
    let first = vec![user("hello")];
    let mut second = first.clone();
    second.push(Arc::new(Message::Assistant(vec![call("a"), call("b")])));
    second.push(Arc::new(Message::User(vec![result("a", "1"), result("b", "2")])));
    let mut third = second.clone();
    third.push(Arc::new(Message::Assistant(vec![raw(r#"{"type":"text","text":"so"}"#)])));
    third.push(user("and?"));
    [first, second, third]
}

#[tokio::test]
async fn r8_what_was_sent_before_is_sent_again_byte_for_byte_but_for_the_markers() {
    const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;
    let provider = provider("http://127.0.0.1:1");
    let mut before = String::new();
    for messages in turns() {
        let body = provider.body(&request(&messages)).expect("a body");
        let text = String::from_utf8(body.to_vec()).expect("UTF-8").replace(MARKER, "");
        let unclosed = text.strip_suffix("]}").expect("the end of the messages");
        assert!(unclosed.starts_with(&before), "{before}\n{unclosed}");
        before = unclosed.to_owned();
        // The same request again is the same to the last byte.
        assert_eq!(provider.body(&request(&messages)).expect("a body"), body);
    }
}

#[tokio::test]
async fn r1_the_fixed_part_of_a_request_has_no_sampling_parameters() {
    let body = provider("http://127.0.0.1:1").body(&request(&turns()[0])).expect("a body");
    insta::assert_snapshot!(String::from_utf8_lossy(&body), @r#"{"model":"claude-opus-5-5","max_tokens":32000,"stream":true,"tools":[{"name":"read_file","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],"system":[{"type":"text","text":"You are a test.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}]}"#);
}

#[tokio::test]
async fn r2_a_request_that_is_too_large_is_not_sent() {
    let server = serve(Script::new().reply(hello()));
    let huge = user(&"x".repeat(33_000_000));
    let items: Vec<Item> = provider(&server.base_url()).stream(request(&[huge])).collect().await;
    let [Err(error)] = &items[..] else { panic!("an error") };
    assert_eq!((error.kind.as_str(), error.retryable), ("request_too_large", false));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn debug_stream_prints_the_message_or_the_error() {
    let server = serve(Script::new().reply(hello()).reply_error(529, "overloaded_error", "Overloaded"));
    let request = br#"{"model": "m", "max_tokens": 1.0e1}"#;
    let first = debug::stream(ProviderKind::Anthropic, config(&server.base_url()).connection, request).await;
    insta::assert_snapshot!(first, @r#"{"ok":true,"message":{"id":"msg_replay","type":"message","role":"assistant","model":"replay","content":[{"type":"text","text":"Hello there."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}}"#);
    let second = debug::stream(ProviderKind::Anthropic, config(&server.base_url()).connection, request).await;
    insta::assert_snapshot!(second, @r#"{"ok":false,"error":{"type":"overloaded_error","message":"the API answered 529 (overloaded_error): Overloaded","hint":"try again later, or choose another model with --model","status":529,"request_id":null,"retryable":true}}"#);
    let sent = server.requests().remove(0).body;
    assert_eq!(sent, r#"{"model":"m","max_tokens":1.0e1,"stream":true}"#);
    let third =
        debug::stream(ProviderKind::Anthropic, config(&server.base_url()).connection, b"no JSON").await;
    assert_eq!(
        (third["ok"].clone(), third["error"]["type"].clone()),
        (json!(false), json!("invalid_request_error"))
    );
}
