//! Tests the commands `doctor` and `debug stream`, started as by a user.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::process::Command;

use ipc::confinement::Tier;
use model::replay::{ReplayServer, Reply, sse};
use serde_json::{Value, json};
use tests::programs::copy_program;
use tests::replies::{done, model_of, serve};
use tests::tier::{self, everywhere};
use tests::{Finished, Programs, User, World, skip};

fn doctor_json(command: &mut Command, code: i32) -> Vec<Value> {
    let run = Finished::of(command.args(["doctor", "--json"])).expect(code);
    checks(&serde_json::from_str(&run.stdout).unwrap())
}

fn checks(diagnosis: &Value) -> Vec<Value> {
    let checks = diagnosis["checks"].as_array().unwrap().clone();
    for check in &checks {
        assert!(check["name"].as_str().is_some_and(|name| !name.is_empty()), "{check}");
        assert!(["ok", "warn", "fail"].map(Some).contains(&check["state"].as_str()), "{check}");
        assert!(check["found"].as_str().is_some_and(|found| !found.is_empty()), "{check}");
    }
    checks
}

fn named<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {checks:?}"))
}

#[test]
fn the_doctor_tries_what_must_be_denied_for_every_user() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let mut doctor = world.bailiwick(["doctor", "--json"]);
        let run = Finished::of(doctor.args(tier::flags(tier))).expect(0);
        let diagnosis: Value = serde_json::from_str(&run.stdout).unwrap();
        let best = json!(tier::all()[0]);
        assert_eq!(
            (&diagnosis["tier"]["tested"], &diagnosis["tier"]["runs_start_in"]),
            (&json!(tier), &best)
        );
        let checks = checks(&diagnosis);
        let found = named(&checks, "tier")["found"].as_str().unwrap();
        assert!(found.starts_with(&tier.to_string()), "{found}");
        assert_eq!(found.contains("as --tier floor demands"), json!(tier) != best, "{found}");
        let attack = named(&checks, "self-test");
        assert_eq!(attack["state"], "ok", "{attack}");
        assert!(
            attack["found"].as_str().unwrap().starts_with("a process in the sandbox could not: "),
            "{attack}"
        );
        for name in ["kernel", "tier", "shell", "git", "terminal", "key", "state dir"] {
            named(&checks, name);
        }
    }
}

/// Runs `bailiwick` in a user namespace in which no other namespace can be created.
fn without_namespaces(world: &World, arguments: &str) -> Finished {
    let program = Programs::get().path("bailiwick").display().to_string();
    let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {program} {arguments}");
    let mut unshare = world.command("unshare");
    unshare.args(["-Ur", "bash", "-c", &script]).env("ANTHROPIC_API_KEY", tests::world::KEY);
    Finished::of(&mut unshare)
}

#[test]
fn the_doctor_needs_no_more_of_the_temp_directory_than_a_session() {
    let world = World::new(User::Myself);
    doctor_json(world.bailiwick([""; 0]).env("TMPDIR", "/nonexistent"), 0);
}

#[test]
fn the_doctor_says_why_there_is_no_full_tier_and_what_to_do() {
    if !tier::all().contains(&Tier::Full) {
        skip!("no full tier: that a machine refuses it shows nothing here");
    }
    for user in User::all() {
        let world = World::new(user);
        let diagnosis: Value =
            serde_json::from_str(&without_namespaces(&world, "doctor --json").expect(0).stdout).unwrap();
        let tier = json!({"tested": "floor", "runs_start_in": "floor", "no_full_tier": "cannot make namespaces (ENOSPC)"});
        assert_eq!(diagnosis["tier"], tier);
        let checks = checks(&diagnosis);
        assert_eq!(named(&checks, "self-test")["state"], "ok");
        let (found, remedy) = (&named(&checks, "tier")["found"], &named(&checks, "tier")["remedy"]);
        let why = "floor: runs use this tier, because there is no full tier here: cannot make namespaces (ENOSPC); ";
        assert!(found.as_str().unwrap().starts_with(why), "{found}");
        assert_eq!(remedy, "for the full tier: sysctl -w user.max_user_namespaces=15000");
        let refused = without_namespaces(&world, "doctor --tier full").expect(5);
        let said: Vec<_> = refused.stdout.lines().take(2).map(str::trim_end).collect();
        assert_eq!(
            said,
            [
                "FAIL  sandbox     no full tier here, and --tier full allows no other: cannot make namespaces (ENOSPC)",
                "                  hint: sysctl -w user.max_user_namespaces=15000; without --tier full, runs start in the floor tier"
            ]
        );
    }
}

