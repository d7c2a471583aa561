//! Tests levels of access: a command finds the cached files of commands that had at least the same access, and never
//! those of commands with less.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::replies::model;
use tests::served::Served;
use tests::world::tool_results;
use tests::{Finished, User, World, tier};

/// Environment variables of directories whose content is executed later: caches, a search path, a build directory, a
/// home.
const LED: [&str; 5] = ["PIP_CACHE_DIR", "GOMODCACHE", "PNPM_HOME", "npm_config_cache", "CARGO_TARGET_DIR"];

/// Command that executes the planted program in each directory of [`LED`].
const EXECUTE: &str = "for d in $LED; do [ ! -e $d/tool ] || sh $d/tool; done; true";

/// Returns a command that plants a program in each directory of [`LED`]. The program prints `who`.
fn plant(who: &str) -> String {
    format!("for d in $LED; do mkdir -p $d && echo 'echo by {who}; echo {who} >> by' > $d/tool; done")
}

fn line(command: &str) -> String {
    let led = LED.map(|name| format!("${name}"));
    format!("LED=\"{}\"; {command}", led.join(" "))
}

fn unasked(command: &str) -> (&'static str, Value) {
    ("shell_exec", json!({"command": line(command)}))
}

fn approved(command: &str) -> (&'static str, Value) {
    ("shell_exec", json!({"command": line(command), "access": "write"}))
}

fn online(command: &str) -> (&'static str, Value) {
    ("shell_exec", json!({"command": line(command), "access": "write", "network": true}))
}

/// Makes calls in mode `ask`, approves every request, and returns the results of the calls.
fn play(world: &World, project: &Path, tier: &str, calls: &[(&str, Value)]) -> Vec<String> {
    play_with(world, project, tier, calls, &[])
}

/// As [`play`], with additional environment variables.
fn play_with(
    world: &World,
    project: &Path,
    tier: &str,
    calls: &[(&str, Value)],
    variables: &[(&str, &str)],
) -> Vec<String> {
    let server = model(calls);
    let mut command = world.bailiwick(["serve"]);
    command.envs(variables.iter().copied());
    command.env("ANTHROPIC_API_KEY", tests::world::KEY).env("CARGO_TARGET_DIR", world.root().join("target"));
    let mut front_end = Served::of(command);
    front_end.call("initialize", json!({}));
    let options = json!({"cwd": project, "base_url": server.base_url(), "mode": "ask", "tier": tier});
    let id = front_end.call("newConversation", options)["conversation_id"].clone();
    front_end.line(
        &json!({"jsonrpc": "2.0", "id": "m", "method": "sendUserMessage",
            "params": {"conversation_id": id, "text": "go"}})
        .to_string(),
    );
    loop {
        let told = front_end.read().unwrap();
        if told["method"].as_str().is_some_and(|method| method.ends_with("Approval")) {
            let answer = json!({"jsonrpc": "2.0", "id": told["id"], "result": {"decision": "approved"}});
            front_end.line(&answer.to_string());
        }
        if told["method"] == "event/turnFinished" {
            break;
        }
    }
    let results = (1..=calls.len()).map(|request| tool_results(&server, request)[0]["content"].to_string());
    let results = results.collect();
    assert_eq!(front_end.end().1.code, 0);
    results
}

fn word(tier: ipc::confinement::Tier) -> &'static str {
    if tier == ipc::confinement::Tier::Full { "full" } else { "floor" }
}

