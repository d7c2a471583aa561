//! Tests a supervisor that is killed at random moments of a session with a sub-agent. The session is then continued.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use supervisor::journal::session;
use tests::random::Random;
use tests::replies::{calls, done, model_of};
use tests::{Finished, User, World, marked, wait_until};

fn append(file: &str) -> String {
    calls(&[("shell_exec", json!({"command": format!("echo once >> {file}"), "access": "write"}))])
}

/// Starts the model server of the run. Its steps change the project as [`STATES`] says.
fn script() -> ReplayServer {
    model_of([
        calls(&[("write_file", json!({"path": "a", "content": "1\n"}))]),
        append("first"),
        calls(&[("edit_file", json!({"path": "a", "old_string": "1", "new_string": "2"}))]),
        calls(&[("spawn_agent", json!({"task": "append", "access": "write"}))]),
        append("second"),
        done(),
        append("third"),
        calls(&[("write_file", json!({"path": "a", "content": "3\n"}))]),
        done(),
    ])
}

/// Contents of `a`, `first`, `second` and `third` after each step. Empty stands for a missing file.
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

/// Checks that the result of an interrupted change of `a` is right if it says that the change was made or was not made.
fn judged(input: &Value, result: &str, content: &str) {
    let left = input["content"].as_str().or_else(|| input["new_string"].as_str().map(|_| "2\n"));
    if result.contains("but the change was made") {
        assert_eq!(left, Some(content), "{input}");
    } else if result.contains("the change was not made") {
        assert_ne!(left, Some(content), "{input}");
    }
}

/// Checks that each call of the request has a correct result in the next message. Returns how many were interrupted.
fn paired(server: &ReplayServer, content: &str) -> usize {
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    let (mut open, mut cut, mut inputs) = (Vec::new(), 0, HashMap::new());
    let of = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.filter(|block| block["type"] == kind).map(|block| block[id].to_string()).collect()
    };
    for message in body["messages"].as_array().unwrap() {
        assert_eq!(of(message, "tool_result", "tool_use_id"), open, "{body}");
        for block in message["content"].as_array().unwrap() {
            match block["type"].as_str() {
                Some("tool_use") => _ = inputs.insert(block["id"].to_string(), block["input"].clone()),
                Some("tool_result") => {
                    judged(
                        &inputs[&block["tool_use_id"].to_string()],
                        &block["content"].to_string(),
                        content,
                    );
                }
                _ => {}
            }
        }
        open = of(message, "tool_use", "id");
        cut += message.to_string().matches("the session ended before this call did").count();
    }
    assert!(open.is_empty(), "{body}");
    cut
}

/// Approval mode of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Auto,
    /// Every action needs an approval. The approval is given at once.
    Ask,
}

impl Mode {
    fn begin(self, world: &World, server: &ReplayServer) -> Child {
        let socket = world.own().join("approve.sock");
        let mut exec = match self {
            Self::Auto => world.exec(server, &["--mode", "auto"]),
            Self::Ask => {
                world.exec(server, &["--mode", "ask", "--approval-socket", socket.to_str().unwrap()])
            }
        };
        let child = exec.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if self == Self::Ask {
            thread::spawn(move || approve_all(&socket));
        }
        child
    }
}

/// Approves all requests until the other side has gone.
fn approve_all(socket: &Path) {
    let stream = loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            // The run was killed before it listened, and the directory of the socket is gone.
            Err(_) if !socket.parent().is_some_and(Path::exists) => return,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    };
    let mut answers = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).unwrap();
        if request["id"].is_null() || request["method"].is_null() {
            continue;
        }
        let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"decision": "approved"}});
        if writeln!(answers, "{response}").is_err() {
            return;
        }
    }
}

/// Checks that the log has an approval before each effect beyond the standing rights.
fn all_approved(log: &[u8]) {
    let mut approved = HashSet::new();
    for line in String::from_utf8_lossy(log).lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let of = |call: &Value| format!("{} {call}", event["agent"]);
        match event["type"].as_str() {
            Some("approval_answered") if event["data"]["decision"]["decision"] == "approved" => {
                approved.insert(of(&event["data"]["call"]));
            }
            Some("worker_started") if !event["data"]["one_shot"].is_null() => {
                let call = of(&event["data"]["one_shot"]["call"]);
                assert!(approved.contains(&call), "{call} without its approval");
            }
            _ => {}
        }
    }
}

/// Runs a session, kills it after `time`, and continues it. Returns true if it was killed during a call.
fn killed_after(mode: Mode, time: Duration) -> bool {
    let world = World::new(User::Myself);
    let server = script();
    let mut child = mode.begin(&world, &server);
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
    all_approved(&before[..whole]);
    if mode == Mode::Ask {
        let answered = String::from_utf8_lossy(&before[..whole]).matches(r#""decision":"approved""#).count();
        let done = STATES.iter().position(|state| *state == after_kill).unwrap();
        assert!(done <= answered, "{done} steps with {answered} approvals");
    }
    let second = model_of([done()]);
    // A session without a message does not count as the last one, so it is continued by its name.
    let name = log.file_stem().unwrap().to_str().unwrap();
    let which = if said { &["-c"][..] } else { &["--resume", name] };
    let resumed = Finished::of(&mut world.exec(&second, &[&["--mode", "auto"], which].concat()));
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(state(&world), after_kill, "nothing runs again");
    let now = fs::read(&log).unwrap();
    assert_eq!(now[..whole], before[..whole], "no written event is lost");
    let loaded = session::load(&log).unwrap();
    assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
    let cut = if said { paired(&second, &after_kill[0]) } else { 0 };
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
    killed_at_random(Mode::Auto);
}

#[test]
fn a_session_that_is_killed_between_question_answer_and_act_goes_on_from_there() {
    killed_at_random(Mode::Ask);
}

fn killed_at_random(mode: Mode) {
    let kills: u32 = std::env::var("BAILIWICK_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let seed = std::env::var("BAILIWICK_SEED")
        .map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    // The time of a run that nobody kills.
    let world = World::new(User::Myself);
    let began = Instant::now();
    assert!(mode.begin(&world, &script()).wait().unwrap().success());
    let longest = u64::try_from(began.elapsed().as_micros()).unwrap();
    assert_eq!(state(&world), STATES[STATES.len() - 1]);
    let mut random = Random::new(seed);
    let times: Vec<_> = (0..kills).map(|_| Duration::from_micros(random.below(longest))).collect();
    let cut: usize = times
        .iter()
        .map(|time| {
            let killed = std::panic::catch_unwind(|| killed_after(mode, *time));
            usize::from(killed.unwrap_or_else(|_| panic!("seed {seed}, killed after {time:?}")))
        })
        .sum();
    assert!(cut > 0 || kills < 20, "no kill fell into a call: seed {seed}, {longest} µs");
}
