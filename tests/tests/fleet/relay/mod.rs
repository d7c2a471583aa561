//! Tests `bailiwick relay`: the answers to clients, the isolation of clients, and processes that cannot be clients.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounded;
mod inside;
mod placed;
mod served;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::World;
use tests::world::KEY;

/// Relay in a world. Dropping it ends the relay.
struct Relay {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Relay {
    fn start(world: &World, flags: &[&str]) -> Self {
        let mut command = world.bailiwick(["relay"]);
        command.args(flags).env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", KEY);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn of_one(world: &World, server: &ReplayServer, flags: &[&str]) -> (Self, PathBuf) {
        let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
        let all = [&["--listen", &listen, "--client", "one", "--base-url", &address], flags].concat();
        let mut relay = Self::start(world, &all);
        let (name, base_url) = relay.client();
        assert_eq!(name, "one");
        (relay, PathBuf::from(base_url.strip_prefix("unix:").unwrap()))
    }

    /// Waits for the relay's message about the next client.
    fn client(&mut self) -> (String, String) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (name, base_url) =
            line.trim_end().split_once(' ').unwrap_or_else(|| panic!("{:?}", self.words()));
        (name.to_owned(), base_url.to_owned())
    }

    /// Ends the relay by a signal, and returns its output.
    fn end(mut self) -> String {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        let words = self.words();
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
        words
    }

    fn words(&mut self) -> String {
        let mut words = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut words).unwrap();
        words
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the complete lines of the relay's log.
fn log(world: &World) -> Vec<Value> {
    let place = world.own().join("state/relay");
    let files = fs::read_dir(place).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    files
        .flat_map(|text| {
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            whole.map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()
        })
        .collect()
}

fn usual() -> Value {
    json!({"model": "claude-opus-5-5", "max_tokens": 100, "stream": true,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]})
}

fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nanthropic-version: 2026-10-21\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n"
    )
}

/// Sends a request. Returns the status, and the whole response.
fn post(mut stream: impl Read + Write, path: &str, body: &str) -> (u16, String) {
    stream.write_all(head(path, body.len()).as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    reply(stream)
}

fn reply(mut stream: impl Read) -> (u16, String) {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text)
}

fn ask(socket: &Path, body: &Value) -> (u16, String) {
    post(UnixStream::connect(socket).unwrap(), "/v1/messages", &body.to_string())
}

fn exec(world: &World, base_url: &str, flags: &[&str]) -> Command {
    let mut command =
        world.bailiwick(["exec", "--output", "stream-json", "--mode", "auto", "--base-url", base_url, "-C"]);
    command.arg(world.project()).args(world.tier_flags()).args(flags).arg("do it");
    command
}

fn unix(socket: &Path) -> String {
    format!("unix:{}", socket.display())
}
