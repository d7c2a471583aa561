//! Tests the answers that a client of the relay gets.

use std::io::Write;
use std::os::unix::net::UnixStream;

use model::replay::{Block, Reply, Usage, chat, responses, sse};
use serde_json::json;
use tests::random::Random;
use tests::replies::{done, model_of, serve};
use tests::side_by_side::many_at_once;
use tests::world::KEY;
use tests::{Finished, User, World};

use crate::relay::{Relay, ask, exec, head, log, post, reply, unix, usual};

#[test]
fn a_bug_is_fixed_behind_a_relay_without_a_key_in_each_dialect() {
    let edit =
        || Block::tool_use("toolu_1", "edit_file", r#"{"path":"a.txt","old_string":"1","new_string":"2"}"#);
    let said = || Block::text("Done.");
    let of_messages =
        [sse::message(&[Block::thinking("hm", "s="), edit()], "tool_use", Usage::default()), done()];
    let of_chat = [
        chat::message(&[Block::thinking("hm", ""), edit()], "tool_calls", Usage::default()),
        chat::message(&[said()], "stop", Usage::default()),
    ];
    let of_responses = [
        responses::message(&[Block::thinking("hm", "e"), edit()], "completed", Usage::default()),
        responses::message(&[said()], "completed", Usage::default()),
    ];
    for (provider, model, path, replies) in [
        ("anthropic", "claude-opus-5-5", "/v1/messages", of_messages),
        ("openai", "gpt-5-mini", "/v1/chat/completions", of_chat),
        ("responses", "gpt-5-mini", "/v1/responses", of_responses),
    ] {
        let world = World::new(User::Myself);
        world.file("a.txt", "1\n");
        let server = model_of(replies);
        let (relay, socket) = Relay::of_one(&world, &server, &["--provider", provider]);
        let flags = ["--provider", provider, "--model", model];
        let run = Finished::of(&mut exec(&world, &unix(&socket), &flags)).expect(0);
        assert_eq!(world.read("a.txt"), "2\n", "{provider}");
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{provider}");
        for request in &requests {
            assert_eq!((&*request.method, &*request.path), ("POST", path));
            let key = request.header("x-api-key").or(request.header("authorization")).unwrap();
            assert!(key.contains(&format!("[{} bytes]", KEY.len())), "{key}");
            assert!(request.header("user-agent").unwrap().starts_with("bailiwick/"));
        }
        assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY));
        let log = log(&world);
        let of: Vec<_> =
            log.iter().map(|line| (&line["client"], &line["api"], &line["end"], &line["status"])).collect();
        let expected = (json!("one"), json!(provider), json!("complete"), json!(200));
        assert!(
            of.iter()
                .all(|of| (of.0, of.1, of.2, of.3) == (&expected.0, &expected.1, &expected.2, &expected.3)),
            "{of:?}"
        );
        assert_eq!(log[0]["usage"], run.events_of("assistant_message")[0]["usage"], "{provider}");
        let words = relay.end();
        assert!(words.contains("one: 2 requests, 0 refused"), "{words}");
        assert!(!socket.exists(), "the socket goes with the relay");
    }
}

#[test]
fn a_refused_request_never_reaches_the_provider_and_names_its_field() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    let (_relay, socket) = Relay::of_one(&world, &server, &[]);
    for (name, value) in [
        ("tools", json!([{"type": "web_search_20250305", "name": "web_search"}])),
        ("mcp_servers", json!([])),
        ("container", json!("c")),
        ("stream", json!(false)),
    ] {
        let mut body = usual();
        body[name] = value;
        let (status, text) = ask(&socket, &body);
        assert!(status == 400 && text.contains(name) && text.contains("invalid_request_error"), "{text}");
    }
    let body = usual().to_string();
    let connect = || UnixStream::connect(&socket).unwrap();
    for path in ["/v1/messages?beta=true", "/v1/messages/batches", "/v1/files", "/v1/chat/completions", "/"] {
        assert_eq!(post(connect(), path, &body).0, 404, "{path}");
    }
    let raw = |text: &str| {
        let mut stream = connect();
        stream.write_all(text.as_bytes()).unwrap();
        reply(stream).0
    };
    let length = body.len();
    assert_eq!(raw("GET /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"), 405);
    let with = |more: &str| {
        let head = head("/v1/messages", length);
        raw(&format!("{}{more}\r\n\r\n{body}", head.trim_end()))
    };
    assert_eq!(with("\r\nanthropic-beta: mcp-client-2025-04-04"), 400);
    assert_eq!(with("\r\nanthropic-beta: interleaved-thinking-2025-05-14, mcp-client-2025-04-04"), 400);
    assert_eq!(with("\r\ncontent-encoding: gzip"), 400);
    assert_eq!(with("\r\ncontent-length: 3"), 400);
    let smuggled =
        format!("0\r\n\r\nPOST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
    let both = head("/v1/messages", smuggled.len());
    assert_eq!(raw(&format!("{}\r\ntransfer-encoding: chunked\r\n\r\n{smuggled}", both.trim_end())), 400);
    assert_eq!(raw(&head("/v1/messages", 40_000_000)), 413);
    assert!(server.requests().is_empty(), "{:?}", server.requests());
    // Control: the same request without the fault.
    assert_eq!(ask(&socket, &usual()).0, 200);
    assert_eq!(server.requests().len(), 1);
    let log = log(&world);
    assert!(log.iter().filter(|line| line["end"] == "refused").count() > 10);
    assert!(log.iter().all(|line| !line.to_string().contains("\"hi\"")), "prompts are not logged");
}

