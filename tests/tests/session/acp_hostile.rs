//! Tests a hostile or broken editor: actions that it was not shown are not carried out, and no process is left.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use model::replay::Reply;
use serde_json::{Value, json};
use tests::editor::{Editor, option};
use tests::replies::{calls, done, model_of, says, serve, shell};
use tests::{User, World, marked, wait_until};

fn writes(path: &str) -> String {
    calls(&[("write_file", json!({"path": path, "content": "x"}))])
}

fn selected(option: &str) -> Value {
    json!({"result": {"outcome": {"outcome": "selected", "optionId": option}}})
}

/// Returns answers that permit nothing, to a question in which the option `allow` would permit the action.
fn worthless(allow: &str) -> Vec<Value> {
    let (kind, digest) = allow.split_once(':').unwrap();
    let other = if digest.starts_with('0') { "1" } else { "0" };
    vec![
        selected(kind),
        selected(digest),
        selected(&format!("{kind}:{other}{}", &digest[1..])),
        selected(&format!("{kind}:{}", digest.to_uppercase())),
        selected(&format!(" {allow}")),
        selected(&format!("allow_always_tool:{digest}")),
        selected(&format!("allow_always_network:{digest}")),
        selected(&format!("edited:{digest}")),
        selected("allow_once:*"),
        selected(""),
        json!({"result": {"outcome": {"outcome": "cancelled"}}}),
        json!({"result": {"outcome": {"outcome": "allowed", "optionId": allow}}}),
        json!({"result": {"outcome": {"outcome": "selected"}}}),
        json!({"result": {"outcome": {"outcome": "selected", "optionId": [allow]}}}),
        json!({"result": {"outcome": "selected", "optionId": allow}}),
        json!({"result": {"optionId": allow}}),
        json!({"result": {}}),
        json!({"result": [{"outcome": "selected", "optionId": allow}]}),
        json!({"result": allow}),
        json!({"result": true}),
        json!({"result": null}),
        json!({"error": {"code": -32601, "message": allow}}),
        json!({"error": {"outcome": {"outcome": "selected", "optionId": allow}}}),
        json!({"error": null}),
    ]
}

#[test]
fn every_answer_that_names_no_offered_option_is_a_denial() {
    let world = World::new(User::Myself);
    let digest = format!("allow_once:{}", "a".repeat(64));
    let count = worthless(&digest).len();
    let model = model_of((0..count).map(|at| writes(&format!("{at}.txt"))).chain([done()]));
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "write");
    for at in 0..count {
        let asked = editor.asked();
        let mut answer = worthless(&option(&asked, "allow_once")).remove(at);
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = asked["id"].clone();
        editor.served.line(&answer.to_string());
    }
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(std::fs::read_dir(world.project()).unwrap().count(), 0);
    assert_eq!(editor.end().1.code, 0);
    let log = world.log();
    let decisions: Vec<_> = log
        .iter()
        .filter(|event| event["type"] == "approval_answered")
        .map(|event| &event["data"]["decision"]["decision"])
        .collect();
    assert_eq!(decisions, vec![&json!("denied"); count]);
}