fn places(world: &World, of: &str) -> Vec<PathBuf> {
    let list = |directory: &Path| {
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let roots: Vec<PathBuf> = list(&world.own().join("cache").join(of));
    roots.iter().flat_map(|root| -> Vec<PathBuf> { list(root) }).filter(|place| place.is_dir()).collect()
}

#[test]
fn an_approved_command_executes_nothing_that_an_unasked_one_left() {
    // Control: without levels, the planted program gets the approved command's access.
    let control = World::new(User::Myself);
    let shell = |command: &str| {
        let mut bash = control.command("bash");
        for name in LED {
            bash.env(name, control.root().join(name));
        }
        Finished::of(bash.current_dir(control.project()).args(["-c", &line(command)])).expect(0)
    };
    shell(&plant("unasked"));
    assert_eq!(shell(EXECUTE).stdout, "by unasked\n".repeat(LED.len()));

    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let everywhere = format!(
            "for d in {}/*/*/* $TMPDIR/../*/caches; do echo 'echo by glob' > $d/tool; done; true",
            world.own().join("cache").display()
        );
        let calls = [
            unasked(&plant("unasked")),
            unasked(&everywhere),
            approved(EXECUTE),
            approved(&plant("approved")),
            unasked(&everywhere),
            online(EXECUTE),
            online(&plant("online")),
            approved(EXECUTE),
        ];
        let results = play(&world, &world.project(), word(tier), &calls);
        for at in [2, 5] {
            assert!(
                results[at].contains("exit code 0") && !results[at].contains("by "),
                "{tier}, {user:?}: {}",
                results[at]
            );
        }
        // The directory has an older copy. The file from the level with more access is newer, and replaces it.
        assert_eq!(results[7].matches("by online").count(), LED.len(), "{tier}, {user:?}: {}", results[7]);
        assert_eq!(world.read("by"), "online\n".repeat(LED.len()), "{tier}, {user:?}");
        let planted = places(&world, "projects").into_iter().filter(|place| place.join("tool").exists());
        assert_eq!(planted.collect::<Vec<_>>(), [""; 0].map(PathBuf::from), "{tier}, {user:?}");
    }
}

#[test]
fn an_unasked_command_finds_what_an_approved_one_brought() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let calls = [
            unasked("mkdir -p $PIP_CACHE_DIR && echo own > $PIP_CACHE_DIR/own"),
            online(&plant("online")),
            unasked(&format!("cat $PIP_CACHE_DIR/own; {EXECUTE}")),
            approved(EXECUTE),
            unasked("echo changed > $PIP_CACHE_DIR/tool && cat $PIP_CACHE_DIR/tool"),
            online(EXECUTE),
        ];
        let results = play(&world, &world.project(), word(tier), &calls);
        assert!(
            results[2].contains("own") && results[2].matches("by online").count() == LED.len(),
            "{}",
            results[2]
        );
        assert!(
            results[2].contains("denied") || results[2].contains("Read-only"),
            "its rights: {}",
            results[2]
        );
        assert!(results[4].contains("changed"), "its copy is its own to write: {}", results[4]);
        for at in [3, 5] {
            assert_eq!(
                results[at].matches("by online").count(),
                LED.len(),
                "{tier}, {user:?}: {}",
                results[at]
            );
        }
        // The log has each generation of the worker, and no call was interrupted by a renewal.
        let log = world.log();
        let ends = log.iter().filter(|event| event["type"] == "tool_call_finished");
        assert!(
            ends.clone().all(|event| event["data"]["status"] == "completed"),
            "{:?}",
            ends.collect::<Vec<_>>()
        );
    }
}

/// Tests an environment whose search path leads into `/tmp`, which is the private temp directory in the full tier.
#[test]
fn no_search_path_leads_to_what_an_unasked_command_made() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let bin = "/tmp/bailiwick-levels/bin";
        let plant = format!(
            "mkdir -p {bin}; printf '#!/bin/sh\\necho by unasked\\n' > {bin}/planted; chmod +x {bin}/planted"
        );
        let calls = [
            unasked(&format!("({plant}; PATH={bin} planted) 2>/dev/null; true")),
            approved("planted; sh -c \"$BASH_ENV\"; echo PATH=$PATH CARGO_HOME=$CARGO_HOME"),
        ];
        let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
        let variables =
            [("PATH", path.as_str()), ("CARGO_HOME", bin), ("BASH_ENV", "/tmp/bailiwick-levels/bin/planted")];
        let results = play_with(&world, &world.project(), word(tier), &calls, &variables);
        let is_private = tier == ipc::confinement::Tier::Full;
        assert_eq!(results[0].contains("by unasked"), is_private, "the control: {}", results[0]);
        assert!(!results[1].contains("by unasked"), "{tier}, {user:?}: {}", results[1]);
        assert_eq!(results[1].contains(bin), !is_private, "{tier}, {user:?}: {}", results[1]);
    }
}

/// Runs a command with the access that an agent's command would have.
fn sandbox(world: &World, tier: &str, net: &str, command: &str) -> Finished {
    let mut bailiwick = world.bailiwick(["sandbox", "--tier", tier, "--net", net, "-C"]);
    Finished::of(bailiwick.arg(world.project()).args(["--", "bash", "-c", &line(command)]))
}

