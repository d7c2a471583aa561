//! Tests `bailiwick serve` as a program, line by line: errors with their codes, output, and the end of the process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use model::replay::Reply;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::approval::SERVER_METHODS;
use protocol::rpc::{CLIENT_METHODS, NOTIFICATION_METHODS, SESSION_EVENT_METHOD};
use serde_json::{Value, json};
use tests::replies::{done, model_of, serve, shell};
use tests::served::Served;
use tests::world::KEY;
use tests::{Finished, User, World, alive, marked, wait_until};

#[test]
fn the_schema_is_that_of_the_types() {
    let world = World::new(User::Myself);
    let printed = Finished::of(&mut world.bailiwick(["serve", "--print-schema"])).expect(0).stdout;
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.schema.json");
    let written = fs::read_to_string(place).unwrap();
    assert!(printed == written, "bailiwick serve --print-schema > docs/protocol.schema.json");
}

/// Tests that `docs/protocol.md` is complete: authors of front ends rely on it.
#[test]
fn the_page_of_the_protocol_names_every_method_and_every_member_of_an_event() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = fs::read_to_string(docs.join("protocol.md")).unwrap();
    let row = |method: &str| page.lines().find(|line| line.starts_with(&format!("| `{method}` |")));
    for method in [CLIENT_METHODS, SERVER_METHODS].concat() {
        assert!(row(method).is_some(), "{method} has no row in docs/protocol.md");
    }
    assert!(page.contains(&format!("`{SESSION_EVENT_METHOD}`")));
    let schema: Value =
        serde_json::from_slice(&fs::read(docs.join("protocol.schema.json")).unwrap()).unwrap();
    for method in NOTIFICATION_METHODS {
        let row = row(method).unwrap_or_else(|| panic!("{method} has no row in docs/protocol.md"));
        let params = &schema["methods"]["notifications"][method]["params"];
        for (member, is_required) in members(&schema, &params["properties"]["data"]) {
            let written = format!("`{member}{}`", if is_required { "" } else { "?" });
            assert!(row.contains(&written), "{written} is missing: {row}");
        }
    }
}

/// Returns the members of an object in the schema, each with true if it is required.
fn members(schema: &Value, object: &Value) -> Vec<(String, bool)> {
    if let Some(reference) = object["$ref"].as_str() {
        return members(schema, schema.pointer(reference.strip_prefix('#').unwrap()).unwrap());
    }
    let required = object["required"].as_array().cloned().unwrap_or_default();
    let own = object["properties"].as_object().into_iter().flatten();
    let mut all: Vec<_> = own.map(|(name, _)| (name.clone(), required.contains(&json!(name)))).collect();
    for part in object["allOf"].as_array().into_iter().flatten() {
        all.extend(members(schema, part));
    }
    all
}

#[test]
fn each_bad_line_has_its_number_and_the_connection_goes_on() {
    let world = World::new(User::Myself);
    let mut served = Served::greeted(&world);
    for (line, code, word) in [
        (&b"{"[..], -32700, "parse_error"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, "parse_error"),
        (b"[]", -32600, "invalid_request"),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\"}]", -32600, "invalid_request"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"shutdown\"}", -32600, "invalid_request"),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"shutdown\"}", -32600, "invalid_request"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nothing\"}", -32601, "method_not_found"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"interrupt\"}", -32602, "invalid_params"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\",\"params\":[]}", -32602, "invalid_params"),
    ] {
        served.raw(line);
        served.raw(b"\n");
        let error = served.response()["error"].clone();
        assert_eq!((&error["code"], &error["data"]["word"]), (&json!(code), &json!(word)), "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    served.raw(&vec![b'x'; 17 << 20]);
    served.raw(b"\n");
    assert_eq!(served.response()["error"]["code"], -32600);
    served.raw(b"\n  \r\n{\"jsonrpc\":\"2.0\",\"id\":\"still here\",\"method\":\"interrupt\",\"params\":{\"conversation_id\":\"c\"}}\r\n");
    let last = served.response();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!("still here"), &json!(-32002)));
    served.raw(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"shutdown\"}");
    let (rest, ended) = served.end();
    assert_eq!((rest.len(), ended.code), (1, 0), "{rest:?} {}", ended.stderr);
    assert_eq!(rest[0]["error"]["message"], "the input ended in the middle of a line");
}

