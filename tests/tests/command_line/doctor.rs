//! Tests the report of `bailiwick doctor`: it contains no secrets, and by default no network request is made.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Command;

use ipc::confinement::Tier;
use model::replay::{ReplayServer, Reply, Script};
use nix::errno::Errno;
use serde_json::Value;
use tests::silent_port::SilentPort;
use tests::tier::{self, everywhere};
use tests::world::KEY;
use tests::{Finished, User, World, outer};

fn doctor(command: &mut Command) -> (Finished, Vec<Value>) {
    let run = Finished::of(command).expect(0);
    let diagnosis: Value = serde_json::from_str(&run.stdout).unwrap();
    let checks = diagnosis["checks"].as_array().unwrap().clone();
    (run, checks)
}

fn named(checks: &[Value], name: &str) -> (String, String, Option<String>) {
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("no check {name}: {checks:?}"));
    let text = |member: &str| check[member].as_str().map(str::to_owned);
    (text("state").unwrap(), text("found").unwrap(), text("remedy"))
}

#[test]
fn everything_around_a_confinement_is_looked_at_for_every_user() {
    for user in User::all() {
        let world = World::new(user);
        let (_, checks) = doctor(&mut world.bailiwick(["doctor", "--json"]));
        for name in ["limits", "cgroups", "proxy", "ca certs", "settings", "state dir", "temp dir", "clock"] {
            named(&checks, name);
        }
        assert!(!checks.iter().any(|check| check["name"] == "api"), "nobody is asked who was not to be");
        let (state, found, _) = named(&checks, "git");
        let version = Finished::of(world.command("git").arg("--version")).expect(0).stdout;
        let version = version.trim().strip_prefix("git version ").unwrap();
        assert_eq!((state.as_str(), found.starts_with(&format!("{version}, /"))), ("ok", true), "{found}");
    }
}

#[test]
fn what_bounds_a_fork_bomb_is_told_and_follows_the_settings() {
    let bounds = |user| {
        let world = World::new(user);
        world.configure("[limits]\nprocesses = 321\n");
        let (_, checks) = doctor(&mut world.bailiwick(["doctor", "--json"]));
        (named(&checks, "tier").1.starts_with("full"), named(&checks, "bounds").1)
    };
    for user in User::all() {
        let is_root = matches!(user, User::Myself) && nix::unistd::geteuid().is_root();
        let (full, told) = bounds(user);
        let bounded = full && !is_root;
        let expected = if bounded {
            "at most 321 processes; memory not limited"
        } else {
            "processes not limited; memory not limited"
        };
        assert_eq!(told, expected, "{user:?}");
    }
}

#[test]
fn no_secret_is_told() {
    let world = World::new(User::Myself);
    let mut command = world.bailiwick(["doctor", "--json"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("HTTPS_PROXY", "http://me:hunter2@proxy.example:3128");
    let (run, checks) = doctor(&mut command);
    assert_eq!(named(&checks, "key").1, "in ANTHROPIC_API_KEY");
    assert_eq!(named(&checks, "proxy").1, "HTTPS_PROXY=http://proxy.example:3128");
    for secret in [KEY, &KEY[KEY.len() - 8..], "hunter2"] {
        assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{}", run.stdout);
    }
}

fn promises(run: &Finished) -> Vec<Value> {
    let page: Value = serde_json::from_str(&run.stdout).unwrap();
    page["promises"].as_array().unwrap().clone()
}

fn promise<'a>(promises: &'a [Value], name: &str) -> &'a Value {
    let found = promises.iter().find(|promise| promise["name"] == name);
    found.unwrap_or_else(|| panic!("no promise {name}: {promises:?}"))
}

