use std::sync::Arc;

use futures_util::StreamExt;
use model::provider::responses::Responses;
use model::provider::{
    Connection, Credential, Effort, Message, ModelProvider, ModelRequest, RequestOptions, StopReason,
    StreamEvent, Timeouts, UserBlock,
};
use model::replay::{Block, ReplayServer, Reply, Script, Usage, responses};
use protocol::event::TokenUsage;
use serde_json::Value;

use crate::{Item, raw, request, user};

const KEY: &str = "sk-canary-0123456789-tail";

fn provider(base_url: &str, key: Option<&str>) -> Responses {
    Responses::new(Connection {
        base_url: base_url.to_owned(),
        api_key: key.map(Into::into),
        key_origin: "OPENAI_API_KEY".to_owned(),
        chosen_by: None,
        credential: Credential::default(),
        timeouts: Timeouts::default(),
        recorder: None,
    })
    .expect("a provider")
}

fn serve(script: Script) -> ReplayServer {
    ReplayServer::start(script).expect("a server")
}

async fn ask(provider: &Responses, messages: &[Arc<Message>]) -> Vec<StreamEvent> {
    let items: Vec<Item> = provider.stream(request(messages)).collect().await;
    items.into_iter().collect::<Result<_, _>>().expect("no error")
}

fn said(events: &[StreamEvent]) -> Arc<Message> {
    let blocks = events.iter().filter_map(|event| match event {
        StreamEvent::BlockClosed { block, .. } => Some(block.raw.clone()),
        _ => None,
    });
    Arc::new(Message::Assistant(blocks.collect()))
}

fn result(id: &str, content: &str) -> UserBlock {
    UserBlock::ToolResult {
        tool_use: id.into(),
        content: content.to_owned(),
        is_error: false,
        images: vec![],
    }
}

fn body(messages: &[Arc<Message>]) -> String {
    let body = provider("http://127.0.0.1:1", None).body(&request(messages)).expect("a body");
    String::from_utf8(body.to_vec()).expect("UTF-8")
}

