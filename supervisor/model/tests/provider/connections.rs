//! Tests of connections that fail, stay silent, break off, or are dropped by the client.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use model::provider::anthropic::Anthropic;
use model::provider::{Credential, ModelProvider, StreamEvent, Timeouts};
use model::replay::{Reply, Script};
use serde_json::json;

use crate::{KEY, ask, config, failure, hello, provider, request, serve, user};

#[tokio::test]
async fn a_connection_that_fails_says_where_and_on_which_host() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let refused = failure(&format!("http://{free}")).await;
    assert_eq!(refused.message, format!("{free} refused the connection: no server listens there"));
    assert_eq!(refused.hint.as_deref(), Some("start the server, or check --base-url"));
    assert_eq!((refused.kind.as_str(), refused.retryable), ("connection", false), "nothing could heal it");

    let unknown = failure("http://no-such-host.invalid:81/x").await;
    assert!(unknown.message.starts_with("cannot look up the name no-such-host.invalid:81"), "{unknown}");
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
    // Nobody accepts connections: once the queue is full, the kernel drops further ones (listen(2), backlog).
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
        queued.push(stream);
        assert!(queued.len() < 10_000, "the queue does not fill");
    }
    let timeouts = Timeouts { connect: Duration::from_millis(100), ..Timeouts::default() };
    let mut config = config(&format!("http://{address}"));
    config.connection.timeouts = timeouts;
    let items = ask(&Anthropic::new(config).expect("a provider")).await;
    let [Err(error)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((error.kind.as_str(), error.retryable), ("timeout", true));
    assert!(error.message.starts_with(&format!("no connection to {address} within 100ms")), "{error}");
}

#[tokio::test]
async fn e5_silence_is_a_timeout_before_and_within_a_reply() {
    let text = hello();
    let half = text[..text.len() / 2].to_owned();
    let (short, long) = (Duration::from_millis(100), Duration::from_mins(5));
    // Each limit is tested by itself: the other one is too long to matter.
    for (reply, first_byte, idle, expected) in [
        (Reply::sse(half).then_silence(), long, short, "sent nothing for 100ms"),
        (Reply::sse("").then_silence(), short, long, "did not begin to answer within 100ms"),
    ] {
        let server = serve(Script::new().push(reply));
        let timeouts = Timeouts { first_byte, idle, ..Timeouts::default() };
        let mut config = config(&server.base_url());
        config.connection.timeouts = timeouts;
        let mut items = ask(&Anthropic::new(config).expect("a provider")).await;
        let Some(Err(error)) = items.pop() else { panic!("{items:?}") };
        assert_eq!((error.kind.as_str(), error.retryable), ("timeout", true));
        assert!(error.message.ends_with(expected), "{error}");
        assert_eq!(items.is_empty(), idle == long, "{items:?}");
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
async fn e6_a_redirect_is_an_error_and_the_key_does_not_follow_it_in_either_header() {
    let other = serve(Script::new().reply(hello()));
    let target = format!("{}/v1/messages", other.base_url());
    let headers = [(Credential::ApiKey, "x-api-key"), (Credential::Bearer, "authorization")];
    for (status, (credential, header)) in
        [301, 302, 303, 307, 308].into_iter().zip(headers.into_iter().cycle())
    {
        let server = serve(Script::new().push(Reply::new(status, "").header("location", &target)));
        let mut config = config(&server.base_url());
        config.connection.credential = credential;
        let items = ask(&Anthropic::new(config).expect("a provider")).await;
        let [Err(error)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((error.status, error.retryable), (Some(status), false));
        let hint = error.hint.clone().unwrap_or_default();
        assert!(hint.ends_with(&format!("the key is not sent on to {target}")), "{hint}");
        assert!(server.requests()[0].header(header).is_some(), "the key is sent as {header}");
    }
    assert_eq!((other.connections(), other.requests().len()), (0, 0));
    // The other server answers requests that are sent to it directly.
    assert!(ask(&provider(&other.base_url())).await.iter().all(Result::is_ok));
}

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

    // The stream is dropped within the reply.
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

    // The stream is dropped before the reply.
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
