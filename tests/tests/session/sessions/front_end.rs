//! Plays scripts by the two front ends that need no terminal, each as a program.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};
use tests::programs::taken_over;
use tests::world::KEY;
use tests::{Finished, World, alive, marked, wait_until};

use crate::sessions::script::{Script, Step};

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

/// Carries out the steps in a conversation of `bailiwick serve`, and ends the server.
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
        awaited: BTreeMap::new(),
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

struct Peer {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Notifications and requests of the server, in their order.
    read: Vec<Value>,
    /// Index in `read` of the first message for which no step has waited.
    next: usize,
    /// Number of notifications about an agent for which steps have waited, by agent and method.
    awaited: BTreeMap<(String, String), usize>,
    /// Id of the last request.
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
            Step::UntilOf { agent, method } => self.until_of(agent, method),
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
            Step::Make(name) => drop(world.file(name, "")),
            Step::KillWorker(agent) => {
                let pid = *self.workers(agent).last().unwrap();
                kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
            }
            Step::Gone { workers_of, command } => {
                for agent in workers_of {
                    let pid = self.workers(agent)[0];
                    assert!(!alive(pid), "worker {pid} of agent {agent} lives");
                }
                assert!(!is_executed(world, command), "{command} is still executed");
            }
        }
    }

    /// Returns the pids of an agent's workers, as far as the server has reported them.
    fn workers(&self, agent: &str) -> Vec<u32> {
        let started =
            |message: &&Value| message["method"] == "event/workerStarted" && is_about(message, agent);
        let pid =
            |message: &Value| u32::try_from(message["params"]["data"]["pid"].as_u64().unwrap()).unwrap();
        self.read.iter().filter(started).map(pid).collect()
    }

    fn until_of(&mut self, agent: &str, method: &str) {
        let place = (agent.to_owned(), method.to_owned());
        let awaited = self.awaited.entry(place).or_default();
        *awaited += 1;
        let awaited = *awaited;
        let is_it = |message: &&Value| message["method"] == method && is_about(message, agent);
        while self.read.iter().filter(is_it).count() < awaited {
            self.line();
        }
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Reads the next message. Keeps it in `read` unless it is a response.
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

    /// Returns the next message with this method for which no step has waited.
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

/// True if a notification is about this agent.
fn is_about(message: &Value, agent: &str) -> bool {
    let params = &message["params"];
    let logged = &params["logged"]["agent"];
    *(if logged.is_null() { &params["data"]["agent"] } else { logged }) == agent
}

/// True if a process of the world runs this command line.
fn is_executed(world: &World, command: &str) -> bool {
    let line = format!("{}\0", command.replace(' ', "\0"));
    let executes =
        |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|read| read == line.as_bytes());
    marked(world.mark().as_bytes()).into_iter().any(executes)
}