#[test]
fn what_is_left_without_the_network_is_not_executed_with_it_nor_in_the_next_checkout() {
    for (user, tier) in tier::everywhere() {
        let tier = word(tier);
        let world = World::new(user);
        sandbox(&world, tier, "off", &plant("offline")).expect(0);
        let found = |net| sandbox(&world, tier, net, "ls $PIP_CACHE_DIR 2>/dev/null; true").expect(0).stdout;
        assert_eq!((found("off"), found("on")), ("tool\n".into(), String::new()), "{tier}, {user:?}");
        sandbox(&world, tier, "on", "mkdir -p $PIP_CACHE_DIR; echo x > $PIP_CACHE_DIR/fetched").expect(0);
        assert_eq!(
            (found("off"), found("on")),
            ("fetched\ntool\n".into(), "fetched\n".into()),
            "{tier}, {user:?}"
        );
        fs::remove_dir_all(world.project()).unwrap();
        fs::create_dir(world.project()).unwrap();
        world.give(&world.project());
        assert_eq!((found("off"), found("on")), (String::new(), String::new()), "{tier}, {user:?}");
    }
}

/// Tests workers that run as another user, who cannot enter Bailiwick's cache directory.
#[test]
fn levels_are_kept_apart_where_root_works_as_another_user() {
    if !nix::unistd::geteuid().is_root() {
        tests::skip!("only root works as another user");
    }
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let project = tempfile::Builder::new().prefix("bw-owner-").tempdir().unwrap();
        let uid = User::Plain.uid();
        std::os::unix::fs::chown(project.path(), Some(uid), Some(uid)).unwrap();
        let calls = [
            unasked(&plant("unasked")),
            approved(EXECUTE),
            approved(&plant("approved")),
            unasked(EXECUTE),
            unasked("id -u; stat -c %u $PIP_CACHE_DIR/tool"),
        ];
        let results = play(&world, project.path(), word(tier), &calls);
        assert!(!results[1].contains("by "), "{tier}: {}", results[1]);
        assert_eq!(results[3].matches("by approved").count(), LED.len(), "{tier}: {}", results[3]);
        assert!(results[4].contains(&format!("{uid}\\n{uid}\\n")), "{tier}: {}", results[4]);
        assert!(places(&world, "projects").is_empty() && places(&world, "sessions").is_empty());
    }
}

/// Tests three ways to write another level's directory: an approved command, a file tool, and a flag. Files there would
/// be executed with that level's access.
#[test]
fn no_approval_and_no_flag_opens_the_place_of_another_level() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        sandbox(&world, word(tier), "on", &plant("online")).expect(0);
        let [place] = &places(&world, "projects")[..] else { panic!("one place") };
        let tool = place.join("planted").display().to_string();
        let calls = [
            ("write_file", json!({"path": tool, "content": "x"})),
            approved(&format!("echo x > {tool}")),
            approved(&format!("echo x > {tool}")),
            ("write_file", json!({"path": "beside", "content": "x"})),
        ];
        let results = play(&world, &world.project(), word(tier), &calls);
        for result in &results[..3] {
            assert!(!Path::new(&tool).exists() && !result.contains("--write"), "{tier}, {user:?}: {result}");
        }
        assert!(
            results[0].contains("blocked by") || results[0].contains("denied"),
            "{tier}, {user:?}: {}",
            results[0]
        );
        assert_eq!(world.read("beside"), "x", "the control: what a person can approve");
        let flag = place.display().to_string();
        let mut bailiwick = world.bailiwick(["sandbox", "--tier", word(tier), "--write", &flag, "-C"]);
        let refused = Finished::of(bailiwick.arg(world.project()).args(["--", "true"]));
        assert!(refused.stderr.contains("is in the package caches"), "{}", refused.stderr);
        assert_eq!(refused.code, 5, "{tier}, {user:?}");
    }
}

#[test]
fn caches_that_are_given_away_are_told_and_forgotten_ones_leave_nothing() {
    let world = World::new(User::Myself);
    let run = |flags: &[&str]| {
        let mut bailiwick = world.bailiwick(["sandbox", "-C"]);
        bailiwick.arg(world.project()).args(flags).args(["--", "bash", "-c", &line(&plant("me"))]);
        Finished::of(&mut bailiwick).expect(0).stderr
    };
    assert_eq!(run(&["--forget-caches"]), "");
    assert!(places(&world, "projects").is_empty() && places(&world, "sessions").is_empty());
    let cache = world.own().join("cache/projects").display().to_string();
    assert_eq!(run(&[]), "");
    let told = format!(
        "{cache} contains the package caches: agents could change files there that commands with more access execute"
    );
    let said = run(&["--write", &cache]);
    assert!(said.contains(&told), "{said}");
}
