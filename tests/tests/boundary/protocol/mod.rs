//! Tests a compromised worker that breaks the protocol. It is killed and the violation logged. The run ends as
//! documented or continues with the next worker, in bounded memory and time. [`life`] is about the end of processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod life;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::programs::taken_over;
use tests::replies::model;
use tests::side_by_side::side_by_side;
use tests::tier;
use tests::world::tool_results;
use tests::{Finished, User, World};

/// Maximum resident memory of a run in KiB, with any worker.
const MEMORY_KIB: u64 = 128 << 10;

/// Beginning of the message about a frame whose protocol version is not the supervisor's.
const OTHER_VERSION: &str = "frame of protocol version 9, expected ";

fn exec(world: &World, server: &ReplayServer, fake: &str, more: &[&str]) -> Command {
    let usual = world.exec(server, more);
    let mut command = world.command(taken_over(world.root()));
    let key = usual.get_envs().find(|(name, _)| *name == "ANTHROPIC_API_KEY").unwrap().1.unwrap().to_owned();
    command.args(usual.get_args()).args(["--env", &format!("FAKE={fake}")]).env("ANTHROPIC_API_KEY", key);
    command
}

/// Runs a command to its end, and returns its peak memory in KiB.
fn watch(mut command: Command) -> (Finished, u64) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let watcher = std::thread::spawn(move || {
        let mut most = 0;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
            most = peak.map_or(most, |peak| most.max(peak.trim().parse().unwrap()));
            std::thread::sleep(Duration::from_millis(5));
        }
        most
    });
    // Reads all output before waiting for the process, since a full pipe would stop the run.
    let mut stderr = child.stderr.take().unwrap();
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut text).unwrap();
        text
    });
    let output = child.wait_with_output().unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut finished = Finished::from(output);
    finished.stderr = errors.join().unwrap();
    (finished, watcher.join().unwrap())
}

fn shell() -> ReplayServer {
    model(&[("shell_exec", json!({"command": "true"}))])
}

fn assert_no_panic(fake: &str, done: &Finished) {
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(!said.contains("panicked"), "{fake}: {said}");
}

