//! The provider over real HTTP on loopback.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use ipc::event::TokenUsage;
use secrecy::SecretString;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use supervisor::provider::anthropic::{Anthropic, ApiVersion, Config};
use supervisor::provider::{
    ContentBlock, Message, ModelProvider, ModelRequest, ProviderError, StopReason, StreamEvent, Timeouts,
    ToolDefinition, UserBlock, debug,
};
use supervisor::replay::{Block, ReplayServer, Reply, Script, Usage, sse};

const KEY: &str = "sk-ant-canary-0123456789-tail";

type Item = Result<StreamEvent, ProviderError>;

fn config(base_url: &str) -> Config {
    Config { base_url: base_url.to_owned(), ..Config::new(Some(SecretString::from(KEY))) }
}

fn provider(base_url: &str) -> Anthropic {
    Anthropic::new(config(base_url)).expect("a provider")
}

fn serve(script: Script) -> ReplayServer {
    ReplayServer::start(script).expect("a server")
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(vec![UserBlock::Text(text.to_owned())]))
}

fn request(messages: &[Arc<Message>]) -> ModelRequest {
    let tool = ToolDefinition {
        name: "read_file",
        description: "Reads a file.",
        input_schema: raw(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#),
    };
    ModelRequest {
        model: "claude-opus-5-5".to_owned(),
        system: Arc::from("You are a test."),
        tools: Arc::from([tool]),
        messages: messages.to_vec(),
        max_tokens: 32_000,
    }
}

async fn ask(provider: &Anthropic) -> Vec<Item> {
    provider.stream(request(&[user("hello")])).collect().await
}

/// The only item, which is an error.
async fn failure(base_url: &str) -> ProviderError {
    let mut items = ask(&provider(base_url)).await;
    match (items.pop(), items.len()) {
        (Some(Err(error)), 0) => error,
        other => panic!("no error alone: {other:?}"),
    }
}

async fn answer(reply: Reply) -> ProviderError {
    failure(&serve(Script::new().push(reply)).base_url()).await
}

fn hello() -> String {
    sse::message(&[Block::text("Hello there.")], "end_turn", Usage::default())
}

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
    assert_eq!(*usage, TokenUsage { input: 7, cache_creation: 5, cache_read: 3, output: 11 });
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
    let config =
        Config { base_url: server.base_url(), version: ApiVersion::V2023_06_01, ..Config::new(None) };
    ask(&Anthropic::new(config).expect("a provider")).await;
    let request = &server.requests()[0];
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("x-api-key"), None);
}