#[test]
fn each_refusal_has_its_word() {
    let world = World::new(User::Myself);
    let mut served = Served::start(&world);
    let project = world.project();
    assert_eq!(
        served.refused("newConversation", json!({"cwd": project})),
        (-32000, "not_initialised".into())
    );
    let hello = served.call("initialize", json!({"client": {"name": "t"}}));
    assert_eq!((&hello["protocol"], &hello["capabilities"]["notifications"]), (&json!(2), &json!("typed")));
    assert_eq!(served.refused("initialize", json!({})), (-32001, "already_initialised".into()));
    for (options, refusal) in [
        (json!({"cwd": "/"}), (-32003, "project_refused")),
        (json!({"cwd": world.root().join("missing")}), (-32003, "project_refused")),
        (json!({"cwd": "project"}), (-32004, "option_refused")),
        (json!({"cwd": project, "write": ["/"]}), (-32004, "option_refused")),
        (json!({"cwd": project, "env": ["A=b"]}), (-32004, "option_refused")),
        (json!({"cwd": project, "provider": "openal"}), (-32004, "option_refused")),
        (json!({"cwd": project, "provider": "openai"}), (-32006, "no_key")),
        (json!({"cwd": project, "base_url": "ftp://x"}), (-32007, "provider_refused")),
        (json!({"cwd": project, "api_key": "x"}), (-32602, "invalid_params")),
    ] {
        let refused = served.refused("newConversation", options.clone());
        assert_eq!((refused.0, refused.1.as_str()), refusal, "{options}");
    }
    assert_eq!(served.end().1.code, 0);
    let mut served = Served::of(world.bailiwick(["serve"]));
    served.call("initialize", json!({}));
    assert_eq!(served.refused("newConversation", json!({"cwd": project})), (-32006, "no_key".into()));
}

#[test]
fn conversations_keep_apart_and_each_message_says_whose_it_is() {
    let world = World::new(User::Myself);
    let other = world.root().join("other");
    fs::create_dir(&other).unwrap();
    let models = [("one", world.project()), ("two", other)]
        .map(|(name, project)| (model_of([shell(&format!("echo {name} > {name}.txt")), done()]), project));
    let mut served = Served::greeted(&world);
    let ids: Vec<_> =
        models.iter().map(|(model, project)| served.converse(project, &model.base_url(), "auto")).collect();
    for id in &ids {
        served.call("sendUserMessage", json!({"conversation_id": id, "text": "write"}));
    }
    let mut finished = Vec::new();
    while finished.len() < 2 {
        finished.push(served.until("event/turnFinished")["conversation_id"].as_str().unwrap().to_owned());
    }
    for ((_, project), name) in models.iter().zip(["one.txt", "two.txt"]) {
        let made: Vec<_> = fs::read_dir(project).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(made, [name]);
    }
    served.call("closeConversation", json!({"conversation_id": ids[0]}));
    let result = served.until("event/result");
    assert_eq!((&result["conversation_id"], &result["data"]["reason"]), (&json!(ids[0]), &json!("closed")));
    assert_eq!(served.until("event/conversationClosed")["conversation_id"], ids[0].as_str());
    let prompt = json!({"conversation_id": ids[0], "text": "more"});
    assert_eq!(served.refused("sendUserMessage", prompt), (-32002, "no_such_conversation".into()));
    // The other conversation continues.
    served.call("interrupt", json!({"conversation_id": ids[1]}));
    served.line(r#"{"jsonrpc":"2.0","id":"bye","method":"shutdown"}"#);
    let (rest, ended) = served.end();
    assert_eq!(
        (rest.last().unwrap(), ended.code),
        (&json!({"jsonrpc": "2.0", "id": "bye", "result": {}}), 0)
    );
    assert!(!ended.stderr.contains(KEY));
}

#[test]
fn an_ignored_line_of_a_projects_file_is_a_notice() {
    let world = World::new(User::Myself);
    fs::write(world.project().join(".bailiwick.toml"), "rights.net = \"on\"\n").unwrap();
    let model = model_of([]);
    let mut served = Served::greeted(&world);
    served.converse(&world.project(), &model.base_url(), "ask");
    let notice = served.until("event/notice")["data"].clone();
    let message = ".bailiwick.toml:1: ignored: a project cannot turn the network on (use --net on)";
    assert_eq!(notice, json!({"code": "settings", "message": message}));
    assert!(!served.end().1.stderr.contains("ignored"), "it is told once");
}

#[test]
fn a_reply_without_a_byte_is_tried_again() {
    let world = World::new(User::Myself);
    let model = serve([Reply::sse("").header("content-length", "0"), Reply::sse(done())]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "auto");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "go"}));
    assert_eq!(served.until("event/modelFailed")["data"]["message"], "the reply ended before it began");
    assert_eq!(served.until("event/turnFinished")["data"]["reason"], "done");
    assert_eq!(served.end().1.code, 0);
}

