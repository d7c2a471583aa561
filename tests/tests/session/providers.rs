//! Tests chat completions and the Responses API: a usual run with each, and the choice of key and address.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use model::replay::{Block, ReplayServer, Usage, chat, responses};
use serde_json::{Value, json};
use tests::replies::{done, model_of};
use tests::{Finished, User, World};

/// Starts a chat completions server that makes these calls, one in each reply, and then ends the turn.
fn model(calls: &[(&str, Value)]) -> ReplayServer {
    let reply = |(index, (name, input)): (usize, &(&str, Value))| {
        let call = Block::tool_use(format!("call_{index}"), *name, input.to_string());
        chat::message(&[Block::thinking("Hm.", ""), call], "tool_calls", Usage::default())
    };
    let done = chat::message(&[Block::text("Done.")], "stop", Usage::default());
    model_of(calls.iter().enumerate().map(reply).chain([done]))
}

fn exec(world: &World, flags: &[&str]) -> Command {
    let mut command = world.bailiwick(["exec", "--output", "stream-json", "-C"]);
    command.arg(world.project()).args(flags).arg("do it");
    command
}

fn body(server: &ReplayServer, request: usize) -> Value {
    serde_json::from_slice(&server.requests()[request].body).unwrap()
}

#[test]
fn a_bug_is_fixed_through_chat_completions_without_a_key() {
    let world = World::new(User::Myself);
    world.file("add.sh", "echo $(($1 - $2))\n");
    world.file("test.sh", "[ \"$(bash add.sh 2 3)\" = 5 ]\n");
    world.commit();
    let server = model(&[
        ("shell_exec", json!({"command": "bash test.sh"})),
        ("edit_file", json!({"path": "add.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"})),
        ("shell_exec", json!({"command": "touch ../outside || bash test.sh && echo passed"})),
    ]);
    let patch = world.own().join("out.diff");
    let (address, file) = (server.base_url(), patch.display().to_string());
    let flags =
        ["--provider", "openai", "--base-url", &address, "--model", "m", "--mode", "auto", "--patch", &file];
    let run = Finished::of(&mut exec(&world, &flags)).expect(0);
    let text = fs::read_to_string(&patch).unwrap();
    assert!(text.contains("+echo $(($1 + $2))"), "{text}");
    assert_eq!(run.events_of("session_started")[0]["provider"], "openai");
    assert_eq!(
        run.result()["usage"],
        json!({"input": 400, "cache_creation": 0, "cache_creation_1h": 0, "cache_read": 0, "output": 80})
    );
    assert!(!world.root().join("outside").exists(), "it was confined");
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.path == "/v1/chat/completions"));
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
    // The reply and the results of its calls are sent again together.
    let last = body(&server, 3);
    let messages = last["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "tool", "assistant", "tool"],
        "{last}"
    );
    assert_eq!(messages[2]["reasoning_content"], "Hm.");
    assert_eq!(messages[7]["tool_call_id"], "call_2");
    assert!(messages[7]["content"].as_str().unwrap().contains("passed"), "{last}");
}

