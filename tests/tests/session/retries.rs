//! Tests failed requests: they are repeated with the same transcript, each failure is reported, and no call takes
//! effect twice. The names of the tests begin with the number of the vendor's rule that they test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use model::replay::{Block, ReplayServer, Reply, sse};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::replies::{done, says, serve};
use tests::{Finished, User, World, wait_until};

fn world() -> World {
    let world = World::new(User::Myself);
    world.file("a.txt", "a\n");
    world
}

/// Returns the message in the last event of the run.
fn message(run: &Finished) -> String {
    run.result()["message"].as_str().unwrap_or_default().to_owned()
}

/// Returns a reply with text, and a call that adds a line to a file of the project.
fn speaks_and_calls() -> String {
    let call = Block::tool_use("toolu_once", "shell_exec", json!({"command": "echo ran >> ran"}).to_string());
    sse::message(&[Block::text("I do it now."), call], "tool_use", sse::Usage::default())
}

/// Returns the positions at which a reply can be cut so that its call must not run: at the beginning, in the text, in
/// the arguments, after the last block, and before the end of the message.
fn cuts(whole: &str) -> Vec<usize> {
    let (first, last) = (|text| whole.find(text).unwrap(), |text| whole.rfind(text).unwrap());
    vec![
        0,
        last("text_delta"),
        last("input_json_delta"),
        last("content_block_stop") + 60,
        first("message_delta"),
    ]
}

