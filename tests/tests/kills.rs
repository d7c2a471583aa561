//! The supervisor is killed at random moments of a session with changes of files, commands and a sub-agent, and the session goes on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use supervisor::replay::ReplayServer;
use supervisor::session;
use tests::random::Random;
use tests::replies::{calls, done, model_of, shell};
use tests::{Finished, User, World, marked, wait_until};

/// The steps of the run: what it makes of the project, in order, is [`STATES`].
fn script() -> ReplayServer {
    model_of([
        calls(&[("write_file", json!({"path": "a", "content": "1\n"}))]),
        shell("echo once >> first"),
        calls(&[("edit_file", json!({"path": "a", "old_string": "1", "new_string": "2"}))]),
        calls(&[("spawn_agent", json!({"task": "append", "access": "write"}))]),
        shell("echo once >> second"),
        done(),
        shell("echo once >> third"),
        calls(&[("write_file", json!({"path": "a", "content": "3\n"}))]),
        done(),
    ])
}

/// The contents of `a`, `first`, `second` and `third` after each step; empty where there is no file.
const STATES: [[&str; 4]; 7] = [
    ["", "", "", ""],
    ["1\n", "", "", ""],
    ["1\n", "once\n", "", ""],
    ["2\n", "once\n", "", ""],
    ["2\n", "once\n", "once\n", ""],
    ["2\n", "once\n", "once\n", "once\n"],
    ["3\n", "once\n", "once\n", "once\n"],
];

fn state(world: &World) -> [String; 4] {
    ["a", "first", "second", "third"]
        .map(|name| fs::read_to_string(world.project().join(name)).unwrap_or_default())
}

fn log_of(world: &World) -> Option<PathBuf> {
    Some(fs::read_dir(world.own().join("state/sessions")).ok()?.flatten().next()?.path())
}

/// Fails unless every call of the request has its result in the message behind it; the number of those that were cut off.
fn paired(server: &ReplayServer) -> usize {
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    let (mut open, mut cut) = (Vec::new(), 0);
    let of = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.filter(|block| block["type"] == kind).map(|block| block[id].to_string()).collect()
    };
    for message in body["messages"].as_array().unwrap() {
        assert_eq!(of(message, "tool_result", "tool_use_id"), open, "{body}");
        open = of(message, "tool_use", "id");
        cut += message.to_string().matches("the session ended before this call did").count();
    }
    assert!(open.is_empty(), "{body}");
    cut
}

/// Runs a session, kills it after that time, and has it go on; true if it was killed within a call.
fn killed_after(time: Duration) -> bool {
    let world = World::new(User::Myself);
    let server = script();
    let mut child =
        world.exec(&server, &["--mode", "auto"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(time);
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    wait_until("no process of the session is left", || marked(world.mark().as_bytes()).is_empty());
    let after_kill = state(&world);
    assert!(STATES.iter().any(|state| *state == after_kill), "{after_kill:?}");
    let Some(log) = log_of(&world) else { return false };
    let before = fs::read(&log).unwrap();
    let whole = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole == 0 {
        return false;
    }
    let said = String::from_utf8_lossy(&before[..whole]).contains(r#""type":"user_message""#);
    let second = model_of([done()]);
    let resumed = Finished::of(&mut world.exec(&second, &["--mode", "auto", "-c"]));
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(state(&world), after_kill, "nothing runs again");
    let now = fs::read(&log).unwrap();
    assert_eq!(now[..whole], before[..whole], "no written event is lost");
    let loaded = session::load(&log).unwrap();
    assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
    let cut = if said { paired(&second) } else { 0 };
    let names: Vec<_> =
        fs::read_dir(world.project()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".bw-")), "{names:?}");
    assert_eq!(world.temps(), Vec::<PathBuf>::new(), "no temp is left");
    let audit = Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project())).expect(0);
    assert!(!audit.stdout.contains("finding:"), "{}", audit.stdout);
    cut > 0
}

#[test]
fn a_session_that_is_killed_at_any_moment_goes_on_from_there() {
    let kills: u32 = std::env::var("BAILIWICK_KILLS").map_or(50, |kills| kills.parse().unwrap());
    let seed = std::env::var("BAILIWICK_SEED")
        .map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    // The time of a run that nobody kills.
    let world = World::new(User::Myself);
    let began = Instant::now();
    Finished::of(&mut world.exec(&script(), &["--mode", "auto"])).expect(0);
    let longest = u64::try_from(began.elapsed().as_micros()).unwrap();
    assert_eq!(state(&world), STATES[STATES.len() - 1]);
    let mut random = Random::new(seed);
    let times: Vec<_> = (0..kills).map(|_| Duration::from_micros(random.below(longest))).collect();
    let cut: usize = times
        .iter()
        .map(|time| {
            let killed = std::panic::catch_unwind(|| killed_after(*time));
            usize::from(killed.unwrap_or_else(|_| panic!("seed {seed}, killed after {time:?}")))
        })
        .sum();
    assert!(cut > 0 || kills < 20, "no kill fell into a call: seed {seed}, {longest} µs");
}
