//! Tests that hidden files in the project stay hidden under any name that an agent creates: from the same worker, the
//! next worker, and the worker that computes the change set.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Stdio;

use ipc::confinement::Tier;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::replies::model;
use tests::world::tool_results;
use tests::{User, World, tier, wait_until};

// Content of the hidden file, and of a file that is not hidden.
const SECRET: &str = "CANARY";
const OPEN: &str = "PLAIN";

/// Command that reads every readable file of the project.
const READ_ALL: &str = "find . -type f -exec cat {} +; true";

/// Command that waits until it is killed with its worker.
const WAIT: &str = "echo > waiting; while :; do sleep 9; done";

/// Hidden file, the command by which an agent gives it another name, and that name. The last trick is a hard link,
/// which agents cannot create, so the link exists from the start.
struct Trick {
    hidden: &'static str,
    file: &'static str,
    command: &'static str,
    becomes: &'static str,
    /// True if the full tier lets the agent read the other name.
    in_full: bool,
}

const fn trick(
    hidden: &'static str,
    file: &'static str,
    command: &'static str,
    becomes: &'static str,
) -> Trick {
    Trick { hidden, file, command, becomes, in_full: false }
}

const TRICKS: [Trick; 7] = [
    trick("a/key", "a/key", "mv a b", "b/key"),
    trick("a/b/c/key", "a/b/c/key", "mv a/b/c a/b/d; mv a/b x/y; mv a z", "x/y/d/key"),
    trick("a/secret", "a/secret/key", "mv a b", "b/secret/key"),
    trick("secret", "secret/key", "mv secret/key x/key; mv secret x/s", "x/key"),
    trick(".env", ".env", "mv .env x/e", "x/e"),
    trick(".env", ".env", "ln .env x/e", "x/e"),
    Trick { in_full: true, ..trick(".env", ".env", "true", "old/twin") },
];

fn project(user: User, trick: &Trick) -> World {
    let world = World::new(user);
    world.file(trick.file, SECRET);
    world.file("old/plain.txt", OPEN);
    if trick.becomes == "old/twin" {
        fs::hard_link(world.project().join(trick.file), world.project().join(trick.becomes)).unwrap();
    }
    world
}

/// Runs a command, then lets the same worker, the next worker and the worker for the change set read all files.
fn play(trick: &Trick, tier: Tier, user: User) {
    let world = project(user, trick);
    let server = model(&[
        ("shell_exec", json!({"command": format!("mkdir x; {}; true", trick.command)})),
        ("shell_exec", json!({"command": READ_ALL})),
        ("shell_exec", json!({"command": WAIT})),
        ("shell_exec", json!({"command": READ_ALL})),
        ("read_file", json!({"path": trick.becomes})),
        ("search_files", json!({"pattern": "CAN.RY"})),
    ]);
    let patch = world.own().join("out.diff");
    let flags = [tier::flags(tier), &["--mode", "auto", "--hide", trick.hidden, "--patch"]].concat();
    let mut command = world.exec(&server, &[&flags[..], &[patch.to_str().unwrap()]].concat());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the command waits", || world.project().join("waiting").exists());
    kill(Pid::from_raw(worker_of(&world)), Signal::SIGKILL).unwrap();
    let done = tests::Finished::from(child.wait_with_output().unwrap());

    let what = format!("{tier} {user:?} {}: {}", trick.hidden, trick.command);
    assert_eq!(done.events_of("worker_started").len(), 2, "{what}: {}", done.stderr);
    for request in [2, 4] {
        let read = tool_results(&server, request)[0]["content"].to_string();
        assert!(read.contains(OPEN), "what is not hidden can be read: {what}: {read}");
    }
    let moved = tier == Tier::Floor || trick.in_full;
    let name = if moved { trick.becomes } else { trick.file };
    let secret = fs::read_to_string(world.project().join(name)).unwrap();
    assert_eq!(secret, SECRET, "who is not confined reads it: {what}");
    let mut told: Vec<String> =
        server.requests().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    told.extend([done.stdout, done.stderr, fs::read_to_string(&patch).unwrap_or_default()]);
    told.push(Value::from(world.log()).to_string());
    for told in told {
        assert!(!told.contains(SECRET), "{what}: {told}");
    }
}

fn worker_of(world: &World) -> i32 {
    let started = world.log().into_iter().find(|event| event["type"] == "worker_started").unwrap();
    i32::try_from(started["data"]["pid"].as_i64().unwrap()).unwrap()
}

fn play_everywhere(tricks: &[Trick]) {
    for tier in tier::all() {
        for user in User::all() {
            for trick in tricks {
                play(trick, tier, user);
            }
        }
    }
}

#[test]
fn a_hidden_place_whose_parent_is_renamed_stays_hidden() {
    play_everywhere(&TRICKS[..3]);
}

#[test]
fn a_hidden_file_that_is_moved_elsewhere_stays_hidden() {
    play_everywhere(&TRICKS[3..5]);
}

#[test]
fn another_name_of_a_hidden_file_is_hidden_as_well() {
    play_everywhere(&TRICKS[5..]);
}