#[test]
fn the_generic_form_has_one_method() {
    let world = World::new(User::Myself);
    let model = model_of([done()]);
    let mut served = Served::start(&world);
    served.call("initialize", json!({"notifications": "generic"}));
    let id = served.converse(&world.project(), &model.base_url(), "deny");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "hi"}));
    loop {
        let told = served.read().unwrap();
        assert_eq!(
            (&told["method"], &told["params"]["conversation_id"]),
            (&json!("sessionEvent"), &json!(id))
        );
        if told["params"]["type"] == "turn_finished" {
            break;
        }
    }
    assert_eq!(served.end().1.code, 0);
}

#[test]
fn another_model_answers_the_next_message_in_a_new_context() {
    let world = World::new(User::Myself);
    let model = model_of([shell("true"), done(), done()]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "auto");
    let turn = |served: &mut Served, text: &str| {
        served.call("sendUserMessage", json!({"conversation_id": id, "text": text}));
        served.until("event/turnFinished");
    };
    turn(&mut served, "go");
    for refused in ["gpt-5", "claude-haiku-4-5", " "] {
        let params = json!({"conversation_id": id, "model": refused});
        assert_eq!(served.refused("setModel", params), (-32004, "option_refused".into()), "{refused}");
    }
    served.line(
        &json!({"jsonrpc": "2.0", "id": 9, "method": "setModel",
        "params": {"conversation_id": id, "model": "claude-haiku-5-5"}})
        .to_string(),
    );
    let changed = served.until("event/modelChanged")["data"].clone();
    assert_eq!((&changed["to"], &changed["new_context"]), (&json!("claude-haiku-5-5"), &json!(true)));
    assert_eq!(served.until("event/notice")["data"]["code"], "model_changed");
    turn(&mut served, "and?");
    let requests = model.requests();
    let body = |index: usize| serde_json::from_slice::<Value>(&requests[index].body).unwrap();
    let (before, after) = (body(1), body(2));
    assert_eq!((&after["model"], &after["system"]), (&json!("claude-haiku-5-5"), &before["system"]));
    assert_eq!(after["messages"].as_array().unwrap().len(), 5, "the conversation goes along: {after}");
    assert_eq!(served.end().1.code, 0);
}

#[test]
fn a_right_is_granted_and_the_history_tells_of_it() {
    let world = World::new(User::Myself);
    let beside = world.root().join("beside");
    fs::create_dir(&beside).unwrap();
    let model = model_of([shell(&format!("echo x > {}/a", beside.display())), done()]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "auto");
    let grant = |right: Value| {
        json!({"jsonrpc": "2.0", "id": "g", "method": "grant",
        "params": {"conversation_id": id, "right": right}})
        .to_string()
    };
    served.line(&grant(json!({"write": "/"})));
    assert_eq!(served.until("event/notice")["data"]["code"], "rights_refused");
    served.line(&grant(json!({"write": beside})));
    served.until("event/rightsChanged");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "go"}));
    served.until("event/turnFinished");
    assert!(beside.join("a").exists());
    let withdrawn = json!({"jsonrpc": "2.0", "id": "w", "method": "withdraw",
        "params": {"conversation_id": id, "right": {"write": beside}}});
    served.line(&withdrawn.to_string());
    let finished = served.until("event/rightsChanged")["logged"]["id"].clone();
    let (mut told, mut after) = (Vec::new(), json!(0));
    while after != Value::Null {
        let page = served.call("history", json!({"conversation_id": id, "after": after, "limit": 3}));
        told.extend(page["events"].as_array().unwrap().clone());
        after = page["next"].clone();
    }
    let log = world.log();
    assert_eq!((told.len(), &told.last().unwrap()["logged"]["id"]), (log.len(), &finished));
    for (told, logged) in told.iter().zip(&log) {
        let both =
            [(&told["type"], &logged["type"]), (&told["data"], &logged["data"]), (&told["v"], &logged["v"])];
        assert!(both.iter().all(|(told, logged)| told == logged), "{told} {logged}");
        assert_eq!(told["conversation_id"], logged["session"]);
    }
    assert_eq!(served.end().1.code, 0);
}