#[test]
fn each_promise_has_its_holder_in_each_tier_for_every_user() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let flags = [&["doctor", "--promises"][..], tier::flags(tier)].concat();
        let listed = promises(&Finished::of(world.bailiwick(&flags).arg("--json")).expect(0));
        let expected = match tier {
            Tier::Full => [("metadata outside", "kernel"), ("information", "kernel")],
            Tier::Floor | Tier::FloorUnmediated => {
                [("metadata outside", "broker"), ("information", "nobody")]
            }
        };
        for (name, holder) in expected {
            assert_eq!(promise(&listed, name)["held_by"], holder, "{user:?} {tier}: {name}");
        }
        let denied = |name: &str| promise(&listed, name)["denied"].as_array().unwrap().len();
        for name in ["write outside", "secrets", "abstract unix sockets", "leases and notifications"] {
            assert!(denied(name) > 0, "{user:?} {tier}: {name}");
        }
        let text = Finished::of(&mut world.bailiwick(&flags)).expect(0).stdout;
        let open = listed.iter().filter(|promise| promise["held_by"] == "nobody").count();
        assert_eq!(text.lines().filter(|line| line.starts_with("OPEN ")).count(), open, "{text}");
        for promise in &listed {
            let name = format!("{}: ", promise["name"].as_str().unwrap());
            let is_its = |line: &&str| line.get(8..).is_some_and(|line| line.starts_with(&name));
            assert_eq!(text.lines().filter(is_its).count(), 1, "{name}{text}");
            assert_eq!(promise["remedy"].is_string(), promise["held_by"] == "nobody", "{promise}");
        }
    }
}

#[test]
fn where_no_agent_starts_no_promise_is_said_to_hold() {
    let world = World::new(User::Myself);
    let mut doctor = world.bailiwick(["doctor", "--promises", "--json"]);
    outer::refuse(&mut doctor, &[nix::libc::SYS_landlock_create_ruleset], Errno::ENOSYS);
    let listed = promises(&Finished::of(&mut doctor).expect(5));
    assert!(listed.len() > 20);
    for promise in listed {
        let why = promise["why"].as_str().unwrap();
        assert_eq!(promise["held_by"], "nobody");
        assert!(
            why.starts_with("no agent starts here: ") && why.contains("Landlock is not available"),
            "{why}"
        );
    }
}

fn ask(world: &World, base_url: &str) -> (String, String, Option<String>) {
    let mut command = world.bailiwick(["doctor", "--json", "--api"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", base_url);
    named(&doctor(&mut command).1, "api")
}

/// Starts a server that gives this reply to every request, even to an invalid one.
fn answers(reply: Reply) -> ReplayServer {
    ReplayServer::start(Script::new().push(reply)).unwrap()
}

fn host(server: &ReplayServer) -> String {
    server.base_url().trim_start_matches("http://").to_owned()
}

#[test]
fn the_api_is_asked_without_a_key_and_any_answer_is_one() {
    let world = World::new(User::Myself);
    for status in [200, 401, 404] {
        let server = answers(Reply::error(status, "x", "y"));
        let (state, found, _) = ask(&world, &server.base_url());
        let expected = format!("{} answers ({status} without a key)", host(&server));
        assert_eq!((state.as_str(), found), ("ok", expected));
        let request = &server.requests()[0];
        for header in ["x-api-key", "authorization"] {
            assert!(request.header(header).is_none(), "no key goes out");
        }
    }
    let broken = answers(Reply::error(501, "x", "y"));
    let (state, found, remedy) = ask(&world, &broken.base_url());
    assert_eq!(state, "warn");
    assert!(found.ends_with("(501 without a key): the server answers with an error"), "{found}");
    assert_eq!(remedy.as_deref(), Some("try again later, or check the base URL"));
    let old = Reply::error(401, "x", "y").header("date", "Tue, 15 Nov 1994 08:12:31 GMT");
    let (state, found, remedy) = ask(&world, &answers(old).base_url());
    assert_eq!(state, "warn");
    assert!(found.contains("; the clock is ") && found.ends_with(" s ahead of the server's"), "{found}");
    assert_eq!(remedy.as_deref(), Some("set the clock"));
}

#[test]
fn an_api_that_nobody_answers_for_is_told_with_what_to_check() {
    let world = World::new(User::Myself);
    let silent = SilentPort::take();
    let port = silent.number();
    let (state, found, remedy) = ask(&world, &format!("http://127.0.0.1:{port}"));
    assert_eq!(
        (state.as_str(), found),
        ("warn", format!("127.0.0.1:{port} refused the connection: no server listens there"))
    );
    assert_eq!(remedy.as_deref(), Some("start the server, or check --base-url"));
    let (state, found, _) = ask(&world, "not a url");
    assert_eq!(state, "warn");
    assert!(found.contains("is not a URL"), "{found}");
}