#[test]
fn an_answer_counts_once_and_for_its_question_alone() {
    let world = World::new(User::Myself);
    let model = model_of([writes("a.txt"), writes("b.txt"), writes("c.txt"), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    // Answers to questions that nobody asked yet.
    for id in [json!(format!("{session}:1:1")), json!(1), json!("1:1")] {
        editor.served.line(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": {"outcome": "selected", "optionId": "allow_once:x"}}}).to_string());
    }
    let prompt = editor.say(&session, "write");
    let first = editor.asked();
    editor.choose(&first, "reject_once");
    // The second answer, and the first question's option as the answer to the second question.
    editor.choose(&first, "allow_once");
    let second = editor.asked();
    let stale = option(&first, "allow_once");
    editor.answer(&second, json!({"outcome": {"outcome": "selected", "optionId": stale}}));
    let third = editor.asked();
    editor.answer(
        &second,
        json!({"outcome": {"outcome": "selected", "optionId": option(&third, "allow_once")}}),
    );
    editor.choose(&third, "allow_once");
    editor.choose(&third, "reject_once");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    let there = ["a.txt", "b.txt", "c.txt"].map(|name| world.project().join(name).exists());
    assert_eq!(there, [false, false, true]);
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn what_is_out_of_order_is_an_error_and_the_connection_goes_on() {
    let world = World::new(User::Myself);
    let model = model_of([done()]);
    let mut editor = Editor::start(&world, &["--base-url", &model.base_url()]);
    let new = json!({"cwd": world.project(), "mcpServers": []});
    let invalid = |word: &str| (-32600, word.to_owned());
    assert_eq!(editor.refused("session/new", new.clone()), invalid("not_initialised"));
    editor.call("initialize", json!({"protocolVersion": 77}));
    assert_eq!(editor.refused("initialize", json!({"protocolVersion": 1})), invalid("already_initialised"));
    let session = editor.open(&world);
    let nobody =
        json!({"sessionId": "nobody", "prompt": [], "modeId": "ask", "configId": "mode", "value": "ask"});
    for method in ["session/prompt", "session/set_mode", "session/set_config_option", "session/close"] {
        let refused = editor.refused(method, nobody.clone());
        assert_eq!(refused, (-32002, "no_such_conversation".to_owned()), "{method}");
    }
    editor.notify("session/cancel", json!({"sessionId": "nobody"}));
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.notify("session/cancel", json!([]));
    editor
        .notify("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}));
    let own = json!({"sessionId": session});
    let parameters = |word: &str| (-32602, word.to_owned());
    for (method, params, word) in [
        ("session/new", json!({"cwd": "project", "mcpServers": []}), "option_refused"),
        ("session/new", json!({"cwd": "/", "mcpServers": []}), "project_refused"),
        (
            "session/new",
            json!({"cwd": world.project(), "mcpServers": [], "additionalDirectories": ["/tmp"]}),
            "option_refused",
        ),
        ("session/new", json!({}), "invalid_params"),
        ("session/prompt", own.clone(), "invalid_params"),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "audio", "data": "", "mimeType": "a/b"}]}),
            "invalid_params",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": " "}]}),
            "invalid_params",
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "root", "value": "on"}),
            "invalid_params",
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "network", "type": "boolean", "value": true}),
            "invalid_params",
        ),
        ("session/list", json!({"cursor": "nowhere"}), "invalid_params"),
        ("authenticate", json!({"methodId": "x"}), "invalid_params"),
    ] {
        assert_eq!(editor.refused(method, params.clone()), parameters(word), "{method} {params}");
    }
    for method in
        ["fs/read_text_file", "terminal/create", "session/fork", "session/set_model", "logout", "shutdown"]
    {
        let refused = editor.refused(method, own.clone());
        assert_eq!(refused, (-32601, "method_not_found".to_owned()), "{method}");
    }
    // Ids may be anything and come in any order.
    for id in [json!("b"), json!(-7), json!(99), json!("a")] {
        editor
            .served
            .line(&json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}}).to_string());
    }
    let mut ids: Vec<_> = (0..4).map(|_| editor.line()["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["\"a\"", "\"b\"", "-7", "99"]);
    assert_eq!(editor.turn(&session, "go", "reject_once"), "end_turn");
    assert_eq!(model.requests().len(), 1);
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_message_of_a_hundred_megabytes_is_an_error_and_is_not_kept() {
    let world = World::new(User::Myself);
    let model = model_of([done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    for _ in 0..100 {
        editor.served.raw(&vec![b'x'; 1 << 20]);
    }
    editor.served.raw(b"\n");
    let refused = editor.line();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
    let status = std::fs::read_to_string(format!("/proc/{}/status", editor.served.process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let kib: u64 = peak.trim_end_matches(" kB").trim().parse().unwrap();
    assert!(kib < 150 << 10, "{kib} KiB");
    assert_eq!(editor.turn(&session, "go", "reject_once"), "end_turn");
    assert_eq!(editor.end().1.code, 0);
}

/// State of a session in which the editor disappears.
#[derive(Clone, Copy, Debug)]
enum State {
    Nothing,
    Hello,
    Opening,
    Open,
    Reply,
    Question,
    Command,
    Change,
    HalfALine,
}

fn leaves(state: State) {
    let world = World::new(User::Myself);
    let slow =
        Reply::sse(says(&"word ".repeat(500), "end_turn")).chunked(200).paced(Duration::from_millis(50));
    let first = match state {
        State::Reply => slow,
        State::Command => Reply::sse(shell("echo started; sleep 600")),
        _ => Reply::sse(writes("a.txt")),
    };
    let model = serve([first, Reply::sse(done())]);
    let mut editor = Editor::start(&world, &["--base-url", &model.base_url()]);
    if !matches!(state, State::Nothing) {
        editor.call("initialize", json!({"protocolVersion": 1}));
    }
    let new = json!({"cwd": world.project(), "mcpServers": []});
    match state {
        State::Nothing | State::Hello => {}
        State::Opening => drop(editor.send("session/new", new)),
        _ => {
            let session = editor.open(&world);
            match state {
                State::Reply => {
                    editor.say(&session, "go");
                    editor.update("agent_message_chunk");
                }
                State::Question => {
                    editor.say(&session, "go");
                    editor.asked();
                }
                State::Command => {
                    editor.say(&session, "go");
                    editor.update("tool_call_update");
                }
                State::Change => {
                    editor.send("session/set_mode", json!({"sessionId": session, "modeId": "deny"}));
                }
                State::HalfALine => {
                    editor.say(&session, "go");
                    let asked = editor.asked();
                    let allow = option(&asked, "allow_once");
                    let line = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "selected", "optionId": allow}}});
                    editor.served.raw(line.to_string().as_bytes());
                }
                _ => {}
            }
        }
    }
    let (_, ended) = editor.end();
    assert_eq!(ended.code, 0, "{state:?}: {}", ended.stderr);
    wait_until("nothing of this world is left", || marked(world.mark().as_bytes()).is_empty());
    assert!(!world.project().join("a.txt").exists(), "{state:?}");
}

#[test]
fn an_editor_that_leaves_in_any_state_leaves_nothing() {
    for state in [
        State::Nothing,
        State::Hello,
        State::Opening,
        State::Open,
        State::Reply,
        State::Question,
        State::Command,
        State::Change,
        State::HalfALine,
    ] {
        leaves(state);
    }
}
