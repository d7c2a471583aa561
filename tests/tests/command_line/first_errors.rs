//! Tests mistakes of new users: each ends the run at once, with the cause and a hint that works.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ipc::confinement::Tier;
use model::replay::{Block, ReplayServer, Reply, Usage, chat, responses};
use protocol::error_code::ErrorCode;
use serde_json::{Value, json};
use tests::replies::{done, model_of, serve};
use tests::silent_port::SilentPort;
use tests::world::KEY;
use tests::{Finished, User, World};

/// Maximum time until a permanent failure is reported on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(30);

fn world() -> World {
    let world = World::new(User::Myself);
    world.file("a.txt", "a\n");
    world
}

/// Runs `exec` with a model server that has `reply` ten times, and checks that the server gets exactly one request.
/// Returns the last message of the run.
fn failure(reply: &Reply, flags: &[&str]) -> String {
    let world = world();
    let server = serve((0..10).map(|_| reply.clone()));
    let began = Instant::now();
    let run = Finished::of(world.exec(&server, flags).env("OPENAI_API_KEY", KEY)).expect(6);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(server.requests().len(), 1);
    let result = run.result();
    assert_eq!((&result["reason"], &result["error"]), (&json!("provider_error"), &json!("provider-failed")));
    result["message"].as_str().unwrap().replace(&server.base_url(), "[server]")
}

fn words(provider: &str) -> Reply {
    let blocks = [Block::text("Done.")];
    Reply::sse(match provider {
        "openai" => chat::message(&blocks, "stop", Usage::default()),
        "responses" => responses::message(&blocks, "end_turn", Usage::default()),
        _ => done(),
    })
}

