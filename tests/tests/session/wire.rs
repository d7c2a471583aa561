//! Tests replies of a dishonest server with the real program: each run ends in time, with a message and a result.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::replay::{Block, ReplayServer, Reply, Usage, chat, responses, sse};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tests::replies::{done, gzipped, says, serve};
use tests::side_by_side::many_at_once;
use tests::world::KEY;
use tests::{Finished, User, World};

const PROVIDERS: [&str; 3] = ["anthropic", "openai", "responses"];

fn world(settings: &str) -> World {
    let world = World::new(User::Myself);
    world.configure(settings);
    world
}

/// Creates a world in which each request is sent only once.
fn once() -> World {
    world("retries.attempts = 1")
}

fn exec(world: &World, server: &ReplayServer, provider: &str) -> Command {
    let mut command = world.exec(server, &["--provider", provider, "--model", "claude-opus-5-5"]);
    command.env("OPENAI_API_KEY", KEY);
    command
}

fn run(world: &World, server: &ReplayServer, provider: &str) -> Finished {
    Finished::of(&mut exec(world, server, provider))
}

/// Returns a reply with this text, in the format of a provider.
fn words(provider: &str, text: &str) -> String {
    let blocks = [Block::text(text)];
    match provider {
        "openai" => chat::message(&blocks, "stop", Usage::default()),
        "responses" => responses::message(&blocks, "end_turn", Usage::default()),
        _ => sse::message(&blocks, "end_turn", Usage::default()),
    }
}

fn words_around(provider: &str, middle: &str) -> String {
    let whole = words(provider, "It goes on.");
    let (first, rest) = whole.split_once("\n\n").unwrap();
    format!("{first}\n\n{middle}{rest}")
}

fn message(run: &Finished) -> String {
    run.result()["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn w1_a_reply_without_a_visible_byte_is_tried_again() {
    let world = world("");
    for provider in PROVIDERS {
        for (name, body) in [("nothing", ""), ("blanks", " \r\n\n"), ("a mark", "\u{feff}")] {
            let first = Reply::sse(body).header("content-length", &body.len().to_string());
            let server = serve([first, Reply::sse(words(provider, "Done."))]);
            let run = run(&world, &server, provider);
            assert_eq!((run.code, server.requests().len()), (0, 2), "{provider} {name}: {}", run.stderr);
            let failed = &run.events_of("model_failed")[0];
            assert_eq!(failed["message"], "the reply ended before it began", "{provider} {name}");
        }
    }
}

#[test]
fn w2_blanks_before_a_reply_are_bounded() {
    let world = once();
    let blanks = gzipped(vec![b'\n'; 64 << 20]);
    for provider in PROVIDERS {
        let server = serve([blanks.clone()]);
        let began = Instant::now();
        let run = run(&world, &server, provider).expect(6);
        assert!(began.elapsed() < Duration::from_secs(30), "{provider}: {:?}", began.elapsed());
        assert_eq!(
            message(&run),
            "the provider sent more than 65536 spaces or line ends before the reply [provider-failed]",
            "{provider}"
        );
    }
}

/// Interrupts a run after the first text of a reply. Returns the time until its end, and the exit code.
fn interrupted(mut run: Command, signal: Signal) -> (Duration, i32) {
    let mut child = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"text_delta\"") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "no word of the reply");
    }
    let began = Instant::now();
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    stdout.read_to_end(&mut Vec::new()).unwrap();
    (began.elapsed(), child.wait().unwrap().code().unwrap())
}