#[test]
fn e2_e3_an_overloaded_provider_is_asked_again_and_every_attempt_is_an_event() {
    let world = world();
    let overloaded = || Reply::error(529, "overloaded_error", "Overloaded").header("retry-after-ms", "1");
    let server = serve([overloaded(), overloaded(), Reply::sse(done())]);
    let run = world.run(&server, &[]).expect(0);
    let attempts: Vec<_> =
        run.events_of("model_requested").iter().map(|data| data["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 2, 3]);
    let failed = run.events_of("model_failed");
    let line =
        |data: &Value| format!("{} in {} ms, void: {}", data["kind"], data["retry_in_ms"], data["discarded"]);
    let expected = r#""overloaded_error" in 1 ms, void: null"#;
    assert_eq!(failed.iter().map(line).collect::<Vec<_>>(), [expected, expected]);
    assert_eq!((run.result()["steps"].clone(), run.result()["text"].clone()), (json!(1), json!("Done.")));
}

#[test]
fn e4_s8_a_call_of_a_cut_reply_never_runs_and_the_same_bytes_are_sent_again() {
    let whole = speaks_and_calls();
    for cut in cuts(&whole) {
        let world = world();
        let server =
            serve([Reply::sse(whole.clone()).cut_after(cut), Reply::sse(whole.clone()), Reply::sse(done())]);
        let run = world.run(&server, &["--mode", "auto"]).expect(0);
        assert_eq!(world.read("ran"), "ran\n", "cut after {cut}: it ran once");
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        assert_eq!(
            requests[0].body, requests[1].body,
            "cut after {cut}: nothing of it is in the next request"
        );
        assert_eq!(run.events_of("tool_call_started").len(), 1);
        // The text that had arrived is discarded, and the person is told so.
        let failed = run.events_of("model_failed");
        assert_eq!(failed[0]["discarded"].as_bool().unwrap_or_default(), cut > 0, "cut after {cut}");
        assert_eq!(run.events_of("assistant_message").len(), 2);
    }
}

#[test]
fn z8_what_was_streamed_of_a_cut_reply_is_not_on_standard_output() {
    let whole = says("Half of thïs is all that comes.", "end_turn");
    let last = whole.rfind("text_delta").unwrap();
    let within_a_character = whole.find('ï').unwrap() + 1;
    let overloaded = json!({"error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failed = whole[..whole.find("event: content_block_stop").unwrap()].to_owned();
    let failed = failed + &sse::event("error", &overloaded);
    let no_end = whole[..whole.find("event: message_delta").unwrap()].to_owned();
    let thought =
        sse::message(&[Block::thinking("Half", "s"), Block::text("so")], "end_turn", sse::Usage::default());
    let in_thought = thought.find("content_block_stop").unwrap();
    let cut = |at: usize| Reply::sse(whole.clone()).cut_after(at);
    for (how, broken) in [
        ("in its last words", vec![cut(last)]),
        ("within a character", vec![cut(within_a_character)]),
        ("by an error in the stream", vec![Reply::sse(failed)]),
        ("without its last event", vec![Reply::sse(no_end)]),
        ("in its thinking", vec![Reply::sse(thought).cut_after(in_thought)]),
        ("twice", vec![cut(last), cut(within_a_character)]),
    ] {
        let world = world();
        let server = serve(broken.into_iter().chain([Reply::sse(done())]));
        let run = Finished::of(&mut world.task(&server.base_url(), ["do it"])).expect(0);
        assert_eq!(run.stdout, "Done.\n", "{how}");
        let told = run.stderr.contains("; trying again in ") && !run.stderr.contains("above");
        assert!(told, "{how}: {}", run.stderr);
    }
}

#[test]
fn e3_the_budget_of_retries_is_a_setting_and_past_it_the_run_ends_with_six() {
    let overloaded = || Reply::error(529, "overloaded_error", "Overloaded");
    let run = |settings: &str, replies: Vec<Reply>| {
        let world = world();
        world.configure(settings);
        let server = serve(replies);
        let run = world.run(&server, &[]).expect(6);
        (server.requests().len(), message(&run))
    };
    let at_once = || overloaded().header("retry-after-ms", "1");
    let attempts = run("retries.attempts = 3", vec![at_once(), at_once(), at_once(), at_once()]);
    let said = "the API answered 529 (overloaded_error): Overloaded";
    let hint = "\n  hint: try again later, or choose another model with --model";
    assert_eq!(attempts, (3, format!("{said}; given up after 3 attempts [provider-failed]{hint}")));
    let budget = run("retries.budget_s = 0", vec![overloaded()]);
    let why = "given up: a turn waits for its provider no longer than 0 s in all (retries.budget_s)";
    assert_eq!(budget, (1, format!("{said}; {why} [provider-failed]{hint}")));
    let wait = run("retries.longest_wait_s = 2", vec![overloaded().header("retry-after", "3")]);
    let why =
        "the provider asks to wait 3 s, and Bailiwick waits at most 2 s at once (retries.longest_wait_s)";
    assert_eq!(wait, (1, format!("{said}; {why} [provider-failed]{hint}")));
}

#[test]
fn e3_a_wait_without_end_fails_a_run_that_nobody_watches_at_once() {
    let world = world();
    let server = serve([Reply::error(429, "rate_limit_error", "Slow down").header("retry-after", "3600")]);
    let begin = Instant::now();
    let run = world.run(&server, &[]).expect(6);
    assert!(begin.elapsed() < Duration::from_mins(1));
    assert!(
        message(&run).contains("the provider asks to wait 3600 s, and Bailiwick waits at most 300 s at once"),
        "{}",
        message(&run)
    );
}

#[test]
fn e5_each_time_out_has_its_setting_and_its_sentence() {
    let whole = says("It begins.", "end_turn");
    let half = whole[..whole.len() / 2].to_owned();
    let host = |server: &ReplayServer| server.base_url()["http://".len()..].to_owned();
    let cases = [
        (
            "first_byte_s = 1",
            Reply::sse("").then_silence(),
            "did not begin to answer within 1s [connection-failed]\n  hint: check the server, or raise timeouts.first_byte_s in config.toml",
        ),
        (
            "idle_s = 1",
            Reply::sse(half).then_silence(),
            "sent nothing for 1s [connection-failed]\n  hint: check the network, or raise timeouts.idle_s in config.toml",
        ),
    ];
    for (setting, reply, said) in cases {
        let world = world();
        world.configure(&format!("retries.attempts = 1\n[timeouts]\n{setting}\n"));
        let server = serve([reply]);
        let run = world.run(&server, &[]).expect(6);
        assert_eq!(message(&run), format!("{} {said}", host(&server)));
        assert_eq!(run.events_of("model_failed")[0]["kind"], "timeout");
    }
}

#[test]
fn e5_an_interrupt_ends_a_wait_between_attempts_at_once() {
    let world = world();
    let server = serve([Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "200")]);
    let mut command = world.exec(&server, &[]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let waits = || world.log().iter().any(|event| event["type"] == "model_failed");
    wait_until("the run waits", waits);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let run = Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert_eq!((run.result()["reason"].clone(), server.requests().len()), (json!("interrupted"), 1));
}

#[test]
fn e2_an_answer_that_is_final_is_asked_for_once_unless_the_provider_says_otherwise() {
    let spend = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "limit",
        "details": {"error_code": "enforced_spend_limit_reached"}}});
    let world = world();
    let cases = [
        (Reply::error(402, "billing_error", "no credit"), 1),
        (Reply::new(429, spend.to_string()).header("retry-after-ms", "1"), 1),
        (Reply::error(529, "overloaded_error", "x").header("x-should-retry", "false"), 1),
        (
            Reply::error(400, "invalid_request_error", "x")
                .header("x-should-retry", "true")
                .header("retry-after-ms", "1"),
            2,
        ),
    ];
    for (reply, requests) in cases {
        let server = serve([reply, Reply::error(401, "authentication_error", "the end")]);
        world.run(&server, &[]).expect(6);
        assert_eq!(server.requests().len(), requests);
    }
    assert!(!fs::exists(world.project().join("ran")).unwrap());
}