#[test]
fn a_run_says_that_it_is_in_the_floor_because_the_machine_refuses_more() {
    if !tier::all().contains(&Tier::Full) {
        skip!("no full tier: that a machine refuses it shows nothing here");
    }
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    let task = format!("exec --base-url {} -C {} do-it", server.base_url(), world.project().display());
    let run = without_namespaces(&world, &task).expect(0);
    let said = "only the floor tier of the sandbox: cannot make namespaces (ENOSPC); hint: bailiwick doctor [partial-sandbox]";
    assert!(run.stderr.lines().any(|line| line == said), "{}", run.stderr);
    // The full tier needs no reason, nor does a floor tier that the user asked for.
    for tier in tier::all() {
        let server = model_of([done()]);
        let run = Finished::of(world.task(&server.base_url(), ["do it"]).args(tier::flags(tier))).expect(0);
        assert!(!run.stderr.contains("tier"), "{}", run.stderr);
    }
}

#[test]
fn the_doctor_without_the_sandbox_says_that_nothing_can_be_confined() {
    let world = World::new(User::Myself);
    let place = world.root().join("programs");
    fs::create_dir(&place).unwrap();
    for name in ["bailiwick", "bailiwick-worker"] {
        copy_program(&Programs::get().path(name), &place.join(name));
    }
    let checks = doctor_json(&mut world.command(place.join("bailiwick")), 5);
    let sandbox = named(&checks, "sandbox");
    assert_eq!(sandbox["state"], "fail");
    let found = world.stable(sandbox["found"].as_str().unwrap());
    assert!(found.contains("no sandbox works here") && found.contains("sandbox-exec"), "{found}");
    assert!(sandbox["remedy"].is_string(), "{sandbox}");
}

fn debug_stream(world: &World, server: &ReplayServer, code: i32) -> Value {
    let request = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let request = world.file("request.json", request.to_string());
    let mut command = world.bailiwick(["debug", "stream", "--base-url", &server.base_url(), "--request"]);
    let run = Finished::of(command.arg(request).env("ANTHROPIC_API_KEY", tests::world::KEY)).expect(code);
    assert_eq!(run.stderr, "");
    let sent: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!((&sent["stream"], &sent["max_tokens"]), (&json!(true), &json!(9)));
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn debug_stream_prints_the_message_that_a_stream_amounts_to() {
    let world = World::new(User::Myself);
    let call = sse::Block::tool_use("toolu_0", "read_file", r#"{"path": "a"}"#);
    let reply = sse::message(&[sse::Block::text("Hällo."), call], "tool_use", sse::Usage::default());
    let answer = debug_stream(&world, &serve([Reply::sse(reply).chunked(3)]), 0);
    assert_eq!(answer["ok"], true);
    let message = &answer["message"];
    assert_eq!((&message["type"], &message["stop_reason"]), (&json!("message"), &json!("tool_use")));
    assert_eq!(message["content"][0], json!({"type": "text", "text": "Hällo."}));
    let called = &message["content"][1];
    assert_eq!((&called["name"], &called["input"]), (&json!("read_file"), &json!({"path": "a"})));
}

#[test]
fn debug_stream_prints_an_error_and_ends_with_six() {
    let world = World::new(User::Myself);
    let server = serve([Reply::error(529, "overloaded_error", "Overloaded")]);
    let answer = debug_stream(&world, &server, 6);
    assert_eq!(answer["ok"], false);
    let error = &answer["error"];
    assert_eq!((&error["type"], &error["status"]), (&json!("overloaded_error"), &json!(529)));
    assert_eq!(server.requests().len(), 1, "one attempt");
}