#[tokio::test]
async fn a_request_is_stateless_and_a_reply_comes_as_typed_events() {
    let blocks = [Block::thinking("Hm. I look.", "gAA="), Block::tool_use("call_1", "read_file", "{}")];
    let usage = Usage { input: 7, cache_creation: 5, cache_read: 3, output: 11 };
    let server = serve(Script::new().reply(responses::message(&blocks, "tool_use", usage)));
    let provider = provider(&format!("{}/team/v1/", server.base_url()), Some(KEY));
    let events = ask(&provider, &[user("hello")]).await;
    let Some(StreamEvent::MessageCompleted { stop_reason, usage }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(*stop_reason, StopReason::ToolUse);
    assert_eq!(
        *usage,
        TokenUsage {
            input: 7,
            cache_creation: 5,
            cache_creation_1h: 0,
            cache_read: 3,
            output: 11,
            ..TokenUsage::default()
        }
    );
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/team/v1/responses"));
    assert!(request.header("authorization").expect("a key").ends_with(&format!("[{} bytes]", KEY.len())));
    insta::assert_snapshot!(String::from_utf8_lossy(&request.body), @r#"{"model":"gpt-5.6","instructions":"You are a test.","tools":[{"type":"function","name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false}],"max_output_tokens":32000,"stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}]}"#);
}

#[tokio::test]
async fn a_server_that_needs_no_key_gets_none() {
    let hello = responses::message(&[Block::text("Hello.")], "end_turn", Usage::default());
    let server = serve(Script::new().reply(hello));
    ask(&provider(&server.base_url(), None), &[user("hello")]).await;
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn r6_a_tool_loop_sends_each_item_back_byte_for_byte() {
    // These have spaces, numbers and escapes that any parser in between would change.
    let items = [
        r#"{"id":"rs_1", "type":"reasoning","encrypted_content":"gAA\u003d","summary":[ ],"n":1.0}"#,
        r#"{"id":"msg_1","type":"message","phase":"commentary","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"I l\u00f6ok."}]}"#,
        r#"{"arguments":"{ \"path\" : 1e2 }","call_id":"call_1","name":"read_file","id":"fc_1","type":"function_call"}"#,
        r#"{"call_id":"call_2","arguments":"","name":"read_file","type":"function_call","status":"completed"}"#,
    ];
    let mut stream = r#"data: {"type":"response.created","response":{"id":"r","model":"m"}}"#.to_owned();
    for (index, item) in items.iter().enumerate() {
        let done = format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#);
        stream.extend(["\n\ndata: ", &done]);
    }
    stream += "\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
    let last = responses::message(&[Block::text("Done.")], "end_turn", Usage::default());
    let server = serve(Script::new().reply(stream).reply(last));
    let provider = provider(&server.base_url(), None);

    let mut history = vec![user("hello")];
    history.push(said(&ask(&provider, &history).await));
    let results = vec![result("call_1", "one"), result("call_2", "two"), UserBlock::Text("and?".to_owned())];
    history.push(Arc::new(Message::User(results)));
    ask(&provider, &history).await;

    let [first, second] = &server.requests()[..] else { panic!("two requests") };
    let first = first.body.strip_suffix(b"]}").expect("the end of the input");
    let added = second.body.strip_prefix(first).expect("the first request, unchanged");
    let outputs = r#"{"type":"function_call_output","call_id":"call_1","output":"one"},{"type":"function_call_output","call_id":"call_2","output":"two"},{"type":"message","role":"user","content":[{"type":"input_text","text":"and?"}]}"#;
    let expected = format!(",{},{outputs}]}}", items.join(","));
    assert_eq!(String::from_utf8_lossy(added), expected);
}

#[tokio::test]
async fn reasoning_of_a_reply_that_was_cut_does_not_go_back() {
    let reasoning = r#"{"type":"reasoning","item":{"id":"rs_1","encrypted_content":"e"}}"#;
    let text = r#"{"type":"text","text":"One","item":{"id":"msg_1","type":"message"}}"#;
    let history = |blocks: &[&str]| {
        let blocks = blocks.iter().map(|block| raw(block)).collect();
        [user("hello"), Arc::new(Message::Assistant(blocks)), user("go on")]
    };
    assert!(body(&history(&[reasoning, text])).contains("rs_1"));
    assert!(!body(&history(&[text, reasoning])).contains("rs_1"));
    let alone: Value = serde_json::from_str(&body(&history(&[reasoning]))).expect("JSON");
    assert_eq!(alone["input"].as_array().map(Vec::len), Some(2), "{alone}");
}

#[tokio::test]
async fn r8_what_was_sent_before_is_sent_again_byte_for_byte() {
    let call = raw(r#"{"type":"tool_use","id":"a","name":"read_file","input":{"path": "x"}}"#);
    let mut history = vec![user("hello")];
    let mut before = String::new();
    for message in [
        Message::Assistant(vec![call]),
        Message::User(vec![result("a", "1")]),
        Message::Assistant(vec![raw(r#"{"type":"text","text":"so"}"#)]),
        Message::User(vec![UserBlock::Text("and?".to_owned())]),
    ] {
        let text = body(&history);
        let unclosed = text.strip_suffix("]}").expect("the end of the input");
        assert!(unclosed.starts_with(&before), "{before}\n{unclosed}");
        before = unclosed.to_owned();
        history.push(Arc::new(message));
    }
    assert!(body(&history).starts_with(&before));
}

#[tokio::test]
async fn what_a_model_does_not_know_is_not_asked_for() {
    let provider = provider("http://127.0.0.1:1", None);
    let options = RequestOptions { effort: Some(Effort::High), ..RequestOptions::default() };
    let plain = ModelRequest {
        model: "gpt-4o".to_owned(),
        system: Arc::from(""),
        tools: Arc::from([]),
        ..request(&[user("hello")])
    };
    let text = |request: &ModelRequest| {
        String::from_utf8(provider.body(request).expect("a body").to_vec()).expect("UTF-8")
    };
    insta::assert_snapshot!(text(&plain), @r#"{"model":"gpt-4o","max_output_tokens":32000,"stream":true,"store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}]}"#);
    assert!(text(&ModelRequest { options, ..plain }).contains(r#""reasoning":{"effort":"high"}"#));
}

#[tokio::test]
async fn s8_a_reply_that_fails_is_an_error_with_the_requests_id() {
    let failed =
        r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"Sorry."}}}"#;
    let reply = Reply::new(200, format!("data: {failed}\n\n")).header("x-request-id", "req_7");
    let server = serve(Script::new().push(reply));
    let provider = provider(&server.base_url(), Some(KEY));
    let items: Vec<Item> = provider.stream(request(&[user("hello")])).collect().await;
    let [Err(error)] = &items[..] else { panic!("{items:?}") };
    assert!(error.retryable, "{error:?}");
    assert_eq!(error.to_string(), "the API broke off its reply (server_error): Sorry. [request-id req_7]");
}