/// The conversation after each of three turns.
fn turns() -> [Vec<Arc<Message>>; 3] {
    let call = |id: &str| {
        raw(&format!(r#"{{"type":"tool_use","id":"{id}","name":"read_file","input":{{"path": "x"}}}}"#))
    };
    let result = |id: &str, content: &str| UserBlock::ToolResult {
        tool_use: id.into(),
        content: content.to_owned(),
        is_error: false,
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
async fn r8_markers_are_at_the_system_prompt_and_the_last_two_user_messages() {
    let provider = provider("http://127.0.0.1:1");
    let markers = |messages: &[Arc<Message>]| {
        let body: Value =
            serde_json::from_slice(&provider.body(&request(messages)).expect("a body")).expect("JSON");
        let mut found = Vec::new();
        find_markers(&body, "", &mut found);
        found
    };
    let [first, second, third] = turns();
    assert_eq!(markers(&first), ["/system/0", "/messages/0/content/0"]);
    assert_eq!(markers(&second), ["/system/0", "/messages/0/content/0", "/messages/2/content/1"]);
    assert_eq!(markers(&third), ["/system/0", "/messages/2/content/1", "/messages/4/content/0"]);
}

fn find_markers(value: &Value, path: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        if name == "cache_control" {
            assert_eq!(*child, json!({"type": "ephemeral"}));
            found.push(path.to_owned());
        }
        find_markers(child, &format!("{path}/{name}"), found);
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
async fn e1_e2_every_status_is_a_kind_a_decision_and_a_line() {
    let cases = [
        (400, "invalid_request_error", "messages.0: bad", false),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", false),
        (401, "authentication_error", "invalid x-api-key", false),
        (402, "billing_error", "no credit", false),
        (403, "permission_error", "not yours", false),
        (404, "not_found_error", "model: claude-sonet", false),
        (409, "conflict_error", "busy", true),
        (413, "request_too_large", "too big", false),
        (429, "rate_limit_error", "slow down", true),
        (500, "api_error", "Internal server error", true),
        (504, "timeout_error", "took too long", true),
        (529, "overloaded_error", "Overloaded", true),
    ];
    let mut lines = Vec::new();
    for (status, kind, message, retryable) in cases {
        let error = answer(Reply::error(status, kind, message).header("request-id", "req_1")).await;
        assert_eq!((error.status, error.kind.as_str()), (Some(status), kind));
        assert_eq!((error.retryable, error.request_id.as_deref()), (retryable, Some("req_1")), "{error:?}");
        lines.push(error.message);
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    the API answered 400 (invalid_request_error): messages.0: bad [request-id req_1]
    the API answered 400 (invalid_request_error): prompt is too long: 210000 tokens > 200000 maximum; the conversation is longer than the model's context: start a new one [request-id req_1]
    the API answered 401 (authentication_error): invalid x-api-key; check ANTHROPIC_API_KEY, whose key ends in …tail [request-id req_1]
    the API answered 402 (billing_error): no credit; check the account's billing [request-id req_1]
    the API answered 403 (permission_error): not yours; this key may not do that: check its permissions and the model's name [request-id req_1]
    the API answered 404 (not_found_error): model: claude-sonet; check the model's name and the base URL [request-id req_1]
    the API answered 409 (conflict_error): busy [request-id req_1]
    the API answered 413 (request_too_large): too big; the request is too large: start a new conversation, or read less at once [request-id req_1]
    the API answered 429 (rate_limit_error): slow down [request-id req_1]
    the API answered 500 (api_error): Internal server error [request-id req_1]
    the API answered 504 (timeout_error): took too long [request-id req_1]
    the API answered 529 (overloaded_error): Overloaded [request-id req_1]
    "#);
}

#[tokio::test]
async fn e1_bodies_of_gateways_and_proxies_are_borne() {
    let bodies = [
        (502, "<html><h1>502 Bad Gateway</h1></html>"),
        (503, ""),
        (500, "upstream\r\n\u{1b}[31mexploded\u{7}"),
        (401, r#"{"error":"no such key"}"#),
        (400, r#"{"message":"Bad","type":"x"}"#),
        (422, r#"{"detail":"field required"}"#),
        (500, r#"{"error":{"message":5}}"#),
    ];
    let mut lines = Vec::new();
    for (status, body) in bodies {
        let error = answer(Reply::new(status, body)).await;
        lines.push(format!("{} {}", error.retryable, error.message));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    true the API answered 502 (api_error): Bad Gateway, with a page of HTML: not the API but something before it answered
    true the API answered 503 (api_error): Service Unavailable, with an empty body
    true the API answered 500 (api_error): Internal Server Error: upstream [31mexploded
    false the API answered 401 (authentication_error): no such key; check ANTHROPIC_API_KEY, whose key ends in …tail
    false the API answered 400 (invalid_request_error): Bad
    false the API answered 422 (invalid_request_error): field required
    true the API answered 500 (api_error): Internal Server Error: {"error":{"message":5}}
    "#);
}

#[tokio::test]
async fn e2_the_providers_word_on_retries_wins_and_a_spend_limit_is_final() {
    let retryable = async |reply| answer(reply).await.retryable;
    assert!(
        retryable(Reply::error(400, "invalid_request_error", "x").header("x-should-retry", "true")).await
    );
    assert!(!retryable(Reply::error(529, "overloaded_error", "x").header("x-should-retry", "false")).await);
    let body = json!({"type": "error", "error": {
        "type": "rate_limit_error", "message": "limit", "details": {"error_code": "enforced_spend_limit_reached"},
    }});
    let error = answer(Reply::new(429, body.to_string())).await;
    assert!(!error.retryable && error.message.contains("spend limit is reached"), "{error:?}");
}

#[tokio::test]
async fn e3_the_wait_that_the_provider_asks_for_is_reported() {
    let reply = || Reply::error(429, "rate_limit_error", "x");
    assert_eq!(
        answer(reply().header("retry-after", "2.5")).await.retry_after,
        Some(Duration::from_millis(2500))
    );
    let azure = reply().header("retry-after", "1").header("retry-after-ms", "0");
    assert_eq!(answer(azure).await.retry_after, None);
}

#[tokio::test]
async fn a_key_that_is_echoed_by_the_provider_is_not_shown() {
    let error = answer(Reply::error(401, "authentication_error", &format!("bad key: {KEY}"))).await;
    assert!(!error.message.contains(KEY) && error.message.contains("bad key: [key]"), "{error}");
    assert!(error.message.ends_with("check ANTHROPIC_API_KEY, whose key ends in …tail"), "{error}");
}

#[tokio::test]
async fn a_connection_that_fails_says_where_and_on_which_host() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let refused = failure(&format!("http://{free}")).await;
    assert_eq!(refused.message, format!("{free} refused the connection: check the base URL"));
    assert_eq!((refused.kind.as_str(), refused.retryable), ("connection", true));

    let unknown = failure("http://no-such-host.invalid:81/x").await;
    assert!(unknown.message.starts_with("the name no-such-host.invalid:81 cannot be looked up"), "{unknown}");
    assert_eq!((unknown.kind.as_str(), unknown.retryable), ("connection", true));
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_named_and_not_tried_again() {
    let server = serve(Script::new());
    let error = failure(&server.base_url().replace("http:", "https:")).await;
    assert!(error.message.starts_with("no TLS connection to 127.0.0.1:"), "{error}");
    assert_eq!((error.kind.as_str(), error.retryable), ("connection", false));
}

#[tokio::test]
async fn e5_a_connection_that_does_not_come_about_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).expect("a backlog"))
        .expect("listen");
    let address = listener.local_addr().expect("an address");
    // Nobody accepts: once the queue is full the kernel drops what asks to connect (listen(2), backlog).
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
        queued.push(stream);
        assert!(queued.len() < 10_000, "the queue does not fill");
    }
    let timeouts = Timeouts { connect: Duration::from_millis(100), ..Timeouts::default() };
    let config = Config { timeouts, ..config(&format!("http://{address}")) };
    let items = ask(&Anthropic::new(config).expect("a provider")).await;
    let [Err(error)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((error.kind.as_str(), error.retryable), ("timeout", true));
    assert!(error.message.starts_with(&format!("no connection to {address} within 100ms")), "{error}");
}

#[tokio::test]
async fn e5_silence_is_a_timeout_before_and_within_a_reply() {
    let text = hello();
    let half = text[..text.len() / 2].to_owned();
    for (reply, expected) in [(Reply::sse(half).then_silence(), 1), (Reply::sse("").then_silence(), 0)] {
        let server = serve(Script::new().push(reply));
        let timeouts = Timeouts { idle: Duration::from_millis(100), ..Timeouts::default() };
        let config = Config { timeouts, ..config(&server.base_url()) };
        let mut items = ask(&Anthropic::new(config).expect("a provider")).await;
        let Some(Err(error)) = items.pop() else { panic!("{items:?}") };
        assert_eq!((error.kind.as_str(), error.retryable), ("timeout", true));
        assert!(error.message.ends_with("sent nothing for 100ms"), "{error}");
        assert!(items.len() >= expected, "{items:?}");
    }
}

#[tokio::test]
async fn s7_a_connection_that_breaks_is_a_truncated_stream_unless_the_model_was_done() {
    let text = hello();
    let stop = text.find("event: message_stop").expect("a stop");
    for length in [0, 1, text.len() / 2, stop - 40] {
        let server = serve(
            Script::new().push(Reply::sse(text.clone()).header("request-id", "req_9").cut_after(length)),
        );
        let mut items = ask(&provider(&server.base_url())).await;
        let Some(Err(error)) = items.pop() else { panic!("{items:?}") };
        assert_eq!((error.kind.as_str(), error.retryable), ("truncated_stream", true), "{length}: {error}");
        assert_eq!(error.request_id.as_deref(), Some("req_9"));
    }
    let server = serve(Script::new().push(Reply::sse(text).cut_after(stop)));
    let items = ask(&provider(&server.base_url())).await;
    assert!(matches!(items.last(), Some(Ok(StreamEvent::MessageCompleted { .. }))), "{items:?}");
}

#[tokio::test]
async fn s10_json_instead_of_a_stream_is_a_message_and_html_a_clear_error() {
    let whole = json!({"type": "message", "id": "m", "model": "x", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": 1, "output_tokens": 2}});
    let server = serve(
        Script::new()
            .push(Reply::new(200, whole.to_string()).header("content-type", "application/json").chunked(7))
            .push(Reply::new(200, "<html>log in</html>").header("content-type", "text/html")),
    );
    let provider = provider(&server.base_url());
    let items = ask(&provider).await;
    assert!(matches!(items.last(), Some(Ok(StreamEvent::MessageCompleted { .. }))), "{items:?}");
    let items = ask(&provider).await;
    let [Err(error)] = &items[..] else { panic!("{items:?}") };
    assert!(error.kind == "invalid_response" && error.message.contains("a page of HTML"), "{error}");
}

#[tokio::test]
async fn e6_a_redirect_is_an_error_and_the_key_does_not_follow_it() {
    let other = serve(Script::new().reply(hello()));
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/v1/messages", other.base_url());
        let error = answer(Reply::new(status, "").header("location", &target)).await;
        assert_eq!((error.status, error.retryable), (Some(status), false));
        assert!(error.message.contains(&format!("it redirects to {target}")), "{error}");
    }
    assert_eq!((other.connections(), other.requests().len()), (0, 0));
    // The twin: asked directly, the other server answers.
    assert!(ask(&provider(&other.base_url())).await.iter().all(Result::is_ok));
}

/// Accepts one connection and reads the request to its end.
fn accept(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !seen.ends_with(b"]}") {
        let count = stream.read(&mut buffer).expect("a request");
        seen.extend_from_slice(&buffer[..count]);
    }
    assert!(String::from_utf8_lossy(&seen).contains(KEY), "the key is sent");
    stream
}

/// Waits until the other side closes, and returns how long that took.
fn closed(mut stream: TcpStream) -> Duration {
    let begin = Instant::now();
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    match stream.read(&mut [0; 16]) {
        Ok(0) => begin.elapsed(),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => begin.elapsed(),
        other => panic!("not closed: {other:?}"),
    }
}

#[tokio::test]
async fn e5_dropping_the_stream_closes_the_socket_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let provider = provider(&format!("http://{}", listener.local_addr().expect("an address")));

    // Within the reply.
    let mut events = provider.stream(request(&[user("hello")]));
    let server = std::thread::spawn(move || {
        let mut stream = accept(&listener);
        let text = hello();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("the head");
        stream.write_all(&text.as_bytes()[..text.len() / 2]).expect("half a reply");
        (listener, closed(stream))
    });
    assert!(matches!(events.next().await, Some(Ok(StreamEvent::MessageStarted { .. }))));
    drop(events);
    let (listener, took) =
        tokio::task::spawn_blocking(|| server.join().expect("the server")).await.expect("joined");
    assert!(took < Duration::from_secs(5), "{took:?}");

    // Before the reply.
    let mut events = provider.stream(request(&[user("hello")]));
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let server = std::thread::spawn(move || {
        let stream = accept(&listener);
        sender.send(()).expect("a receiver");
        closed(stream)
    });
    tokio::select! {
        item = events.next() => panic!("no reply was sent: {item:?}"),
        got = receiver => got.expect("a request"),
    }
    drop(events);
    let took = tokio::task::spawn_blocking(|| server.join().expect("the server")).await.expect("joined");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_connection_is_used_again_for_the_next_turn() {
    let server = serve(Script::new().reply(hello()).reply(hello()).reply(hello()));
    let provider = provider(&server.base_url());
    for _ in 0..3 {
        assert!(ask(&provider).await.iter().all(Result::is_ok));
    }
    assert_eq!((server.requests().len(), server.connections(), server.remaining()), (3, 1, 0));
}

#[tokio::test]
async fn a_script_at_its_end_says_so_and_is_not_asked_again() {
    let error = failure(&serve(Script::new()).base_url()).await;
    assert!(error.message.contains("the script has no reply to request 1") && !error.retryable, "{error}");
}

#[tokio::test]
async fn debug_stream_prints_the_message_or_the_error() {
    let server = serve(Script::new().reply(hello()).reply_error(529, "overloaded_error", "Overloaded"));
    let request = br#"{"model": "m", "max_tokens": 1.0e1}"#;
    let first = debug::stream(config(&server.base_url()), request).await;
    insta::assert_snapshot!(first, @r#"{"ok":true,"message":{"id":"msg_replay","type":"message","role":"assistant","model":"replay","content":[{"type":"text","text":"Hello there."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}}"#);
    let second = debug::stream(config(&server.base_url()), request).await;
    insta::assert_snapshot!(second, @r#"{"ok":false,"error":{"type":"overloaded_error","message":"the API answered 529 (overloaded_error): Overloaded","status":529,"request_id":null,"retryable":true}}"#);
    let sent = server.requests().remove(0).body;
    assert_eq!(sent, r#"{"model":"m","max_tokens":1.0e1,"stream":true}"#);
    let third = debug::stream(config(&server.base_url()), b"no JSON").await;
    assert_eq!(
        (third["ok"].clone(), third["error"]["type"].clone()),
        (json!(false), json!("invalid_request_error"))
    );
}
