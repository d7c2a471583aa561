//! The two front ends without a terminal, as programs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Map, Value, json};
use supervisor::replay::ReplayServer;
use tests::programs::taken_over;
use tests::world::KEY;
use tests::{Finished, World, wait_until};

use crate::script::{Script, Step};

/// Runs `bailiwick exec` to its end.
pub(crate) fn exec(world: &World, server: &ReplayServer, script: &Script, flags: &[String]) -> Finished {
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let usual = world.exec(server, &flags);
    let Some(fake) = &script.worker else { return run(usual) };
    let mut command = world.command(taken_over(world.root()));
    command.args(usual.get_args()).args(["--env", &format!("FAKE={fake}")]);
    command.env("ANTHROPIC_API_KEY", KEY);
    run(command)
}

fn run(mut command: Command) -> Finished {
    Finished::of(&mut command)
}

/// Drives a conversation of `bailiwick serve` through its steps, and ends the server.
pub(crate) fn serve(
    world: &World,
    server: &ReplayServer,
    options: &Map<String, Value>,
    steps: &[Step],
) -> Finished {
    let mut command = world.bailiwick(["serve"]);
    command.env("ANTHROPIC_API_KEY", KEY).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut peer = Peer {
        input: process.stdin.take().unwrap(),
        output: BufReader::new(process.stdout.take().unwrap()),
        read: Vec::new(),
        next: 0,
        last: 0,
    };
    peer.call("initialize", json!({}));
    let mut params = json!({"cwd": world.project(), "base_url": server.base_url(), "tier": "floor"});
    params.as_object_mut().unwrap().extend(options.clone());
    let opened = peer.call("newConversation", params);
    for step in steps {
        peer.step(world, &opened["conversation_id"], step);
    }
    peer.call("closeConversation", json!({"conversation_id": opened["conversation_id"]}));
    peer.until("event/conversationClosed");
    peer.call("shutdown", json!({}));
    drop(peer);
    process.wait_with_output().unwrap().into()
}

/// This side of the protocol.
struct Peer {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Notifications and requests of the server, in their order.
    read: Vec<Value>,
    /// The first of them that no step was about.
    next: usize,
    /// The number of the last request.
    last: u64,
}

impl Peer {
    fn step(&mut self, world: &World, conversation: &Value, step: &Step) {
        match step {
            Step::Call { method, params } => {
                let mut params = params.clone();
                params.insert("conversation_id".to_owned(), conversation.clone());
                self.call(method, params.into());
            }
            Step::Until(method) => drop(self.until(method)),
            Step::Answer { method, result } => {
                let id = self.until(method)["id"].clone();
                self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
            Step::File(name) => {
                let path = world.project().join(name);
                wait_until(&format!("{name} is there"), || {
                    fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'))
                });
            }
        }
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The next line; one that is no response is kept as well.
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        if message.get("method").is_some() {
            self.read.push(message.clone());
        }
        message
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.line();
            if message.get("method").is_none() && message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// The next message with this method that no step has waited for yet.
    fn until(&mut self, method: &str) -> Value {
        loop {
            while let Some(message) = self.read.get(self.next) {
                self.next += 1;
                if message["method"] == method {
                    return message.clone();
                }
            }
            self.line();
        }
    }
}
