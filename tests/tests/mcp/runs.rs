//! Tests MCP servers in runs of a batch, and in a run with a relay.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};
use tests::programs::copy_program;
use tests::replies::{calls, done, model_of};
use tests::world::KEY;
use tests::{Finished, User, World, tier};

use crate::sessions::{add, echo, world};

fn notes() -> String {
    calls(&[("write_file", json!({"path": "answer", "content": "asked\n"}))])
}

fn batch(world: &World, base_url: &str, arguments: &[&str]) -> Finished {
    let task = json!({"id": "one", "prompt": "ask the documents", "directory": world.project()});
    let tasks = world.root().join("tasks.jsonl");
    fs::write(&tasks, task.to_string()).unwrap();
    let mut command = world.bailiwick(["batch"]);
    command.arg(tasks).args(["--output", "out", "--model", "claude-opus-5-5", "--base-url", base_url]);
    Finished::of(command.args(arguments).env("ANTHROPIC_API_KEY", KEY))
}

#[test]
fn each_run_of_a_batch_has_the_servers_that_its_flags_name() {
    let world = World::new(User::Myself);
    // The server is outside of the project, because each run of a batch works on a copy of the project elsewhere.
    let place = world.outside();
    copy_program(env!("CARGO_BIN_EXE_fake-mcp-server").as_ref(), &place.join("fake"));
    let mut command = world.bailiwick(["mcp", "add", "docs", "--yes", "--read", ".", "--read"]);
    command.arg(&place).arg("-C").arg(world.project()).arg("--").arg(place.join("fake")).arg("echo");
    Finished::of(&mut command).expect(0);
    let model = model_of([echo("hello"), notes(), done()]);
    batch(&world, &model.base_url(), &["--mcp", "docs"]).expect(0);
    let log = fs::read_to_string(world.root().join("out/instances/one/session.jsonl")).unwrap();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let finished: Vec<_> = events.iter().filter(|event| event["type"] == "tool_call_finished").collect();
    assert!(finished[0]["data"]["content"].as_str().unwrap().contains("hello"), "{finished:?}");
    let patch = fs::read_to_string(world.root().join("out/instances/one/patch.diff")).unwrap();
    assert!(patch.contains("+asked"), "{patch}");
    let other = batch(&world, &model.base_url(), &[]).expect(2);
    assert!(other.stderr.contains("that batch has a different list of MCP servers"), "{}", other.stderr);
    let unknown = batch(&world, &model.base_url(), &["--mcp", "evil"]).expect(2);
    assert!(unknown.stderr.contains("your settings have no such MCP server"), "{}", unknown.stderr);
    let allowed = batch(&world, &model.base_url(), &["--mcp", "docs", "--allow-tool", "docs/echo"]).expect(2);
    assert!(allowed.stderr.contains("that batch has a different list of MCP servers"), "{}", allowed.stderr);
    let contained = batch(&world, &model.base_url(), &["--mcp", "docs", "--engine", "docker"]).expect(2);
    assert!(contained.stderr.contains("your MCP servers do not run in containers"), "{}", contained.stderr);
}

#[test]
fn a_run_behind_a_relay_has_its_own_servers_and_they_do_not_reach_the_relay() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    let model = model_of([echo("hello"), done()]);
    let directory = world.home().join("run");
    let listen = format!("unix:{}", directory.display());
    let mut relay = world.bailiwick(["relay", "--listen", &listen, "--client", "one", "--base-url"]);
    relay.arg(model.base_url()).env("ANTHROPIC_API_KEY", KEY);
    let mut relay = relay.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(relay.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (_, base_url) = line.trim_end().split_once(' ').unwrap();
    let flags =
        ["--mcp", "docs", "--model", "claude-opus-5-5", "--output", "stream-json", "ask the documents"];
    let mut run = world.bailiwick(["exec", "--base-url", base_url, "-C"]);
    let ran = Finished::of(run.arg(world.project()).args(world.tier_flags()).args(flags)).expect(0);
    let finished = ran.events().into_iter().find(|event| event["type"] == "tool_call_finished").unwrap();
    assert!(finished["data"]["content"].as_str().unwrap().contains("hello"), "{finished}");
    // Even a server with access to the socket's directory cannot connect to the socket.
    let given = directory.display().to_string();
    let script = "#!/bin/sh\npython3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' \
        \"$(ls -d RUN/*)\" 2> \"$HOME/tried\"\nexec ./fake echo\n";
    tests::programs::write_script(&world.project().join("server.sh"), &script.replace("RUN", &given));
    add(&world, &["--read", &given]).expect(0);
    let tried = fs::read_to_string(world.own().join("state/guests/docs/home/tried")).unwrap();
    assert!(tried.contains("PermissionError") || tried.contains("FileNotFoundError"), "{tried}");
    relay.kill().unwrap();
    relay.wait().unwrap();
    let mut said = String::new();
    relay.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!said.contains("panicked"), "{said}");
}
