//! The other commands, as a user starts them: `demo`, `doctor`, `debug stream` and `bench`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ipc::confinement::Tier;
use nix::unistd::geteuid;
use serde_json::{Value, json};
use supervisor::replay::{ReplayServer, Reply, sse};
use tests::programs::copy_program;
use tests::replies::{done, model_of, serve};
use tests::tier::{self, everywhere};
use tests::{Finished, Programs, User, World, skip};

/// Whether cargo works for the world's user, unconfined: rustup's needs a home that others may not enter.
fn cargo_works(world: &World) -> bool {
    world.command("cargo").arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_demo_fixes_its_bug_shows_a_proved_denial_and_gives_a_patch_that_applies() {
    let world = World::new(User::Myself);
    if !cargo_works(&world) {
        skip!("not on this machine: cargo");
    }
    let kept = world.root().join("kept");
    let run = Finished::of(world.bailiwick(["demo", "--keep"]).arg(&kept)).expect(0);
    let note = world.home().join("sizes-bug.md");
    let layer = match tier::all()[0] {
        Tier::Full => "read-only mount",
        Tier::Floor | Tier::FloorUnmediated => "Landlock",
    };
    let denial = format!("✗ blocked by the kernel ({layer}): {} is read-only here", note.display());
    assert!(run.stderr.contains(&denial), "{}", run.stderr);
    assert!(!note.exists());
    let verdict =
        "bailiwick: by the session's log: the tests pass now, and a write outside of the project was denied";
    assert_eq!(run.stderr.lines().last(), Some(verdict));
    assert!(!run.stderr.contains("fix.diff"), "a file that is gone is not named: {}", run.stderr);
    // The project as it was is the fixed one with the patch taken back: it applies there, and gives the same again.
    let fixed = fs::read_to_string(kept.join("src/parse.rs")).unwrap();
    apply(&world, &kept, &["-R"], &run.stdout);
    assert_ne!(fs::read_to_string(kept.join("src/parse.rs")).unwrap(), fixed);
    apply(&world, &kept, &[], &run.stdout);
    assert_eq!(fs::read_to_string(kept.join("src/parse.rs")).unwrap(), fixed);
}

/// `git apply` of what was printed, the model's words before the patch included.
fn apply(world: &World, project: &Path, arguments: &[&str], patch: &str) {
    let mut git = world.command("git");
    let git = git.arg("apply").args(arguments).current_dir(project).stdin(Stdio::piped());
    let mut git = git.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(patch.as_bytes()).unwrap();
    Finished::from(git.wait_with_output().unwrap()).expect(0);
}

#[test]
fn the_demo_says_what_it_needs_before_it_starts() {
    let world = World::new(User::Myself);
    let empty = world.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let run = Finished::of(world.bailiwick(["demo"]).env("PATH", &empty)).expect(1);
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.stderr,
        "bailiwick: the demonstration needs cargo on PATH: it runs the tests of a small crate\n"
    );
    let run = Finished::of(world.bailiwick(["demo", "--keep"]).arg(&empty)).expect(2);
    assert_eq!(run.stdout, "");
    let said = "bailiwick: --keep [world]/empty: it exists already; name a directory that does not\n";
    assert_eq!(world.stable(&run.stderr), said);
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn a_demo_whose_tests_do_not_pass_fails() {
    let world = World::new(User::Myself);
    // A cargo that passes no test: what the model says beside is the same.
    let cargo = world.root().join("bin/cargo");
    fs::create_dir(cargo.parent().unwrap()).unwrap();
    fs::write(&cargo, "#!/bin/sh\necho no such luck\nexit 101\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&cargo, mode).unwrap();
    let path = std::env::join_paths([cargo.parent().unwrap(), Path::new("/usr/bin"), Path::new("/bin")]);
    let run = Finished::of(world.bailiwick(["demo"]).env("PATH", path.unwrap())).expect(1);
    let last = run.stderr.lines().last();
    assert_eq!(last, Some("bailiwick: the demonstration failed: the last `cargo test` did not pass"));
    assert!(run.stderr.contains("✗ run ") && run.stderr.contains("ms: no such luck"));
}

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
        assert_eq!(found.contains("as --tier floor asks"), json!(tier) != best, "{found}");
        let attack = named(&checks, "self-test");
        assert_eq!(attack["state"], "ok", "{attack}");
        assert!(attack["found"].as_str().unwrap().starts_with("a confined process could not: "), "{attack}");
        for name in ["kernel", "tier", "shell", "git", "terminal", "key", "state dir"] {
            named(&checks, name);
        }
    }
}

/// `bailiwick` in a user namespace in which no other can be made.
fn without_namespaces(world: &World, arguments: &str) -> Finished {
    let program = Programs::get().path("bailiwick").display().to_string();
    let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {program} {arguments}");
    let mut unshare = world.command("unshare");
    unshare.args(["-Ur", "bash", "-c", &script]).env("ANTHROPIC_API_KEY", tests::world::KEY);
    Finished::of(&mut unshare)
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
        let why =
            "floor: runs start in it, for there is no full tier here: cannot make namespaces (ENOSPC); ";
        assert!(found.as_str().unwrap().starts_with(why), "{found}");
        assert_eq!(remedy, "for the full tier: sysctl -w user.max_user_namespaces=15000");
        let refused = without_namespaces(&world, "doctor --tier full").expect(5);
        let said: Vec<_> = refused.stdout.lines().take(2).map(str::trim_end).collect();
        assert_eq!(
            said,
            [
                "FAIL  sandbox     no full tier here, and no other was to be tried: cannot make namespaces (ENOSPC)",
                "                  hint: sysctl -w user.max_user_namespaces=15000; without --tier full, the floor holds"
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
    let said = "the floor tier: cannot make namespaces (ENOSPC); hint: bailiwick doctor";
    assert!(run.stderr.lines().any(|line| line == said), "{}", run.stderr);
    // Who asked for the floor needs no reason, and the full tier none.
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
    assert!(found.contains("cannot confine anything here") && found.contains("sandbox-exec"), "{found}");
    assert!(sandbox["remedy"].is_string(), "{sandbox}");
}

/// `debug stream` of a small request.
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

#[test]
fn a_bench_prints_its_ratios_as_json() {
    if !geteuid().is_root() {
        skip!("the memory of processes that are not dumpable");
    }
    let world = World::new(User::Myself);
    let run = Finished::of(&mut world.bailiwick(["bench", "idle-worker", "--json"])).expect(0);
    let reports: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    let [report] = reports.try_into().unwrap();
    assert_eq!(report["name"], "idle-worker");
    let ratios = report["ratios"].as_array().unwrap();
    assert!(!ratios.is_empty());
    for ratio in ratios {
        assert!(ratio["value"].as_f64().unwrap() > 0.0 && ratio["target"].as_f64().unwrap() > 0.0, "{ratio}");
    }
}

#[test]
fn a_bench_of_no_such_name_lists_those_that_there_are() {
    let world = World::new(User::Myself);
    let run = Finished::of(&mut world.bailiwick(["bench", "nosuch"])).expect(2);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("idle-worker"), "{}", run.stderr);
}