/// Ends a server in the middle of a command, and checks that no process is left.
fn ends(how: impl FnOnce(&mut Served), code: i32) {
    let world = World::new(User::Myself);
    let model = model_of([shell("echo $$ > pid; sleep 600")]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "auto");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "wait"}));
    let pid = world.pid_in("pid");
    how(&mut served);
    let (_, ended) = served.end();
    assert_eq!(ended.code, code, "{}", ended.stderr);
    wait_until("the command is gone", || !alive(pid));
    wait_until("nothing of this world is left", || marked(world.mark().as_bytes()).is_empty());
    let log = world.log();
    let result = log.last().unwrap();
    // At the end of its input, a server exits with 0, and the conversations' runs end as after SIGTERM.
    let logged = if code == 0 { 143 } else { code };
    assert_eq!((&result["type"], &result["data"]["exit_code"]), (&json!("result"), &json!(logged)));
}

#[test]
fn the_end_of_input_ends_everything() {
    ends(|served| served.input = None, 0);
}

#[test]
fn a_signal_ends_everything() {
    let signal = |served: &mut Served, signal| {
        kill(Pid::from_raw(served.process.id().cast_signed()), signal).unwrap();
        // A server that is told to end does not wait for the end of its input.
        while served.read().is_some() {}
    };
    ends(|served| signal(served, Signal::SIGTERM), 143);
    ends(|served| signal(served, Signal::SIGINT), 130);
    ends(|served| signal(served, Signal::SIGHUP), 129);
}

#[test]
fn an_output_that_is_gone_ends_everything() {
    let world = World::new(User::Myself);
    let model = model_of([shell("echo $$ > pid; while :; do echo x; sleep 0.01; done")]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "auto");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "wait"}));
    let pid = world.pid_in("pid");
    let Served { mut process, input, output, .. } = served;
    drop(output);
    assert_eq!(process.wait().unwrap().code(), Some(1));
    drop(input);
    wait_until("the command is gone", || !alive(pid));
}

/// Tests that each method's name appears once as a string, and that other code uses the constant. Commands of the
/// terminal UI have other names: it runs in-process.
#[test]
fn no_method_is_written_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for name in ["ipc", "ipc/protocol", "sandbox-exec", "supervisor", "worker"] {
        collect(&root.join(name).join("src"), &mut sources);
    }
    let methods = [CLIENT_METHODS, SERVER_METHODS, NOTIFICATION_METHODS, &[SESSION_EVENT_METHOD]].concat();
    for method in methods {
        let literal = format!("{method:?}");
        // A single word has other meanings elsewhere: `history` is a builtin of the shell.
        let is_a_word = method.bytes().all(|byte| byte.is_ascii_lowercase());
        let speaks = |path: &Path| {
            ["/ipc/protocol/src/", "/src/front/serve/"]
                .iter()
                .any(|room| path.to_string_lossy().contains(room))
        };
        let counts = |path: &Path| !is_a_word || speaks(path);
        let places: Vec<_> =
            sources.iter().filter(|(path, text)| counts(path) && text.contains(&literal)).collect();
        let count: usize = places.iter().map(|(_, text)| text.matches(&literal).count()).sum();
        let names: Vec<_> = places.iter().map(|(path, _)| path).collect();
        assert_eq!(count, 1, "{literal} in {names:?}");
    }
}

/// Collects paths and texts of sources. Leaves out tests, because their expected output contains the strings.
fn collect(directory: &Path, sources: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path).unwrap();
            sources.push((path, text.split("#[cfg(test)]\nmod").next().unwrap_or_default().to_owned()));
        }
    }
}

#[test]
fn a_conversation_goes_on_with_what_was_said_as_events() {
    let world = World::new(User::Myself);
    Finished::of(&mut world.exec(&model_of([done()]), &[])).expect(0);
    let model = model_of([done()]);
    let mut served = Served::greeted(&world);
    let nothing = json!({"cwd": world.project(), "resume": "x"});
    assert_eq!(served.refused("newConversation", nothing), (-32004, "option_refused".into()));
    let name = world.log()[0]["session"].as_str().unwrap().to_owned();
    let options = json!({"cwd": world.project(), "base_url": model.base_url(), "resume": name});
    served.line(
        &json!({"jsonrpc": "2.0", "id": 9, "method": "newConversation", "params": options}).to_string(),
    );
    assert_eq!(served.until("event/userMessage")["data"]["text"], "do it");
    assert_eq!(served.until("event/sessionStarted")["data"]["resumed"], true);
    served.call("sendUserMessage", json!({"conversation_id": name, "text": "go on"}));
    served.until("event/turnFinished");
    assert_eq!(served.end().1.code, 0);
}
