//! Runs `bailiwick serve` with a front end that the test plays.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::process::Finished;
use crate::world::{KEY, World};

pub struct Served {
    pub process: Child,
    /// Standard input of the server. `None` after it was closed.
    pub input: Option<ChildStdin>,
    pub output: BufReader<ChildStdout>,
    last: u64,
}

impl Served {
    /// Starts a server, and sends nothing yet.
    pub fn start(world: &World) -> Self {
        let mut command = world.bailiwick(["serve"]);
        command.env("ANTHROPIC_API_KEY", KEY);
        Self::of(command)
    }

    pub fn of(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("it serves");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("it serves"));
        Self { process, input, output, last: 0 }
    }

    /// Starts a server, and sends the first request of the protocol.
    pub fn greeted(world: &World) -> Self {
        let mut served = Self::start(world);
        served.call("initialize", json!({}));
        served
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it serves");
        input.write_all(bytes).and_then(|()| input.flush()).expect("it serves");
    }

    pub fn line(&mut self, text: &str) {
        self.raw(text.as_bytes());
        self.raw(b"\n");
    }

    /// Returns the next message of the server. `None` at the end of the output.
    pub fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it serves");
        line.ends_with('\n').then(|| serde_json::from_str(&line).expect("it serves"))
    }

    /// Waits for the next response, and returns it.
    pub fn response(&mut self) -> Value {
        loop {
            let line = self.read().expect("it is not over");
            if line.get("method").is_none() {
                return line;
            }
        }
    }

    /// Waits for the next notification with this method, and returns its parameters.
    pub fn until(&mut self, method: &str) -> Value {
        loop {
            let line = self.read().unwrap_or_else(|| panic!("it ended before {method}"));
            if line["method"] == method {
                return line["params"].clone();
            }
            let notice = &line["params"]["data"]["code"];
            assert!(notice != "rewind_refused", "{line}");
        }
    }

    /// Waits for one notification with each of these methods, in any order, and returns their parameters.
    pub fn until_all<const N: usize>(&mut self, methods: [&str; N]) -> [Value; N] {
        let mut found = [const { None }; N];
        while let Some(first) = found.iter().position(Option::is_none) {
            let line = self.read().unwrap_or_else(|| panic!("it ended before {}", methods[first]));
            let is_new =
                |(method, slot): (&&str, &Option<Value>)| line["method"] == **method && slot.is_none();
            if let Some(at) = methods.iter().zip(&found).position(is_new) {
                found[at] = Some(line["params"].clone());
            }
        }
        found.map(Option::unwrap_or_default)
    }

    /// Waits for the next request of the server with this method, and returns it.
    pub fn asked(&mut self, method: &str) -> Value {
        loop {
            let line = self.read().unwrap_or_else(|| panic!("it ended before {method}"));
            if line["method"] == method {
                return line;
            }
        }
    }

    /// Sends a request, and returns the response.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        let response = self.response();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// Sends a request, and returns the result. Fails the test if the response is an error.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// Sends a request that must fail, and returns the error's numeric code and its code word.
    pub fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let error = self.ask(method, params)["error"].clone();
        (
            error["code"].as_i64().expect("it serves"),
            error["data"]["word"].as_str().expect("it serves").to_owned(),
        )
    }

    /// Opens a conversation, and returns its id.
    pub fn converse(&mut self, project: &Path, base_url: &str, mode: &str) -> String {
        let options = json!({"cwd": project, "base_url": base_url, "mode": mode});
        let opened = self.call("newConversation", options);
        opened["conversation_id"].as_str().expect("it serves").to_owned()
    }

    /// Closes the server's input. Returns the remaining messages and the exit code.
    pub fn end(mut self) -> (Vec<Value>, Finished) {
        self.input = None;
        let rest = std::iter::from_fn(|| self.read()).collect();
        (rest, self.process.wait_with_output().expect("it serves").into())
    }
}