#[test]
fn a_server_of_another_api_is_named_at_once_with_the_flag_that_mends_it() {
    insta::assert_snapshot!(failure(&words("anthropic"), &["--provider", "openai"]), @r"
    the server at [server]/v1/chat/completions does not speak OpenAI chat completions: the server answers in Anthropic messages [provider-failed]
      hint: try --provider anthropic
    ");
    insta::assert_snapshot!(failure(&words("openai"), &["--provider", "anthropic"]), @r"
    the server at [server]/v1/messages does not speak Anthropic messages: the server answers in OpenAI chat completions [provider-failed]
      hint: try --provider openai
    ");
    insta::assert_snapshot!(failure(&words("openai"), &["--provider", "responses"]), @r"
    the server at [server]/v1/responses does not speak OpenAI responses: the server answers in OpenAI chat completions [provider-failed]
      hint: try --provider openai
    ");
}

#[test]
fn the_hint_of_a_mismatch_works_whichever_api_the_server_speaks() {
    for (spoken, expected) in [("anthropic", "openai"), ("openai", "responses"), ("responses", "anthropic")] {
        let said = failure(&words(spoken), &["--provider", expected]);
        let (_, flags) = said.split_once("hint: try ").unwrap();
        let server = serve([words(spoken)]);
        let flags: Vec<_> = flags.split(' ').collect();
        Finished::of(world().exec(&server, &flags).env("OPENAI_API_KEY", KEY)).expect(0);
    }
}

#[test]
fn an_api_that_nobody_named_is_said_to_follow_from_the_models_name() {
    insta::assert_snapshot!(failure(&words("anthropic"), &["--model", "gpt-9"]), @r#"
    the server at [server]/v1/chat/completions does not speak OpenAI chat completions: the server answers in Anthropic messages [provider-failed]
      hint: try --provider anthropic (openai follows from the model's name "gpt-9")
    "#);
    insta::assert_snapshot!(failure(&words("openai"), &["--model", "local"]), @r"
    the server at [server]/v1/messages does not speak Anthropic messages: the server answers in OpenAI chat completions [provider-failed]
      hint: try --provider openai (anthropic is the default)
    ");
}

#[test]
fn an_address_where_something_else_answers_is_told_at_once() {
    let html = Reply::new(200, "<!doctype html><title>Log in</title>").header("content-type", "text/html");
    insta::assert_snapshot!(failure(&html, &["--provider", "anthropic"]), @r"
    the server at [server]/v1/messages does not speak Anthropic messages: the server sent a page of HTML [provider-failed]
      hint: check --base-url and any proxy
    ");
    let json = Reply::new(200, r#"{"status":"ok"}"#).header("content-type", "application/json");
    insta::assert_snapshot!(failure(&json, &["--provider", "anthropic"]), @r"
    the server at [server]/v1/messages does not speak Anthropic messages: the server answers in JSON of another kind [provider-failed]
      hint: check --base-url and any proxy
    ");
    insta::assert_snapshot!(failure(&Reply::new(404, "404 page not found"), &["--provider", "openai"]), @r"
    the API answered 404 (not_found_error): Not Found: 404 page not found [provider-failed]
      hint: check --base-url and --provider: nothing is at [server]/v1/chat/completions
    ");
    let static_files = Reply::new(501, "<html>Unsupported method ('POST')</html>");
    insta::assert_snapshot!(failure(&static_files, &["--provider", "openai"]), @r"
    the API answered 501 (api_error): Not Implemented, with a page of HTML: the reply is not from the API, but from a server in front of the API [provider-failed]
      hint: check --base-url and --provider: nothing is at [server]/v1/chat/completions
    ");
}

#[test]
fn a_program_that_speaks_no_http_is_told_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The server sends its greeting only after the request.
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n").unwrap();
        // The server takes only one connection, so a second attempt would be refused.
    });
    let run = Finished::of(&mut world().task(&format!("http://{address}"), ["do it"])).expect(6);
    server.join().unwrap();
    let said = run.stderr.replace(&address.to_string(), "[server]");
    assert!(
        said.contains(
            "bailiwick: [server] does not speak HTTP [provider-failed]\n  hint: check --base-url\n"
        ),
        "{said}"
    );
}

#[test]
fn a_proxy_that_refuses_is_named_and_one_on_this_machine_is_asked_once() {
    let silent = SilentPort::take();
    let free = silent.address();
    let world = world();
    let mut command = world.task("https://api.example", ["do it"]);
    let run =
        Finished::of(command.env("HTTPS_PROXY", format!("http://{free}")).env_remove("NO_PROXY")).expect(6);
    let said: Vec<_> =
        run.stderr.lines().skip_while(|line| !line.starts_with("bailiwick: ")).take(2).collect();
    assert_eq!(
        said,
        [
            "bailiwick: cannot reach api.example: the proxy in HTTPS_PROXY refused the connection [proxy-failed]",
            "  hint: start the proxy, or unset HTTPS_PROXY"
        ]
    );
}

#[test]
fn a_server_without_tls_is_told_as_such() {
    let server = serve([]);
    let url = server.base_url().replace("http:", "https:");
    let run = Finished::of(&mut world().task(&url, ["do it"])).expect(6);
    let said = "the server answers without TLS [tls-failed]\n  hint: check the port, or write http:// in --base-url\n";
    assert!(run.stderr.contains(said), "{}", run.stderr);
}

/// Runs `exec` with `input` as standard input.
fn piped(world: &World, server: &ReplayServer, arguments: &[&str], input: &[u8]) -> Finished {
    let mut command = world.task(&server.base_url(), arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses at once may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    Finished::from(child.wait_with_output().unwrap())
}

/// Returns the body of the first request that the model got.
fn asked(server: &ReplayServer) -> String {
    String::from_utf8_lossy(&server.requests()[0].body).into_owned()
}

#[test]
fn a_task_may_come_on_standard_input() {
    for arguments in [&[][..], &["-"]] {
        let (world, server) = (world(), model_of([done()]));
        piped(&world, &server, arguments, b"count the lines of a.txt\n").expect(0);
        assert!(asked(&server).contains("count the lines of a.txt"));
    }
}

#[test]
fn a_task_in_the_arguments_never_waits_for_standard_input() {
    let (world, server) = (world(), model_of([done()]));
    let mut command = world.task(&server.base_url(), ["do it"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Standard input stays open and silent until the run is over.
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(input);
}

#[test]
fn input_that_is_no_task_is_a_clear_error() {
    let server = serve([]);
    let said = |arguments: &[&str], input: &[u8]| piped(&world(), &server, arguments, input).expect(2).stderr;
    insta::assert_snapshot!(said(&[], b""), @r#"
    bailiwick: no task given: standard input is empty
      hint: bailiwick exec --mode auto "fix the failing test"
    "#);
    insta::assert_snapshot!(said(&["-"], b"fix \xff\xfe"), @"bailiwick: cannot use standard input as the task: byte 4 is not UTF-8");
    insta::assert_snapshot!(said(&[], &vec![b'x'; (1 << 20) + 1]), @r"
    bailiwick: cannot use standard input as the task: the input has more than 1 MiB
      hint: put the input into a file of the project, and name that file in the task
    ");
}

/// Runs a command that lists the project's files, and returns the list. On the command line, the project's path stands
/// between `line` and `rest`.
fn listed(world: &World, line: &[&str], rest: &[&str]) -> String {
    let mut command = world.bailiwick(line);
    command.arg(world.project()).args(rest).current_dir(world.root());
    Finished::of(&mut command).expect(0).stdout
}

#[test]
fn the_project_may_be_named_before_any_command() {
    let world = world();
    fs::write(world.project().join(".bailiwick.toml"), "[limits]\nmax_steps = 7\n").unwrap();
    assert!(listed(&world, &["-C"], &["sandbox", "--", "ls"]).contains("a.txt"));
    assert_eq!(
        listed(&world, &["-C"], &["config", "--json"]),
        listed(&world, &["config", "--json", "-C"], &[])
    );
    assert_eq!(
        listed(&world, &["-C"], &["explain", "a.txt", "--as", "path"]),
        listed(&world, &["explain", "a.txt", "--as", "path", "-C"], &[])
    );
    let server = model_of([done()]);
    let mut command = world.bailiwick(["-C"]);
    command.arg(world.project()).args(["exec", "--base-url", &server.base_url(), "do it"]);
    Finished::of(command.env("ANTHROPIC_API_KEY", KEY).current_dir(world.root())).expect(0);
    assert!(asked(&server).contains(world.project().to_str().unwrap()));
}

#[test]
fn a_project_that_asks_for_the_network_works_and_is_told_once() {
    let world = world();
    fs::write(world.project().join(".bailiwick.toml"), "[rights]\n\nnet = \"on\"\nhide = [\"a.txt\"]\n")
        .unwrap();
    let line = ".bailiwick.toml:3: ignored: a project cannot turn the network on (use --net on)";
    let told = |stderr: &str| stderr.matches(line).count();
    let server = model_of([done()]);
    let run = Finished::of(&mut world.task(&server.base_url(), ["do it"])).expect(0);
    assert_eq!(told(&run.stderr), 1, "{}", run.stderr);
    // A restriction in the same file has effect.
    let mut sandbox = world.sandbox(Tier::Full, &[], "cat");
    let run = Finished::of(sandbox.arg("a.txt"));
    assert_eq!((told(&run.stderr), run.stdout.as_str()), (1, ""), "{}", run.stderr);
    let mut trust = world.bailiwick(["config", "trust", "-C"]);
    let run = Finished::of(trust.arg(world.project())).expect(0);
    assert!(
        told(&run.stderr) == 1 && run.stderr.contains("nothing in the project needs your trust"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_project_whose_limits_cannot_be_read_does_not_start() {
    let world = world();
    fs::write(world.project().join(".bailiwick.toml"), "rights.hiden = [\"a.txt\"]\n").unwrap();
    let run = Finished::of(&mut world.task("http://127.0.0.1:1", ["do it"])).expect(2);
    insta::assert_snapshot!(run.stderr, @r"
    bailiwick: .bailiwick.toml:1:8: unknown key `rights.hiden`; did you mean `rights.hide`?
      hint: correct the file: a limit that cannot be read would have no effect
    ");
}

#[test]
fn a_word_that_is_no_command_is_refused_with_the_way_to_send_it() {
    let run = Finished::of(&mut world().bailiwick(["exce"])).expect(2);
    let said: Vec<_> = run.stderr.lines().take(2).collect();
    assert_eq!(
        said,
        [
            "error: no command \"exce\"",
            "  hint: bailiwick exec; to send this word as a task: bailiwick -- exce"
        ]
    );
}

/// Returns the error code in the message (`None` without one), and the exit status.
fn coded(run: &Finished) -> (Option<ErrorCode>, i32) {
    let code = run.stderr.lines().find_map(ErrorCode::of);
    (code, run.code)
}

#[test]
fn errors_of_the_first_minutes_have_the_codes_and_statuses_of_the_table() {
    let silent = SilentPort::take();
    let free = silent.address();
    let nobody = format!("http://{free}");
    let api = |status: u16, kind: &str, message: &str| {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
        serve((0..10).map(|_| Reply::new(status, body.clone())))
    };
    let bad_key = api(401, "authentication_error", "invalid x-api-key");
    let no_model = api(404, "not_found_error", "model: nonsense-9");
    let too_long = api(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum");
    let told = |code: ErrorCode, prepare: &dyn Fn(&World) -> Command| {
        let world = world();
        let run = Finished::of(&mut prepare(&world));
        assert_eq!(coded(&run), (Some(code), i32::from(code.exit().unwrap())), "{}", run.stderr);
        let hinted = run.stderr.lines().skip_while(|line| ErrorCode::of(line).is_none()).nth(1);
        assert!(hinted.is_some_and(|line| line.starts_with("  hint: ")), "{}", run.stderr);
        if let Some(result) =
            run.stdout.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok())
        {
            assert_eq!(result["data"]["error"], code.as_str(), "{result}");
        }
    };
    told(ErrorCode::NoKey, &|world| {
        let mut command = world.task(&nobody, ["do it"]);
        command.env_remove("ANTHROPIC_API_KEY");
        command
    });
    told(ErrorCode::UnusableKey, &|world| {
        let mut command = world.task(&nobody, ["do it"]);
        command.env("ANTHROPIC_API_KEY", "sk ant");
        command
    });
    told(ErrorCode::ConnectionRefused, &|world| world.task(&nobody, ["do it"]));
    told(ErrorCode::LookupFailed, &|world| {
        world.configure("retries.attempts = 1\n");
        world.task("http://no-such-host.invalid", ["do it"])
    });
    told(ErrorCode::BadKey, &|world| world.exec(&bad_key, &[]));
    told(ErrorCode::UnknownModel, &|world| world.exec(&no_model, &[]));
    told(ErrorCode::ContextTooLong, &|world| world.exec(&too_long, &[]));
    told(ErrorCode::NoTerminal, &|world| {
        let mut command = world.bailiwick(["-C"]);
        command.arg(world.project()).env("ANTHROPIC_API_KEY", KEY).stdin(Stdio::null());
        command
    });
}

#[test]
fn a_project_that_is_read_only_is_told_with_its_code_and_worked_in() {
    let (world, server) = (world(), model_of([done()]));
    fs::set_permissions(world.project(), fs::Permissions::from_mode(0o555)).unwrap();
    let run = Finished::of(&mut world.exec(&server, &["--mode", "auto"])).expect(0);
    fs::set_permissions(world.project(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(coded(&run).0, Some(ErrorCode::ProjectReadOnly), "{}", run.stderr);
}
