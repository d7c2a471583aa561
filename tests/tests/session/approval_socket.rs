//! Tests `exec --mode ask --approval-socket`: only an authorised process answers the approvals of a headless run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::world::tool_results;
use tests::{Finished, User, World, tier, wait_until};

fn write_call(command: &str) -> String {
    calls(&[("shell_exec", json!({"command": command, "access": "write"}))])
}

/// Run that listens on an approval socket.
struct Run {
    world: World,
    model: ReplayServer,
    process: Child,
}

impl Run {
    fn start(world: World, replies: impl IntoIterator<Item = String>) -> Self {
        let model = model_of(replies);
        let socket = socket(&world);
        let mut exec = world.exec(&model, &["--mode", "ask", "--approval-socket", socket.to_str().unwrap()]);
        let process =
            exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("it listens", || socket.exists());
        Self { world, model, process }
    }

    fn connect(&self) -> FrontEnd {
        FrontEnd::connect(&socket(&self.world))
    }

    fn end(self) -> (World, ReplayServer, Finished) {
        let finished = self.process.wait_with_output().unwrap().into();
        assert!(!socket(&self.world).exists(), "its name goes with it");
        (self.world, self.model, finished)
    }
}

/// Returns a path outside of the project, in a directory of the user's.
fn socket(world: &World) -> PathBuf {
    world.own().join("approve.sock")
}

struct FrontEnd(BufReader<UnixStream>);

impl FrontEnd {
    /// Connects to the socket, after waiting until the run listens on it.
    fn connect(socket: &Path) -> Self {
        let mut connected = None;
        wait_until("it listens", || {
            connected = UnixStream::connect(socket).ok();
            connected.is_some()
        });
        Self(BufReader::new(connected.unwrap()))
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn send(&mut self, message: &Value) {
        let stream = self.0.get_mut();
        stream.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn respond(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// True if the other side has closed the connection.
    fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_ok() && rest.is_empty()
    }
}

#[test]
fn whoever_connects_answers_and_only_one_does() {
    let run =
        Run::start(World::new(User::Myself), [write_call("touch made"), write_call("touch more"), done()]);
    assert_eq!(fs::metadata(socket(&run.world)).unwrap().permissions().mode() & 0o777, 0o600);
    let mut front_end = run.connect();
    let request = front_end.read();
    assert_eq!(request["method"], "execCommandApproval");
    // Connections are taken in order: the second is turned away, and the first is not disturbed.
    let mut second = run.connect();
    assert_eq!(second.read()["error"]["data"]["word"], "occupied");
    assert!(second.is_closed());
    front_end.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "shutdown"}));
    assert_eq!(front_end.read()["error"]["code"], -32601);
    front_end.send(&json!([]));
    assert_eq!(front_end.read()["error"]["code"], -32600);
    front_end.respond(&request, json!({"decision": "approved"}));
    let closed = front_end.read();
    assert_eq!(
        (&closed["method"], &closed["params"]["data"]["request_id"]),
        (&json!("event/approvalClosed"), &request["id"])
    );
    let request = front_end.read();
    front_end.respond(&request, json!({"decision": "denied"}));
    let (world, _, finished) = run.end();
    assert_eq!(finished.code, 4, "the last call was denied: {}", finished.stderr);
    assert!(world.project().join("made").exists() && !world.project().join("more").exists());
}

#[test]
fn a_request_waits_for_somebody_and_who_leaves_has_denied() {
    let run =
        Run::start(World::new(User::Myself), [write_call("touch made"), write_call("touch more"), done()]);
    wait_until("it is asked", || run.world.log().iter().any(|event| event["type"] == "approval_requested"));
    let mut front_end = run.connect();
    let request = front_end.read();
    front_end.respond(&request, json!({"decision": "approved"}));
    front_end.read();
    front_end.read();
    drop(front_end);
    let (world, model, finished) = run.end();
    assert_eq!(finished.code, 4, "{}", finished.stderr);
    assert!(world.project().join("made").exists() && !world.project().join("more").exists());
    assert!(finished.stderr.contains("the front end disconnected"), "{}", finished.stderr);
    let told = tool_results(&model, 2)[0]["content"].to_string();
    assert!(told.contains("not approved") && told.contains("the front end disconnected"), "{told}");
}

/// The agent runs as the same user; only the sandbox keeps it from the socket. As a control, the test itself connects.
#[test]
fn the_agent_cannot_answer_for_itself() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let place = world.root().join("mine");
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
        let socket = place.join("s");
        let connect = format!(
            "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect({:?}); print(\"connected\")'",
            socket.display().to_string()
        );
        let call = |access: &str| calls(&[("shell_exec", json!({"command": connect, "access": access}))]);
        let model = model_of([call("read"), call("write"), done()]);
        let mut exec = world.exec(&model, &["--mode", "ask", "--approval-socket", socket.to_str().unwrap()]);
        let process =
            exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("it listens", || socket.exists());
        let mut front_end = FrontEnd::connect(&socket);
        let request = front_end.read();
        front_end.respond(&request, json!({"decision": "approved"}));
        let finished = Finished::from(process.wait_with_output().unwrap());
        let said: Vec<_> = finished
            .events_of("tool_call_finished")
            .into_iter()
            .map(|call| call["content"].to_string())
            .collect();
        assert_eq!(said.len(), 2, "{said:?}");
        for text in said {
            assert!(!text.contains("connected\\n") && text.contains("PermissionError"), "{tier}: {text}");
        }
    }
}

#[test]
fn a_place_that_an_agent_or_others_can_change_is_refused() {
    let world = World::new(User::Myself);
    let open = world.root().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let there = world.own().join("there");
    fs::write(&there, "mine").unwrap();
    for (path, mode, why) in [
        (world.project().join("s"), "ask", "an agent can write in"),
        (open.join("s"), "ask", "other users can change"),
        (there.clone(), "ask", "the path exists already"),
        (world.own().join("s"), "auto", "works only with --mode ask"),
    ] {
        let path = path.to_str().unwrap();
        let run = Finished::of(
            &mut world.task("http://127.0.0.1:9", ["--mode", mode, "--approval-socket", path, "x"]),
        );
        assert!(run.code == 2 && run.stderr.contains(why), "{path}: {}", run.stderr);
    }
    assert_eq!(fs::read(there).unwrap(), b"mine");
}