#[test]
fn a_bad_start_ends_the_run_before_any_model_call() {
    for (fake, message) in [
        ("end", "worker ended before it was ready"),
        ("kill", "worker ended before it was ready"),
        ("garbage", "frame of 2779096485 bytes exceeds the limit"),
        ("oversized", "frame of 4294967295 bytes exceeds the limit"),
        ("just-oversized", "frame of 4194305 bytes exceeds the limit"),
        ("empty-frame", "frame of 0 bytes has no header"),
        ("short-frame", "frame of 3 bytes has no header"),
        ("truncated", "stream ended inside a frame"),
        ("version", OTHER_VERSION),
        ("generation", "frame of generation 2, expected 1"),
        ("variant", "cannot decode a message"),
        ("trailing", "cannot decode a message"),
        ("cut-payload", "cannot decode a message"),
        ("long-string", "cannot decode a message"),
        ("outcome", "the worker sent an invalid message at its start: Outcome in phase Greeting"),
        ("output", "the worker sent an invalid message at its start: Output in phase Greeting"),
        ("bye", "the worker sent an invalid message at its start: Bye in phase Greeting"),
        ("endless-output", "the worker sent an invalid message at its start: Output in phase Greeting"),
    ] {
        let world = World::new(User::Myself);
        let server = shell();
        let (done, memory) = watch(exec(&world, &server, fake, &[]));
        assert_eq!(done.code, 5, "{fake}: {}\n{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(message), "{fake}: {}", done.stderr);
        assert!(server.requests().is_empty(), "{fake}: a model was called");
        assert!(memory < MEMORY_KIB, "{fake}: {memory} KiB");
        assert_no_panic(fake, &done);
    }
}

#[test]
fn a_worker_that_says_nothing_at_all_is_given_up() {
    let world = World::new(User::Myself);
    let server = shell();
    let done = Finished::of(&mut exec(&world, &server, "silence", &[]));
    assert_eq!(done.code, 5, "{}\n{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("worker was not ready after 20 s"), "{}", done.stderr);
}

/// Tests that the log has the violation, the end and the next worker, and that the model gets an error.
#[test]
fn a_violation_kills_the_worker_is_logged_and_the_run_goes_on() {
    for tier in tier::all() {
        for (fake, violation) in [
            ("garbage", "frame of 2779096485 bytes exceeds the limit"),
            ("oversized", "frame of 4294967295 bytes exceeds the limit"),
            ("empty-frame", "frame of 0 bytes has no header"),
            ("truncated", "the last message was incomplete"),
            ("version", OTHER_VERSION),
            ("generation", "expected 1"),
            ("variant", "cannot decode a message"),
            ("trailing", "cannot decode a message"),
            ("ready", "Ready in phase Serving"),
            ("bye", "Bye in phase Serving"),
            ("output-unopened", "Output for call 78, which is not open"),
            ("entry", "Output for call 1, which asked for something else"),
            ("no-entries", "0 entries in a chunk, not between 1 and 1024"),
            ("crowd", "1025 entries in a chunk, not between 1 and 1024"),
            ("outcome-unopened", "Outcome for call 78, which is not open"),
            ("prepared", "Outcome for call 1, which asked for something else"),
        ] {
            let world = World::new(User::Myself).in_tier(tier);
            let server = shell();
            let (done, memory) = watch(exec(&world, &server, &format!("call-{fake}"), &[]));
            assert_eq!(done.code, 0, "{fake}: {}\n{}", done.stdout, done.stderr);
            let violations = done.events_of("protocol_violation");
            assert_eq!(violations.len(), 1, "{fake}: {}", done.stdout);
            assert!(violations[0].to_string().contains(violation), "{fake}: {violations:?}");
            let ended = done.events_of("worker_ended");
            assert_eq!(ended[0]["reason"]["type"], "protocol_broken", "{fake}: {ended:?}");
            let result = &tool_results(&server, 1)[0];
            assert_eq!(result["is_error"], Value::Bool(true), "{fake}: {result}");
            assert!(result.to_string().contains("invalid message"), "{fake}: {result}");
            assert!(memory < MEMORY_KIB, "{fake}: {memory} KiB");
            assert_no_panic(fake, &done);
        }
    }
}

/// Tests a picture that is not of its declared type. For such a picture, a provider would reject the conversation in
/// every later request.
#[test]
fn a_false_picture_is_a_violation_and_reaches_neither_model_nor_log() {
    for (fake, violation) in [
        ("cut", "a picture that is a damaged png picture"),
        ("other", "a picture that is declared as image/gif, and is image/png"),
        ("stretched", "a picture that has 48×32 pixels, which differs from the declared size"),
        ("no", "a picture that is not a PNG, JPEG, GIF or WebP picture"),
    ] {
        let world = World::new(User::Myself);
        let server = model(&[("read_file", json!({"path": "shot.png"}))]);
        let done = Finished::of(&mut exec(&world, &server, &format!("call-{fake}-picture"), &[]));
        assert_eq!(done.code, 0, "{fake}: {}\n{}", done.stdout, done.stderr);
        let violations = done.events_of("protocol_violation");
        assert!(violations[0].to_string().contains(violation), "{fake}: {violations:?}");
        let result = &tool_results(&server, 1)[0];
        assert_eq!(result["is_error"], Value::Bool(true), "{fake}: {result}");
        assert!(!result.to_string().contains("base64"), "{fake}: {result}");
        assert!(done.events_of("tool_call_finished")[0].get("images").is_none(), "{fake}: {}", done.stdout);
    }
}

/// Tests a worker that sends a second outcome of a call, after the call is closed.
#[test]
fn a_second_outcome_is_a_violation() {
    let world = World::new(User::Myself);
    let calls = [("shell_exec", json!({"command": "true"})), ("shell_exec", json!({"command": "true"}))];
    let server = model(&calls);
    let done = Finished::of(&mut exec(&world, &server, "call-outcome-twice", &[]));
    assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
    let violation = done.events_of("protocol_violation")[0].to_string();
    assert!(violation.contains("Outcome for call 1, which is not open"), "{violation}");
}

#[test]
fn a_worker_that_ends_during_a_call_is_replaced() {
    for tier in tier::all() {
        for fake in ["call-end", "call-kill"] {
            let world = World::new(User::Myself).in_tier(tier);
            let server = model(&[
                ("shell_exec", json!({"command": "true"})),
                ("shell_exec", json!({"command": "true"})),
            ]);
            let done = Finished::of(&mut exec(&world, &server, fake, &[]));
            assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
            let generations = done.events_of("worker_started");
            let generations: Vec<_> = generations.iter().map(|started| &started["generation"]).collect();
            assert_eq!(generations, [1, 2], "{}", done.stdout);
            assert!(done.events_of("protocol_violation").is_empty());
        }
    }
}

#[test]
fn an_answer_of_the_wrong_kind_or_size_harms_nobody() {
    for fake in ["call-other-output", "call-huge-outcome"] {
        let world = World::new(User::Myself);
        let server = shell();
        let (done, memory) = watch(exec(&world, &server, fake, &[]));
        assert_eq!(done.code, 0, "{fake}: {}\n{}", done.stdout, done.stderr);
        let told = tool_results(&server, 1)[0].to_string();
        assert!(told.len() < 2 << 20, "{fake}: {} bytes for the model", told.len());
        assert!(memory < MEMORY_KIB, "{fake}: {memory} KiB");
        assert_no_panic(fake, &done);
    }
}

/// Tests that a worker's endless output, or silence, does not delay the end of a run with a time limit.
#[test]
fn endless_output_and_silence_end_with_the_runs_time() {
    let fakes = ["call-endless-output", "call-silence", "call-silence-at-once"];
    let cases = tier::all().into_iter().flat_map(|tier| fakes.map(|fake| (tier, fake)));
    side_by_side(cases, |(tier, fake)| {
        let world = World::new(User::Myself).in_tier(tier);
        let server = shell();
        let began = Instant::now();
        let (done, memory) = watch(exec(&world, &server, fake, &["--timeout", "2"]));
        assert_eq!(done.code, 3, "{fake}: {}\n{}", done.stdout, done.stderr);
        assert!(began.elapsed() < Duration::from_secs(20), "{fake}: {:?}", began.elapsed());
        assert!(memory < MEMORY_KIB, "{fake}: {memory} KiB");
        assert_no_panic(fake, &done);
    });
}

/// Tests the worker that takes the first snapshot for the patch: it is as untrusted as any other worker.
#[test]
fn a_worker_that_does_not_show_the_project_ends_the_run() {
    let world = World::new(User::Myself);
    let server = shell();
    let patch = world.own().join("out.diff");
    let done =
        Finished::of(&mut exec(&world, &server, "call-silence", &["--patch", patch.to_str().unwrap()]));
    assert_eq!(done.code, 1, "{}\n{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("the worker did not respond for 30 s"), "{}", done.stderr);
}
