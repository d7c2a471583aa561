//! Runs `bailiwick acp` with an editor that the test plays.

use std::process::Command;

use serde_json::{Value, json};

use crate::process::Finished;
use crate::served::Served;
use crate::world::{KEY, World};

/// Editor, with the server process that it has started. The ids of the editor's requests count from 1.
pub struct Editor {
    pub served: Served,
    last: u64,
    /// Updates that the server has sent so far, of all sessions.
    pub updates: Vec<Value>,
}

impl Editor {
    /// Starts a server with these flags, and sends nothing yet.
    pub fn start(world: &World, flags: &[&str]) -> Self {
        let mut command = world.bailiwick(["acp"]);
        command.args(flags).env("ANTHROPIC_API_KEY", KEY);
        Self::of(command)
    }

    pub fn of(command: Command) -> Self {
        Self { served: Served::of(command), last: 0, updates: Vec::new() }
    }

    /// Starts a server that uses this model, and initialises the connection.
    pub fn greeted(world: &World, base_url: &str, flags: &[&str]) -> Self {
        let mut editor = Self::start(world, &[&["--base-url", base_url], flags].concat());
        editor.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
        editor
    }

    /// Sends a request, and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.served.line(&line.to_string());
        self.last
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.served.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Returns the next message that is no update.
    pub fn line(&mut self) -> Value {
        loop {
            let line = self.served.read().expect("it is not over");
            if line["method"] != "session/update" {
                return line;
            }
            self.updates.push(line["params"].clone());
        }
    }

    /// Waits for the next update of this kind, and returns it.
    pub fn update(&mut self, kind: &str) -> Value {
        loop {
            let line = self.served.read().expect("it is not over");
            assert_eq!(line["method"], "session/update", "{line}");
            self.updates.push(line["params"].clone());
            if line["params"]["update"]["sessionUpdate"] == kind {
                return line["params"]["update"].clone();
            }
        }
    }

    /// Waits for the response to a request. Fails the test if a permission request comes first.
    pub fn response(&mut self, id: u64) -> Value {
        let line = self.line();
        assert_eq!(line["id"], id, "{line}");
        line
    }

    /// Sends a request, and returns the result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// Sends a request that must fail, and returns the error's numeric code and its code word.
    pub fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.send(method, params);
        let error = self.response(id)["error"].clone();
        let word = error["data"]["word"].as_str().unwrap_or_else(|| panic!("{error}"));
        (error["code"].as_i64().expect("a code"), word.to_owned())
    }

    /// Opens a session in the world's project, and returns the session's id.
    pub fn open(&mut self, world: &World) -> String {
        let opened = self.call("session/new", json!({"cwd": world.project(), "mcpServers": []}));
        opened["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Sends a message, and returns the request's id.
    pub fn say(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for the next permission request.
    pub fn asked(&mut self) -> Value {
        let line = self.line();
        assert_eq!(line["method"], "session/request_permission", "{line}");
        line
    }

    /// Answers the permission request `asked` with this result.
    pub fn answer(&mut self, asked: &Value, result: Value) {
        self.served.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string());
    }

    /// Answers the permission request `asked` with the first option of this kind.
    pub fn choose(&mut self, asked: &Value, kind: &str) {
        let option = option(asked, kind);
        self.answer(asked, json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    /// Sends a message, and answers each permission request with the option of this kind. Returns the stop reason.
    pub fn turn(&mut self, session: &str, text: &str, kind: &str) -> String {
        let id = self.say(session, text);
        loop {
            let line = self.line();
            if line["method"] == "session/request_permission" {
                self.choose(&line, kind);
            } else if line["id"] == id {
                return line["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
            }
        }
    }

    /// Returns the updates of this kind that have arrived.
    pub fn seen(&self, kind: &str) -> Vec<&Value> {
        let updates = self.updates.iter().map(|params| &params["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Returns the text of the message chunks of this kind that have arrived.
    pub fn text(&self, kind: &str) -> String {
        self.seen(kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// Closes the server's input. Returns the remaining messages and the exit code.
    pub fn end(self) -> (Vec<Value>, Finished) {
        self.served.end()
    }
}

/// Returns the id of the first option of this kind in a permission request.
pub fn option(asked: &Value, kind: &str) -> String {
    let options = asked["params"]["options"].as_array().expect("options");
    let option = options.iter().find(|option| option["kind"] == kind);
    let option = option.unwrap_or_else(|| panic!("no {kind}: {asked}"));
    option["optionId"].as_str().expect("an id").to_owned()
}