#[test]
fn what_was_counted_before_an_interrupt_is_taken_and_the_rest_is_marked_as_an_estimate() {
    let world = world("");
    let usage = Usage { input: 40, cache_creation: 60, cache_read: 4_900, output: 500 };
    let whole = sse::message(&[Block::text("Begun!")], "end_turn", usage);
    let begin =
        whole[..whole.find("content_block_stop").unwrap()].rsplit_once("event:").unwrap().0.to_owned();
    let server = serve([Reply::sse(begin).then_silence()]);
    let run = world.task(&server.base_url(), ["do it", "--output", "stream-json", "--deltas"]);
    let (_, ended) = interrupted(run, Signal::SIGINT);
    assert_eq!(ended, 130);
    let log = world.log();
    let of = |kind: &str| log.iter().find(|event| event["type"] == kind).unwrap()["data"].clone();
    for usage in [&of("assistant_message")["usage"], &of("result")["usage"]] {
        let told = ["input", "cache_creation", "cache_read"].map(|name| usage[name].as_u64().unwrap());
        assert_eq!(told, [40, 60, 4_900], "{usage}");
        assert_eq!(usage["estimated"], usage["output"].as_u64().unwrap() - 1, "{usage}");
    }
    let mut sessions = world.bailiwick(["sessions", "--project"]);
    let listed = Finished::of(sessions.arg(world.project())).expect(0).stdout;
    assert!(listed.contains("~5.0k in"), "{listed}");
}

#[test]
fn w2_a_signal_is_answered_while_a_bomb_is_unpacked() {
    let world = world("");
    let whole = says("Begun!", "end_turn");
    let words = whole.find("Begun!").unwrap();
    let (begin, end) = whole.split_at(words + whole[words..].find("\n\n").unwrap() + 2);
    let bomb = gzipped([begin, &": no event\n".repeat((60 << 20) / 11), end].concat());
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let server = serve([bomb.clone()]);
        let run = world.task(&server.base_url(), ["do it", "--output", "stream-json", "--deltas"]);
        let (took, ended) = interrupted(run, signal);
        assert_eq!(ended, code, "{signal}");
        assert!(took < Duration::from_secs(10), "{signal}: {took:?}");
    }
}

#[test]
fn w3_bytes_that_make_no_event_count() {
    let world = once();
    for provider in PROVIDERS {
        let comment = format!(": {}\n", "x".repeat(4096));
        let server = serve([gzipped(words_around(provider, &comment.repeat((65 << 20) / 4096)))]);
        let run = run(&world, &server, provider).expect(6);
        assert_eq!(message(&run), "the reply has more than 67108864 bytes [provider-failed]", "{provider}");
    }
}

#[test]
fn w4_a_reply_that_makes_no_progress_is_a_time_out_and_a_slow_one_is_none() {
    many_at_once(PROVIDERS.len(), PROVIDERS, |provider| {
        let world = world("retries.attempts = 1\ntimeouts.progress_s = 2");
        let drip = |text: &str| words_around(provider, &text.repeat(60));
        let paced = |body: String| Reply::sse(body).chunked(12).paced(Duration::from_millis(60));
        let server = serve([paced(drip(": a comment\n"))]);
        let run = run(&world, &server, provider).expect(6);
        let host = server.base_url()["http://".len()..].to_owned();
        let said = "sent no part of its reply for 2s [connection-failed]\n  hint: check the server, or raise timeouts.progress_s in config.toml";
        assert_eq!(message(&run), format!("{host} {said}"), "{provider}");
        assert_eq!(run.events_of("model_failed")[0]["kind"], "timeout");
        // Control: a reply as slow as that, whose pieces all contain text.
        let server = serve([paced(words(provider, &"word ".repeat(40))).chunked(100)]);
        self::run(&world, &server, provider).expect(0);
    });
}