#[test]
fn a_bug_is_fixed_through_the_responses_api() {
    let world = World::new(User::Myself);
    world.file("add.sh", "echo $(($1 - $2))\n");
    let reply = |blocks: &[Block], stop| responses::message(blocks, stop, Usage::default());
    let call = |id: &str, tool: &str, input: Value| Block::tool_use(id, tool, input.to_string());
    let edit = json!({"path": "add.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"});
    let command = json!({"command": "touch ../outside || bash add.sh 2 3"});
    let server = model_of([
        reply(&[Block::thinking("It subtracts.", "gAA="), call("call_0", "edit_file", edit)], "tool_use"),
        reply(&[call("call_1", "shell_exec", command)], "tool_use"),
        reply(&[Block::text("Done.")], "end_turn"),
    ]);
    let address = server.base_url();
    let mut run =
        exec(&world, &["--provider", "responses", "--base-url", &address, "--model", "m", "--mode", "auto"]);
    let run = Finished::of(run.env("OPENAI_API_KEY", "sk-0123")).expect(0);
    assert_eq!(world.read("add.sh"), "echo $(($1 + $2))\n");
    assert_eq!(run.events_of("session_started")[0]["provider"], "responses");
    assert!(!world.root().join("outside").exists(), "it was confined");
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.path == "/v1/responses"));
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer [7 bytes]")));
    let last = body(&server, 2);
    let input = last["input"].as_array().unwrap();
    let kinds: Vec<_> = input.iter().map(|item| item["type"].as_str().unwrap()).collect();
    let turn = ["function_call", "function_call_output"];
    assert_eq!(kinds, [&["message", "reasoning"][..], &turn, &turn].concat(), "{last}");
    // The model's reasoning is sent back as it came, encrypted.
    assert_eq!(input[1]["encrypted_content"], "gAA=");
    let told = input[5]["output"].as_str().unwrap();
    assert!(told.contains("\n5"), "{told}");
}

#[test]
fn without_a_key_the_vendor_is_not_asked_and_the_remedy_is_named() {
    let world = World::new(User::Myself);
    let mut run = exec(&world, &["--provider", "openai"]);
    // The key of another provider is not used.
    let run = Finished::of(run.env("ANTHROPIC_API_KEY", "sk-ant-other")).expect(2);
    let file = world.own().join("config/openai.key");
    let remedy = format!("set OPENAI_API_KEY, or put the key into {} (mode 0600)", file.display());
    assert!(run.stderr.contains(&remedy), "{}", run.stderr);
}

#[test]
fn each_provider_has_an_address_and_a_key_of_its_own() {
    let world = World::new(User::Myself);
    let place = world.own().join("config");
    fs::create_dir_all(&place).unwrap();
    let configure = |text: String| {
        let file = place.join("config.toml");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    let (ours, theirs) = (model(&[]), model_of([done()]));
    // The settings file has an address of Anthropic's API, and so has one of the variables.
    configure(format!("base_url = \"{}\"\n", theirs.base_url()));
    let mut run = exec(&world, &["--provider", "openai"]);
    run.env("ANTHROPIC_BASE_URL", theirs.base_url())
        .env("OPENAI_BASE_URL", format!("{}/v1", ours.base_url()));
    run.env("ANTHROPIC_API_KEY", "sk-ant-0123456789").env("OPENAI_API_KEY", "sk-0123");
    Finished::of(&mut run).expect(0);
    assert_eq!((ours.requests().len(), theirs.requests().len()), (1, 0));
    assert_eq!(ours.requests()[0].path, "/v1/chat/completions");
    // `Bearer sk-0123`, whose value the server does not keep.
    assert_eq!(ours.requests()[0].header("authorization"), Some("Bearer [7 bytes]"));
    // A provider that is set needs no flag, and its address is the file's.
    let ours = model(&[]);
    configure(format!("provider = \"openai\"\nbase_url = \"{}\"\n", ours.base_url()));
    Finished::of(&mut exec(&world, &[])).expect(0);
    assert_eq!(ours.requests().len(), 1);
    // The other API of the same vendor is asked at the same address.
    Finished::of(&mut exec(&world, &["--provider", "responses"])).expect(6);
    assert_eq!(ours.requests()[1].path, "/v1/responses");
    let doctor = Finished::of(world.bailiwick(["doctor"]).current_dir(world.project()));
    let key = doctor.stdout.lines().find(|line| line.contains(" key ")).unwrap();
    assert!(key.starts_with("ok") && key.contains(&ours.base_url()), "{key}");
    // The flag wins over the variable, and the variable over the file.
    let flagged = model(&[]);
    let mut run = exec(&world, &["--base-url", &flagged.base_url()]);
    Finished::of(run.env("OPENAI_BASE_URL", theirs.base_url())).expect(0);
    assert_eq!((flagged.requests().len(), ours.requests().len(), theirs.requests().len()), (1, 2, 0));
}