#[test]
fn errors_of_the_provider_go_on_and_tell_nothing_of_the_key_or_the_address() {
    let world = World::new(User::Myself);
    let echo = format!("Incorrect API key provided: {KEY}");
    let server = serve([
        Reply::error(529, "overloaded_error", "Overloaded")
            .header("retry-after", "7")
            .header("x-secret", "s"),
        Reply::error(400, "invalid_request_error", &format!("prompt is too long {KEY}")),
        Reply::error(401, "authentication_error", &echo),
        Reply::new(502, "<html>gateway of 127.0.0.1</html>"),
        Reply::new(302, "").header("location", "http://elsewhere.example"),
        Reply::sse("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"),
    ]);
    let (_relay, socket) = Relay::of_one(&world, &server, &[]);
    let (statuses, texts): (Vec<_>, Vec<_>) = (0..6).map(|_| ask(&socket, &usual())).unzip();
    assert_eq!(statuses, [529, 400, 403, 502, 502, 200]);
    assert!(
        texts[0].contains("retry-after: 7")
            && texts[0].contains("Overloaded")
            && !texts[0].contains("x-secret")
    );
    assert!(texts[1].contains("prompt is too long ***"));
    assert!(texts[2].contains("did not accept the relay's key"));
    let address = server.base_url();
    for text in &texts {
        let host = address.trim_start_matches("http://");
        assert!(!text.contains(KEY) && !text.contains(host) && !text.contains("html"), "{text}");
        assert!(!text.contains("elsewhere"), "{text}");
    }
    assert!(
        log(&world).iter().all(|line| line["cost_usd"].as_f64().is_none_or(|cost| cost == 0.0)
            && !line.to_string().contains(KEY))
    );
}

#[test]
fn requests_that_were_changed_by_chance_arrive_whole_or_not_at_all() {
    let world = World::new(User::Myself);
    let server = serve((0..400).map(|_| Reply::sse(done())));
    let (_relay, socket) = Relay::of_one(&world, &server, &[]);
    let body = usual().to_string();
    let valid = format!("{}{body}", head("/v1/messages", body.len())).into_bytes();
    let answered = many_at_once(8, 0..300, |case| {
        let mut numbers = Random::new(case);
        let mut random = |below: usize| usize::try_from(numbers.below(below as u64)).unwrap();
        let mut bytes = valid.clone();
        for _ in 0..=random(3) {
            let (at, byte) = (random(bytes.len()), b"\0\r\n\"\\{}[],:0az\xff "[random(16)]);
            match random(3) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        let mut stream = UnixStream::connect(&socket).unwrap();
        // The relay waits for the rest of an incomplete request. This client does not wait.
        stream.set_read_timeout(Some(std::time::Duration::from_millis(400))).unwrap();
        let _ = stream.write_all(&bytes);
        reply(stream).0 != 0
    });
    let answered = answered.into_iter().filter(|answered| *answered).count();
    assert!(answered > 200, "{answered}");
    for request in server.requests() {
        let arrived: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let names: Vec<_> = arrived.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["model", "max_tokens", "stream", "messages"], "{arrived}");
        assert_eq!((&request.path[..], &arrived["stream"]), ("/v1/messages", &json!(true)));
        let text = arrived["messages"][0]["content"][0].as_object().unwrap();
        assert!(text.keys().eq(["type", "text"]) && arrived["model"] == "claude-opus-5-5", "{arrived}");
    }
    // The relay still serves clients.
    assert_eq!(ask(&socket, &usual()).0, 200);
}

#[test]
fn a_spent_budget_is_told_with_the_flags_of_the_relay() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    let (_relay, socket) = Relay::of_one(&world, &server, &["--max-tokens", "5"]);
    let run = Finished::of(&mut exec(&world, &unix(&socket), &[])).expect(6);
    assert!(run.stderr.contains("its limit is 5 tokens"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: start a relay whose --max-usd and --max-tokens"), "{}", run.stderr);
    assert!(server.requests().is_empty());
}
