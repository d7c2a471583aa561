//! Tests every exit code in `bailiwick --help`, with its message for a person: first the cause, then the next step.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ipc::confinement::Tier;
use model::replay::{ReplayServer, Reply};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::programs::{copy_program, write_script};
use tests::replies::{calls, done, model_of, says, serve, shell};
use tests::silent_port::SilentPort;
use tests::tier;
use tests::{Finished, Programs, User, World, wait_until};

/// Address without a server. A run that connects ends with status 6.
const NOWHERE: &str = "http://127.0.0.1:9";

fn world() -> World {
    let world = World::new(User::Myself);
    world.file("a.txt", "a\n");
    world
}

/// Runs a task with text output, and returns the text.
fn text(world: &World, server: &ReplayServer, arguments: &[&str], code: i32) -> String {
    let run = Finished::of(world.task(&server.base_url(), arguments).arg("do it")).expect(code);
    said(world, &run)
}

/// Returns standard error, without parts that differ from run to run.
fn said(world: &World, run: &Finished) -> String {
    let lines = run.stderr.lines().filter(|line| !line.contains(" step · ") && !line.contains(" steps · "));
    world.stable(&lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the last message before the summary of a run.
fn complaint(text: &str) -> String {
    let last = text.lines().rfind(|line| !line.starts_with("  ")).unwrap_or_default();
    let from = text.rfind(last).unwrap_or_default();
    text[from..].to_owned()
}

fn usage_error(world: &World, command: &mut Command) -> String {
    said(world, &Finished::of(command).expect(2))
}

#[test]
fn zero_is_a_task_that_is_done() {
    let world = world();
    let server = model_of([done()]);
    assert_eq!(Finished::of(world.task(&server.base_url(), ["do it"]).arg("--mode").arg("auto")).code, 0);
}

#[test]
fn zero_is_help_and_it_lists_every_code() {
    let world = world();
    let help = Finished::of(&mut world.bailiwick(["--help"])).expect(0).stdout;
    let codes =
        help.split_once("Exit status:").unwrap().1.lines().filter_map(|line| line.split_whitespace().next());
    assert_eq!(codes.collect::<Vec<_>>(), ["0", "1", "2", "3", "4", "5", "6", "129", "130", "143"]);
}

#[test]
fn two_is_a_flag_that_there_is_not() {
    let world = world();
    let said = usage_error(&world, world.task(NOWHERE, ["do it"]).arg("--yolo"));
    assert!(said.starts_with("error: unexpected argument '--yolo' found"), "{said}");
}

#[test]
fn two_is_a_missing_key() {
    let world = world();
    let said = usage_error(&world, world.task(NOWHERE, ["do it"]).env_remove("ANTHROPIC_API_KEY"));
    insta::assert_snapshot!(said, @r"
    bailiwick: no API key found [no-key]
      hint: set ANTHROPIC_API_KEY, or put the key into [world]/own/config/anthropic.key (mode 0600). No key yet? Try: bailiwick demo
    ");
}

#[test]
fn two_is_a_key_file_that_others_can_read() {
    let world = world();
    let file = world.own().join("config/anthropic.key");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "sk-ant-x\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let said = usage_error(&world, world.task(NOWHERE, ["do it"]).env_remove("ANTHROPIC_API_KEY"));
    insta::assert_snapshot!(said, @r"
    bailiwick: the key file [world]/own/config/anthropic.key has mode 644; other users could read the file [unusable-key]
      hint: chmod 600 [world]/own/config/anthropic.key
    ");
    // Control: with mode 0600 the key is found, and the run gets as far as its first request.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let server = model_of([done()]);
    Finished::of(world.task(&server.base_url(), ["do it"]).env_remove("ANTHROPIC_API_KEY")).expect(0);
}

#[test]
fn two_is_a_key_that_no_header_can_carry() {
    let world = world();
    let said = usage_error(&world, world.task(NOWHERE, ["do it"]).env("ANTHROPIC_API_KEY", "sk ant"));
    insta::assert_snapshot!(said, @r"
    bailiwick: the key from ANTHROPIC_API_KEY has characters that a key cannot have [unusable-key]
      hint: check for line breaks, spaces or quotes around the key
    ");
}

#[test]
fn two_is_a_project_that_is_too_wide() {
    let world = world();
    let of = |place: &Path| {
        let mut command = world.bailiwick(["exec", "--base-url", NOWHERE, "do it", "-C"]);
        usage_error(&world, command.arg(place).env("ANTHROPIC_API_KEY", "sk-ant-x"))
    };
    insta::assert_snapshot!(of(Path::new("/")), @r"
    bailiwick: / cannot be the project: it is the whole file system
      hint: cd into a project, or name a project with -C DIR
    ");
    insta::assert_snapshot!(of(&world.home()), @r"
    bailiwick: [world]/home cannot be the project: it is a home directory
      hint: cd into a project, or name a project with -C DIR
    ");
    // The directory of the world contains a home.
    insta::assert_snapshot!(of(world.root()), @r"
    bailiwick: [world] cannot be the project: it contains the home directory [world]/home
      hint: cd into a project, or name a project with -C DIR
    ");
    let home = world.project().join("bh");
    let mut command = world.bailiwick(["explain", ".", "-C"]);
    let own = usage_error(&world, command.arg(world.project()).env("BAILIWICK_HOME", home));
    // The location of the private temp directories depends on the length of the path.
    let own: Vec<_> = own.lines().filter(|line| !line.starts_with("bailiwick: note: private temp")).collect();
    let own = own.join("\n");
    insta::assert_snapshot!(own, @r"
    bailiwick: [world]/project cannot be the project: it contains [world]/project/bh/config, which is hidden from agents: BAILIWICK_HOME puts the hidden directory there
      hint: set BAILIWICK_HOME to a directory outside of the project
    ");
    insta::assert_snapshot!(of(&world.root().join("nowhere")), @r"
    bailiwick: cannot use [world]/nowhere as the project: No such file or directory (os error 2)
      hint: name a directory with -C DIR
    ");
    insta::assert_snapshot!(of(&world.project().join("a.txt")), @r"
    bailiwick: [world]/project/a.txt is not a directory
      hint: name a directory with -C DIR
    ");
}

#[test]
fn two_is_a_flag_whose_value_cannot_be() {
    let world = world();
    let of = |arguments: &[&str]| usage_error(&world, world.task(NOWHERE, arguments).arg("do it"));
    insta::assert_snapshot!(of(&["--write", "/nonexistent/file"]), @r"
    bailiwick: --write /nonexistent/file: does not exist
      hint: create the path first
    ");
    insta::assert_snapshot!(of(&["--env", "A-B"]), @r#"bailiwick: --env "A-B": expected NAME or NAME=VALUE, with a name of letters, digits and underscores"#);
    insta::assert_snapshot!(of(&["--patch", "/nonexistent/out.diff"]), @"bailiwick: cannot open /nonexistent/out.diff for the patch: No such file or directory (os error 2)");
    let bad_url = |url| usage_error(&world, &mut world.task(url, ["do it"]));
    insta::assert_snapshot!(bad_url("not a url"), @r#"bailiwick: the base URL "not a url" is not a URL
  hint: write the URL like https://api.anthropic.com"#);
    insta::assert_snapshot!(bad_url("ftp://127.0.0.1"), @r#"bailiwick: the base URL "ftp://127.0.0.1" is neither http nor https
  hint: write the URL like https://api.anthropic.com"#);
    insta::assert_snapshot!(of(&["--max-steps", "0"]).lines().next().unwrap(), @"error: invalid value '0' for '--max-steps <N>': 0 is not in 1..=4294967295");
    for bad in ["0", "0.0009", "-0", "31536001", "1s", "NaN", "inf", ""] {
        let said = of(&[&format!("--timeout={bad}")]);
        let wanted = format!(
            "error: invalid value '{bad}' for '--timeout <SECS>': expected a number of seconds from 0.001 to 31536000, as in 90 or 0.5"
        );
        // An empty value is refused before it is read.
        assert!(said.starts_with(&wanted) || bad.is_empty(), "{said}");
    }
}

#[test]
fn two_is_an_empty_task() {
    let world = world();
    for (task, why) in [
        (&[""][..], ""),
        (&["  \n"], ""),
        (&["-"], ": standard input is empty"),
        (&[], ": standard input is empty"),
    ] {
        let said = usage_error(&world, &mut world.task(NOWHERE, task));
        let expected = format!(
            "bailiwick: no task given{why}\n  hint: bailiwick exec --mode auto \"fix the failing test\""
        );
        assert_eq!(said, expected, "{task:?}");
    }
}

#[test]
fn three_is_a_budget_that_is_spent() {
    let world = world();
    let forever = || (0..9).map(|_| shell("true"));
    let of = |arguments: &[&str]| complaint(&text(&world, &model_of(forever()), arguments, 3));
    insta::assert_snapshot!(of(&["--max-steps", "2"]), @r"
    bailiwick: the limit of 2 steps is reached
      hint: raise the limit with --max-steps, or give a smaller task
    ");
    insta::assert_snapshot!(of(&["--max-tokens", "200"]), @r"
    bailiwick: the limit of 200 tokens is reached
      hint: raise the limit with --max-tokens, or give a smaller task
    ");
}

#[test]
fn three_is_time_that_is_spent_also_in_the_middle_of_a_command_or_a_reply() {
    let world = world();
    let silent = serve([Reply::sse(&b""[..]).then_silence()]);
    insta::assert_snapshot!(complaint(&text(&world, &silent, &["--timeout", "1"], 3)), @r"
    bailiwick: the time limit of this run is reached
      hint: raise the limit with --timeout, or give a smaller task
    ");
    let busy = model_of([shell("sleep 1000")]);
    let run = world.run(&busy, &["--timeout", "5"]).expect(3);
    assert_eq!(run.result()["reason"], "time_limit");
    assert_eq!(run.events_of("tool_call_finished")[0]["status"], "interrupted");
    for timeout in ["0.25", "0.001"] {
        let began = Instant::now();
        let run = world.run(&model_of([shell("sleep 1000")]), &["--timeout", timeout]).expect(3);
        assert_eq!(run.result()["reason"], "time_limit");
        assert!(began.elapsed() < Duration::from_secs(15), "{timeout}: {:?}", began.elapsed());
    }
}

#[test]
fn three_is_a_refusal() {
    let world = world();
    let server = model_of([says("", "refusal")]);
    insta::assert_snapshot!(complaint(&text(&world, &server, &[], 3)), @r"
    bailiwick: the model refused to continue
      hint: rephrase the task
    ");
}

#[test]
fn three_is_a_full_context_in_both_of_its_forms() {
    let world = world();
    // The context is still full after a summary.
    let full = || says("I was", "model_context_window_exceeded");
    let server = model_of([full(), says("A summary.", "end_turn"), full()]);
    insta::assert_snapshot!(complaint(&text(&world, &server, &[], 3)), @"bailiwick: the context is full: even a new context has about 120 tokens, and the model's window has room for 8000 with the reply; shorten AGENTS.md, give a smaller task, or choose a model with a larger window [context-too-long]");
    let message = "prompt is too long: 200001 tokens > 200000 maximum";
    let server = serve([Reply::error(400, "invalid_request_error", message)]);
    insta::assert_snapshot!(complaint(&text(&world, &server, &[], 3)), @"bailiwick: the API answered 400 (invalid_request_error): prompt is too long: 200001 tokens > 200000 maximum [context-too-long]
  hint: give a smaller task, or choose a model with a larger window");
    let server = serve([Reply::error(413, "request_too_large", "too large")]);
    insta::assert_snapshot!(complaint(&text(&world, &server, &[], 3)), @"bailiwick: the API answered 413 (request_too_large): too large [context-too-long]
  hint: give a smaller task, or choose a model with a larger window");
}

#[test]
fn four_is_a_turn_that_ended_after_a_denial() {
    let world = world();
    let outside = world.outside().join("there.txt").display().to_string();
    let denied = || calls(&[("write_file", json!({"path": outside, "content": "x"}))]);
    for (tier, layer) in [(Tier::Full, "read-only mount"), (Tier::Floor, "Landlock")] {
        if !tier::all().contains(&tier) {
            continue;
        }
        let flags = [&["--mode", "auto"], tier::flags(tier)].concat();
        let said = complaint(&text(&world, &model_of([denied(), done()]), &flags, 4));
        let said = said.replace(&format!("({layer})"), "(layer)");
        insta::allow_duplicates! { insta::assert_snapshot!(said, @r"
        bailiwick: the agent ended its turn after a denied call: blocked by the kernel (layer): [world]/outside/there.txt is read-only here
          hint: --write [world]/outside/there.txt allows it
        "); }
    }
    // A later success of the same kind of action offsets a failure; another failure does not.
    let run = world.run(&model_of([denied(), shell("true"), done()]), &["--mode", "auto"]).expect(0);
    assert_eq!(run.result()["reason"], "done");
    world.run(&model_of([denied(), shell("false"), done()]), &["--mode", "auto"]).expect(4);
    // Within one turn the order of the calls counts.
    let both = |first: &str, second: &str| {
        let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
        model_of([calls(&[write(first), write(second)]), done()])
    };
    world.run(&both(&outside, "b.txt"), &["--mode", "auto"]).expect(0);
    world.run(&both("b.txt", &outside), &["--mode", "auto"]).expect(4);
}

#[test]
fn a_denial_that_is_expected_ends_a_turn_with_zero_and_is_listed() {
    let world = world();
    let denied = || model_of([calls(&[("write_file", json!({"path": "b.txt", "content": "x"}))]), done()]);
    world.run(&denied(), &[]).expect(4);
    world.run(&denied(), &["--denied", "fail"]).expect(4);
    let run = world.run(&denied(), &["--denied", "ok"]).expect(0);
    let (result, denials) = (run.result(), run.events_of("denied"));
    assert_eq!((&result["reason"], &result["exit_code"]), (&json!("done"), &json!(0)));
    assert_eq!((denials.len(), &result["message"]), (1, &json!(null)));
    // No other end becomes a success.
    world.run(&denied(), &["--denied", "ok", "--max-steps", "1"]).expect(3);
    let task = ["--denied", "ok", "--output", "json", "do it"];
    let run = Finished::of(&mut world.task(&denied().base_url(), task)).expect(0);
    assert_eq!(run.events()[0]["denials"][0]["grant"], "--mode auto");
}

fn with_sandbox(world: &World, sandbox: Option<&str>) -> Command {
    let place = world.own().join("programs");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).unwrap();
    for name in ["bailiwick", "bailiwick-worker"] {
        copy_program(&Programs::get().path(name), &place.join(name));
    }
    if let Some(script) = sandbox {
        write_script(&place.join("sandbox-exec"), script);
    }
    let mut command = world.command(place.join("bailiwick"));
    command.arg("exec").arg("-C").arg(world.project()).env("ANTHROPIC_API_KEY", "sk-ant-x").arg("do it");
    command
}

#[test]
fn five_is_a_sandbox_that_is_missing_or_fails_and_no_model_is_asked() {
    let world = world();
    let of = |sandbox: Option<&str>| {
        let server = model_of([done()]);
        let mut command = with_sandbox(&world, sandbox);
        let run = Finished::of(command.args(["--base-url", &server.base_url()])).expect(5);
        assert_eq!(server.connections(), 0);
        complaint(&said(&world, &run))
    };
    insta::assert_snapshot!(of(None), @r"
    bailiwick: cannot execute [world]/own/programs/sandbox-exec: No such file or directory (os error 2) [no-sandbox]
      hint: bailiwick doctor shows what is missing on this machine
    ");
    insta::assert_snapshot!(of(Some("#!/bin/sh\necho no such luck >&2\nexit 1\n")), @r"
    bailiwick: sandbox-exec ended before it was ready: no such luck [no-sandbox]
      hint: bailiwick doctor shows what is missing on this machine
    ");
}

#[test]
fn five_is_the_last_event_of_the_stream_too() {
    let world = world();
    let mut command = with_sandbox(&world, Some("#!/bin/sh\nexit 1\n"));
    let run = Finished::of(command.args(["--base-url", NOWHERE, "--output", "stream-json"])).expect(5);
    let result = run.result();
    assert_eq!((&result["exit_code"], &result["reason"]), (&json!(5), &json!("no_sandbox")));
}

#[test]
fn six_is_an_answer_that_no_other_attempt_makes_better() {
    let world = world();
    let of = |status, kind, message| {
        let server = serve([Reply::error(status, kind, message)]);
        let said = complaint(&text(&world, &server, &[], 6));
        assert_eq!(server.requests().len(), 1);
        said.replace(&server.base_url(), "[server]")
    };
    insta::assert_snapshot!(of(400, "invalid_request_error", "messages: must not be empty"), @"bailiwick: the API answered 400 (invalid_request_error): messages: must not be empty [provider-failed]");
    insta::assert_snapshot!(of(401, "authentication_error", "invalid x-api-key"), @"bailiwick: the API answered 401 (authentication_error): invalid x-api-key [bad-key]
  hint: check ANTHROPIC_API_KEY, whose key ends in …cdef");
    insta::assert_snapshot!(of(403, "permission_error", "not for you"), @"bailiwick: the API answered 403 (permission_error): not for you [provider-failed]
  hint: check the permissions of this key, and --model");
    insta::assert_snapshot!(of(404, "not_found_error", "model: nope"), @"bailiwick: the API answered 404 (not_found_error): model: nope [unknown-model]
  hint: check --model: the server does not have this model");
}

/// Returns a reply that says that the server is overloaded, and that a client may try again at once.
fn overloaded() -> Reply {
    Reply::error(529, "overloaded_error", "Overloaded").header("retry-after-ms", "1")
}

#[test]
fn six_is_an_overload_that_does_not_end() {
    let world = world();
    let server = serve((0..20).map(|_| overloaded()));
    insta::assert_snapshot!(complaint(&text(&world, &server, &[], 6)), @"bailiwick: the API answered 529 (overloaded_error): Overloaded; given up after 8 attempts [provider-failed]
  hint: try again later, or choose another model with --model");
    assert_eq!(server.requests().len(), 8);
}

#[test]
fn six_is_a_wait_that_is_too_long() {
    let world = world();
    let reply = Reply::error(429, "rate_limit_error", "Slow down").header("retry-after", "3600");
    insta::assert_snapshot!(complaint(&text(&world, &serve([reply]), &[], 6)), @"bailiwick: the API answered 429 (rate_limit_error): Slow down; the provider asks to wait 3600 s, and Bailiwick waits at most 300 s at once (retries.longest_wait_s) [provider-failed]
  hint: try again later, or choose another model with --model");
}

#[test]
fn six_is_time_that_is_spent_on_attempts() {
    let world = world();
    let whole = says("a reply that does not come to its end", "end_turn");
    let server = serve((0..20).map(|_| Reply::sse(whole.clone()).cut_after(whole.len() / 2)));
    let said = complaint(&text(&world, &server, &["--timeout", "4"], 6));
    insta::assert_snapshot!(said.replace(&server.base_url()["http://".len()..], "[server]"), @"bailiwick: the connection to [server] broke in the middle of the reply; the time limit of this run is reached before another attempt [connection-failed]");
    assert!(server.requests().len() > 1);
}

#[test]
fn zero_is_a_run_that_got_over_a_failure_of_the_provider() {
    let world = world();
    let whole = done();
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";
    let at_once = |reply: Reply| reply.header("retry-after-ms", "1");
    let broken: [(&str, Reply); 8] = [
        ("overloaded", overloaded()),
        ("too many requests", at_once(Reply::error(429, "rate_limit_error", "Slow down"))),
        ("a page of a gateway", at_once(Reply::new(502, "<html>Bad gateway</html>"))),
        ("nothing", Reply::sse(whole.clone()).cut_after(0)),
        ("cut in the middle", Reply::sse(whole.clone()).cut_after(whole.len() / 2)),
        (
            "cut before its stop reason",
            Reply::sse(whole.clone()).cut_after(whole.find("message_delta").unwrap()),
        ),
        ("ended without its end", Reply::sse(whole[..whole.len() / 2].to_owned())),
        (
            "an error event",
            Reply::sse(format!("{}{error}", &whole[..whole.find("content_block_stop").unwrap() - 7])),
        ),
    ];
    for (name, reply) in broken {
        let server = serve([reply, Reply::sse(done())]);
        let run = world.run(&server, &[]);
        assert_eq!(run.code, 0, "{name}: {}{}", run.stdout, run.stderr);
        assert_eq!(run.events_of("model_failed").len(), 1, "{name}");
        // The text of the broken reply is discarded, and the person is told once.
        assert_eq!(run.result()["text"], "Done.", "{name}");
        assert_eq!(server.requests()[0].body, server.requests()[1].body, "{name}");
    }
}

#[test]
fn interruptions_have_the_codes_of_their_signals() {
    for (signal, code, reason) in [
        (Signal::SIGHUP, 129, "hung_up"),
        (Signal::SIGINT, 130, "interrupted"),
        (Signal::SIGTERM, 143, "terminated"),
    ] {
        let world = world();
        // The signal arrives while the model is silent.
        let server = serve([Reply::sse(&b""[..]).then_silence()]);
        let mut command = world.exec(&server, &[]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        wait_until("the model is asked", || !server.requests().is_empty());
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        let run = Finished::from(child.wait_with_output().unwrap()).expect(code);
        assert_eq!((&run.result()["reason"], &run.result()["exit_code"]), (&json!(reason), &json!(code)));
    }
}

#[test]
fn six_is_a_host_that_nobody_answers_for() {
    let world = world();
    let silent = SilentPort::take();
    let port = silent.number();
    let run =
        Finished::of(world.task(&format!("http://127.0.0.1:{port}"), ["do it"]).args(["--output", "json"]));
    insta::assert_snapshot!(complaint(&said(&world, &run)).replace(&port.to_string(), "[port]"), @"bailiwick: 127.0.0.1:[port] refused the connection: no server listens there [connection-refused]
  hint: start the server, or check --base-url");
    assert_eq!(run.expect(6).result()["reason"], "provider_error");
}