#[test]
fn w5_the_body_of_an_error_has_one_deadline() {
    let world = world("retries.attempts = 1\ntimeouts.idle_s = 1");
    let body = r#"{"error":{"message":"it is down"}}"#.to_owned() + &" ".repeat(200);
    let server = serve([Reply::new(500, body).chunked(34).paced(Duration::from_millis(500))]);
    let slow = serve([Reply::new(500, " ".repeat(200)).chunked(1).paced(Duration::from_millis(200))]);
    let began = Instant::now();
    let run = run(&world, &server, "anthropic").expect(6);
    assert!(message(&run).contains("500"), "{}", message(&run));
    self::run(&world, &slow, "anthropic").expect(6);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn w6_a_reply_has_so_many_calls_and_no_more() {
    let world = once();
    let calls = |count: usize| {
        let calls = (0..count).map(|index| Block::tool_use(format!("c{index}"), "none", "{}"));
        chat::message(&calls.collect::<Vec<_>>(), "tool_calls", Usage::default())
    };
    let server = serve([Reply::sse(calls(1025))]);
    let run = run(&world, &server, "openai").expect(6);
    assert_eq!(message(&run), "the provider sent more than 1024 tool calls in one reply [provider-failed]");
}

#[test]
fn w8_groqs_own_place_for_usage_counts() {
    let world = once();
    let whole = chat::message(&[Block::text("Done.")], "stop", Usage::default());
    let usage = r#""usage":{"#;
    assert!(whole.contains(usage));
    let groq = whole.replace(usage, r#""x_groq":{"usage":{"#);
    let groq: String = groq
        .split_inclusive("\n\n")
        .map(|event| {
            let end = if event.contains("x_groq") { "}}\n\n" } else { "}\n\n" };
            event.replacen("}\n\n", end, 1)
        })
        .collect();
    let count =
        |body: String| run(&world, &serve([Reply::sse(body)]), "openai").expect(0).result()["usage"].clone();
    let (plain, own) = (count(whole), count(groq));
    assert_eq!(plain, own);
    assert_ne!(own["input"], Value::from(0));
}

#[test]
fn w9_a_reply_that_is_none_is_said_to_be_none() {
    let world = once();
    let gzip_twice = tests::replies::gzip(tests::replies::gzip(done()));
    let cases = [
        (
            Reply::sse("upstream is not there\nsecond line"),
            "the server at [server]/v1/messages does not speak Anthropic messages: the server sent \"upstream is not there\" [provider-failed]\n  hint: check --base-url and any proxy",
        ),
        (
            Reply::new(200, "[1, 2]").header("content-type", "application/json"),
            "the server at [server]/v1/messages does not speak Anthropic messages: the server sent \"[1, 2]\" [provider-failed]\n  hint: check --base-url and any proxy",
        ),
        (
            Reply::sse("x").header("content-encoding", "br"),
            "the server sent its reply in the encoding \"br\", which Bailiwick did not ask for [provider-failed]\n  hint: check --base-url and any proxy",
        ),
        (
            Reply::sse(gzip_twice.clone()).header("content-encoding", "gzip, gzip"),
            "the server sent its reply in the encoding \"gzip, gzip\", which Bailiwick did not ask for [provider-failed]\n  hint: check --base-url and any proxy",
        ),
        (
            Reply::new(304, ""),
            "the API answered 304 (invalid_response): Not Modified, with an empty body [provider-failed]",
        ),
    ];
    for (reply, said) in cases {
        let server = serve([reply, Reply::sse(done())]);
        let run = run(&world, &server, "anthropic").expect(6);
        assert_eq!(message(&run).replace(&server.base_url(), "[server]"), said);
        assert_eq!(server.requests().len(), 1);
    }
}

/// Returns the key with JSON escapes in it.
fn escaped() -> String {
    KEY.replace('-', r"\u002d")
}

/// Changes a reply with a tool call into one that pauses the turn while a tool of the vendor's runs.
fn paused(reply: &str) -> String {
    const SEARCH: &str = r#"event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta"#;
    let reply = reply.replace("\"tool_use\"", "\"pause_turn\"");
    reply.replacen("event: message_delta", SEARCH, 1)
}

fn says_the_key() -> ReplayServer {
    let (first, second) = KEY.split_at(10);
    let next = r#""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""#;
    let text = says(&format!("Whole: {KEY} In-pieces: KEY"), "tool_use");
    let text = text.replace("KEY", &format!("{first}{next}{second}")).replace("msg_replay", KEY);
    let call = Block::tool_use(
        "toolu_1",
        "shell_exec",
        serde_json::json!({"command": format!("echo {KEY}")}).to_string(),
    );
    let call = sse::message(&[call], "tool_use", Usage::default())
        .replace("\"model\":\"replay\"", &format!("\"model\":\"{KEY}\""));
    let error = format!(r#"{{"type":"error","error":{{"type":"api_error","message":"no {}"}}}}"#, escaped());
    serve([
        Reply::new(500, error).header("content-type", "application/json").header("retry-after-ms", "1"),
        Reply::sse(paused(&text)),
        Reply::sse(call),
        Reply::sse(done()),
    ])
}

/// Returns all that a run wrote: its output, its log, and its recording.
fn written(world: &World, run: &Finished, recording: &std::path::Path) -> Vec<(String, String)> {
    let mut all = vec![("stdout".to_owned(), run.stdout.clone()), ("stderr".to_owned(), run.stderr.clone())];
    for directory in [recording, &world.own().join("state/sessions")] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read(&path).unwrap();
            all.push((path.display().to_string(), String::from_utf8_lossy(&text).into_owned()));
        }
    }
    all
}

#[test]
fn w7_the_key_is_in_nothing_that_is_written() {
    for output in ["text", "stream-json", "json"] {
        let world = world("retries.attempts = 2");
        let recording = world.home().join("recording");
        let server = says_the_key();
        let mut command = world.task(&server.base_url(), ["--output", output, "--mode", "auto", "--record"]);
        let run = Finished::of(command.arg(&recording).arg("do it")).expect(0);
        assert_eq!(server.remaining(), 0);
        for (name, text) in written(&world, &run, &recording) {
            assert!(!text.contains(KEY) && !text.contains(&escaped()), "{output} {name}: {text}");
        }
        // The call is carried out as the model wrote it. Only the written records lack the key.
        let told = tests::world::tool_results(&server, 3)[0]["content"].to_string();
        assert!(told.contains(KEY), "{told}");
        let last = world.log().into_iter().rfind(|event| event["type"] == "result").unwrap();
        assert_eq!(last["data"]["exit_code"], 0);
    }
}

#[test]
fn w9_a_tools_name_is_one_that_an_api_takes_back() {
    let world = once();
    let call = |provider: &str, name: &str| {
        let blocks = [Block::tool_use("c_1", name, "{}")];
        match provider {
            "openai" => chat::message(&blocks, "tool_calls", Usage::default()),
            "responses" => responses::message(&blocks, "tool_use", Usage::default()),
            _ => sse::message(&blocks, "tool_use", Usage::default()),
        }
    };
    for provider in PROVIDERS {
        for name in ["a\nbailiwick: all is well", "../../etc"] {
            let server = serve([Reply::sse(call(provider, name)), Reply::sse(words(provider, "Done."))]);
            let flags = ["--provider", provider, "--model", "claude-opus-5-5", "do it"];
            let mut command = world.task(&server.base_url(), flags);
            let run = Finished::of(command.env("OPENAI_API_KEY", KEY)).expect(0);
            let sent = String::from_utf8(server.requests()[1].body.to_vec()).unwrap();
            let shown = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let quoted = serde_json::to_string(name).unwrap();
            assert!(sent.contains(&format!("\"name\":\"{shown}\"")), "{provider}: {sent}");
            assert!(!sent.contains(quoted.trim_matches('"')), "{provider}: {sent}");
            // A name of this form is that of a tool of an MCP server.
            let row = match shown.split_once("__").filter(|(server, _)| !server.is_empty()) {
                Some((server, tool)) => format!("→ call {server} {tool}"),
                None => format!("→ {shown}"),
            };
            assert!(run.stderr.contains(&row), "{}", run.stderr);
        }
        let server = serve([Reply::sse(call(provider, ""))]);
        let run = run(&world, &server, provider).expect(6);
        assert!(message(&run).contains("name"), "{provider}: {}", message(&run));
    }
}
