//! Tests `bailiwick acp` as a program: edits, commands, plans, sub-agents, earlier sessions, and the end of the
//! process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::time::Duration;

use model::replay::Reply;
use serde_json::{Value, json};
use tests::editor::Editor;
use tests::replies::{calls, done, model_of, model_of_agents, says, serve, shell};
use tests::served::Served;
use tests::world::KEY;
use tests::{User, World, alive, marked, wait_until};

const PLAN: &str = "# A note\n\n## Steps\n\n### 1. Write it\n\nAcceptance:\n- `grep -q noted note.txt`\n";

fn writes(path: &str, content: &str) -> String {
    calls(&[("write_file", json!({"path": path, "content": content}))])
}

#[test]
fn an_edit_is_shown_as_a_diff_and_made_if_it_is_allowed() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\ntwo\nthree\n");
    let edit = |old: &str, new: &str| {
        calls(&[("edit_file", json!({"path": "a.txt", "old_string": old, "new_string": new}))])
    };
    let model = model_of([edit("two", "2"), done(), edit("three", "3"), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "edit");
    let asked = editor.asked();
    let call = &asked["params"]["toolCall"];
    let content = call["content"].as_array().unwrap();
    let diff = content.iter().find(|part| part["type"] == "diff").unwrap();
    let path = world.project().join("a.txt");
    assert_eq!(
        diff,
        &json!({"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"})
    );
    assert_eq!(call["locations"], json!([{"path": path, "line": 1}]));
    let ids: Vec<_> = asked["params"]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["optionId"].as_str().unwrap())
        .collect();
    let (_, digest) = ids[0].split_once(':').unwrap();
    assert!(digest.len() == 64 && ids.iter().all(|id| id.ends_with(digest)), "{ids:?}");
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.txt"), "one\n2\nthree\n");
    let ends = editor.seen("tool_call_update");
    assert_eq!(ends.last().unwrap()["status"], "completed");
    // A denial ends the call, but not the turn.
    assert_eq!(editor.turn(&session, "again", "reject_once"), "end_turn");
    assert_eq!(world.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(editor.seen("tool_call_update").last().unwrap()["status"], "failed");
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn one_answer_allows_the_whole_turn_and_the_next_turn_asks() {
    let world = World::new(User::Myself);
    let replies = [writes("a.txt", "x"), writes("b.txt", "y"), done(), writes("c.txt", "z"), done()];
    let model = model_of(replies);
    let mut editor = Editor::greeted(&world, &model.base_url(), &["--net", "on"]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "go");
    let asked = editor.asked();
    let options = asked["params"]["options"].as_array().unwrap();
    let whole =
        options.iter().find(|one| one["optionId"].as_str().unwrap().starts_with("allow_turn:")).unwrap();
    let name = whole["name"].as_str().unwrap();
    let beginning = "Allow everything in this turn: write /";
    assert!(name.starts_with(beginning) && name.contains(world.project().to_str().unwrap()), "{name}");
    let id = whole["optionId"].clone();
    editor.answer(&asked, json!({"outcome": {"outcome": "selected", "optionId": id}}));
    // No question comes before the turn is over.
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("x".to_owned(), "y".to_owned()));
    assert_eq!(editor.turn(&session, "again", "reject_once"), "end_turn");
    assert!(!world.project().join("c.txt").exists());
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn one_answer_lasts_in_the_project_and_says_for_which_commands() {
    let world = World::new(User::Myself);
    let config = world.configure("mode = \"ask\"\n");
    let made = world.project().join("made");
    let touch = || calls(&[("shell_exec", json!({"command": "touch made", "access": "write"}))]);
    let model = model_of([touch(), touch(), done(), touch(), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "go");
    let asked = editor.asked();
    let options = asked["params"]["options"].as_array().unwrap();
    let is_lasting = |one: &&Value| one["optionId"].as_str().unwrap().starts_with("allow_always_project:");
    let lasting = options.iter().find(is_lasting).unwrap();
    assert_eq!(lasting["kind"], "allow_always");
    let name = lasting["name"].as_str().unwrap();
    assert!(name.starts_with("Allow always in this project: touch"), "{name}");
    let id = lasting["optionId"].clone();
    editor.answer(&asked, json!({"outcome": {"outcome": "selected", "optionId": id}}));
    // The second call needs no approval, nor does a later session.
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.end().1.code, 0);
    let kept = fs::read_to_string(&config).unwrap();
    let table = format!("[project.\"{}\"]\napprovals.preapproved = [[\"touch\"", world.project().display());
    assert!(kept.starts_with("mode = \"ask\"\n") && kept.contains(&table), "{kept}");
    fs::remove_file(&made).unwrap();
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "again");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert!(made.exists());
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_command_is_shown_whole_with_its_access_and_allowed_for_the_session_as_it_was_shown() {
    let world = World::new(User::Myself);
    let command = "echo x >> a.txt # ```\n";
    let run = || calls(&[("shell_exec", json!({"command": command, "access": "write"}))]);
    let hidden = calls(&[("shell_exec", json!({"command": "echo y\u{202e} >> b.txt", "access": "write"}))]);
    let model = model_of([run(), run(), hidden, done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "run");
    let asked = editor.asked();
    let text = asked["params"]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("````sh\n{command}````\n")), "{text}");
    assert!(text.contains("access: write") && text.contains("requested network access: off"), "{text}");
    editor.choose(&asked, "allow_always");
    // The second run asks nobody. A command with a character that cannot be seen is no scope.
    let asked = editor.asked();
    let asked_text = asked.to_string();
    assert!(asked_text.contains("\\\\u{202e}") && !asked_text.contains("allow_always"), "{asked_text}");
    editor.choose(&asked, "reject_once");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.txt"), "x\nx\n");
    assert!(!world.project().join("b.txt").exists());
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn an_editor_cannot_widen_what_the_start_allows() {
    let world = World::new(User::Myself);
    let model = model_of([writes("a.txt", "x"), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let mode = |mode: &str| json!({"sessionId": session, "modeId": mode});
    let option = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let refused = (-32602, "option_refused".to_owned());
    assert_eq!(editor.refused("session/set_mode", mode("auto")), refused);
    assert_eq!(editor.refused("session/set_mode", mode("yolo")), refused);
    assert_eq!(editor.refused("session/set_config_option", option("mode", "auto")), refused);
    assert_eq!(editor.refused("session/set_config_option", option("network", "on")), refused);
    assert_eq!(editor.refused("session/set_config_option", option("model", "gpt-5")), refused);
    assert_eq!(editor.call("session/set_mode", mode("deny")), json!({}));
    assert_eq!(editor.update("current_mode_update")["currentModeId"], "deny");
    assert_eq!(editor.turn(&session, "write", "allow_once"), "end_turn");
    assert!(!world.project().join("a.txt").exists());
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn modes_network_and_model_change_within_the_start_and_the_answer_says_so() {
    let world = World::new(User::Myself);
    let model = model_of([writes("a.txt", "x"), done()]);
    let flags = ["--up-to", "auto", "--net", "on"];
    let mut editor = Editor::greeted(&world, &model.base_url(), &flags);
    let session = editor.open(&world);
    let set = |editor: &mut Editor, id: &str, value: &str| {
        let params = json!({"sessionId": session, "configId": id, "value": value});
        let answer = editor.call("session/set_config_option", params);
        let options = answer["configOptions"].as_array().unwrap().clone();
        options.into_iter().find(|option| option["id"] == id).unwrap()["currentValue"].clone()
    };
    for net in ["off", "on", "on", "off"] {
        assert_eq!(set(&mut editor, "network", net), net);
    }
    assert_eq!(set(&mut editor, "model", "claude-haiku-5-5"), "claude-haiku-5-5");
    for mode in ["plan", "ask", "auto"] {
        assert_eq!(set(&mut editor, "mode", mode), mode);
    }
    assert_eq!(editor.turn(&session, "write", "reject_once"), "end_turn");
    assert_eq!(world.read("a.txt"), "x");
    assert!(model.requests().iter().all(|request| {
        serde_json::from_slice::<Value>(&request.body).unwrap()["model"] == "claude-haiku-5-5"
    }));
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_plan_that_a_person_edited_is_shown_again_and_executed_as_it_was_shown_last() {
    let world = World::new(User::Myself);
    let write = calls(&[("write_plan", json!({"markdown": PLAN}))]);
    let finish = calls(&[("update_step", json!({"step": 1, "status": "completed"}))]);
    let executor = [
        calls(&[("update_step", json!({"step": 1, "status": "in_progress"}))]),
        writes("note.txt", "noted, better"),
        finish,
        done(),
    ];
    let replies = [vec![write], executor.to_vec(), vec![says("Planned.", "end_turn")]].concat();
    let model = model_of(replies);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"}));
    let prompt = editor.say(&session, "a note");
    let asked = editor.asked();
    let entries = editor.seen("plan").last().unwrap()["entries"].clone();
    assert_eq!(entries, json!([{"content": "Write it", "priority": "medium", "status": "pending"}]));
    let text = asked["params"]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("```markdown\n{PLAN}```\n")), "{text}");
    let file = text.lines().find_map(|line| line.strip_prefix("file: ")).unwrap().to_owned();
    let edited = |asked: &Value| {
        let options = asked["params"]["options"].as_array().unwrap();
        let ids = options.iter().map(|option| option["optionId"].as_str().unwrap().to_owned());
        let id = ids.into_iter().find(|id| id.starts_with("edited:")).unwrap();
        json!({"outcome": {"outcome": "selected", "optionId": id}})
    };
    // A text that is no plan asks about the old one again.
    fs::write(&file, "no plan").unwrap();
    editor.answer(&asked, edited(&asked));
    let again = editor.asked();
    assert_eq!(again["params"]["options"], asked["params"]["options"]);
    fs::write(&file, PLAN.replace("noted", "better")).unwrap();
    editor.answer(&again, edited(&again));
    let last = editor.asked();
    assert!(last.to_string().contains("grep -q better note.txt"), "{last}");
    // The option of the previous text is no longer valid.
    assert_ne!(last["params"]["options"][0]["optionId"], asked["params"]["options"][0]["optionId"]);
    editor.choose(&last, "allow_once");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("note.txt"), "noted, better");
    assert_eq!(editor.seen("plan").last().unwrap()["entries"][0]["status"], "completed");
    assert!(editor.text("agent_message_chunk").contains("Planned."));
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_sub_agent_is_a_call_with_updates_of_its_own() {
    let world = World::new(User::Myself);
    let delegate = calls(&[("spawn_agent", json!({"task": "look"}))]);
    let sub = vec![shell("echo from below"), says("I looked.", "end_turn")];
    let model = model_of_agents([delegate, done()], [("look".to_owned(), sub)]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    assert_eq!(editor.turn(&session, "go", "reject_once"), "end_turn");
    let calls = editor.seen("tool_call");
    let ids: Vec<_> = calls.iter().map(|call| call["toolCallId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["1:1", "agent:1.1", "1.1:1"]);
    let ends = editor.seen("tool_call_update");
    let end = ends.iter().rfind(|update| update["toolCallId"] == "agent:1.1").unwrap();
    assert_eq!(end["status"], "completed");
    assert!(end.to_string().contains("I looked."), "{end}");
    // The sub-agent's text is not a part of the conversation's messages.
    assert_eq!(editor.text("agent_message_chunk"), "Done.");
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_cancelled_turn_ends_its_command_and_answers_with_cancelled() {
    let world = World::new(User::Myself);
    let model = model_of([shell("echo $$ > $TMPDIR/pid; echo started; sleep 600"), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "wait");
    let output = editor.update("tool_call_update");
    assert!(output.to_string().contains("started"), "{output}");
    let busy = editor.refused("session/prompt", json!({"sessionId": session, "prompt": []}));
    assert_eq!(busy, (-32600, "busy".to_owned()));
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.turn(&session, "and?", "reject_once"), "end_turn");
    assert_eq!(editor.end().1.code, 0);
    wait_until("nothing of this world is left", || marked(world.mark().as_bytes()).is_empty());
}

#[test]
fn a_turn_is_cancelled_in_the_middle_of_a_reply_and_of_a_question() {
    let world = World::new(User::Myself);
    let slow =
        Reply::sse(says(&"word ".repeat(500), "end_turn")).chunked(200).paced(Duration::from_millis(50));
    let model = serve([slow, Reply::sse(writes("a.txt", "x")), Reply::sse(done())]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "tell");
    editor.update("agent_message_chunk");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    let prompt = editor.say(&session, "write");
    let asked = editor.asked();
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    // An answer that comes late changes nothing.
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.turn(&session, "and?", "reject_once"), "end_turn");
    assert!(!world.project().join("a.txt").exists());
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_question_that_is_over_is_withdrawn() {
    let world = World::new(User::Myself);
    let model = model_of([writes("a.txt", "x"), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "write");
    let asked = editor.asked();
    let change = editor.send("session/set_mode", json!({"sessionId": session, "modeId": "deny"}));
    let lines = [editor.line(), editor.line(), editor.line()];
    let withdrawn = lines.iter().find(|line| line["method"] == "$/cancel_request").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    for id in [prompt, change] {
        assert!(lines.iter().any(|line| line["id"] == id && line.get("result").is_some()), "{lines:?}");
    }
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.end().1.code, 0);
    assert!(!world.project().join("a.txt").exists());
}

#[test]
fn an_earlier_session_is_listed_loaded_with_its_history_resumed_without_it_and_closed() {
    let world = World::new(User::Myself);
    let model = model_of([shell("echo hello"), says("It says hello.", "end_turn"), done(), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    assert_eq!(editor.turn(&session, "what is new?", "reject_once"), "end_turn");
    let here = json!({"sessionId": session, "cwd": world.project(), "mcpServers": []});
    let open = editor.send("session/load", here.clone());
    let error = editor.response(open)["error"].clone();
    assert_eq!(error["data"], json!({"word": "option_refused", "error": "session-open"}), "{error}");
    assert_eq!(editor.call("session/close", json!({"sessionId": session})), json!({}));
    let gone = (-32002, "no_such_conversation".to_owned());
    assert_eq!(editor.refused("session/prompt", json!({"sessionId": session, "prompt": []})), gone);
    let listed = editor.call("session/list", json!({"cwd": world.project()}))["sessions"].clone();
    assert_eq!((&listed[0]["sessionId"], &listed[0]["title"]), (&json!(session), &json!("what is new?")));
    assert_eq!(editor.call("session/list", json!({"cwd": "/"}))["sessions"], json!([]));
    editor.updates.clear();
    let loaded = editor.call("session/load", here.clone());
    assert_eq!(loaded["modes"]["currentModeId"], "ask");
    let kinds: Vec<_> =
        editor.updates.iter().map(|params| params["update"]["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]);
    assert_eq!(editor.text("user_message_chunk"), "what is new?");
    assert_eq!(editor.turn(&session, "and now?", "reject_once"), "end_turn");
    editor.call("session/close", json!({"sessionId": session}));
    editor.updates.clear();
    editor.call("session/resume", here);
    assert!(editor.updates.is_empty(), "{:?}", editor.updates);
    assert_eq!(editor.turn(&session, "and then?", "reject_once"), "end_turn");
    for name in ["", "../sessions", &session[..8], "01999999-9999-7999-8999-999999999999"] {
        let params = json!({"sessionId": name, "cwd": world.project(), "mcpServers": []});
        assert_eq!(editor.refused("session/load", params), gone, "{name}");
    }
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn servers_that_an_editor_names_are_proposals() {
    let world = World::new(User::Myself);
    let model = model_of([done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let started = world.root().join("started");
    let server = json!({"name": "notes", "command": "/bin/sh", "args": ["-c", format!("touch {}", started.display())], "env": []});
    let opened = editor.call("session/new", json!({"cwd": world.project(), "mcpServers": [server]}));
    let said = editor.update("agent_message_chunk")["content"]["text"].as_str().unwrap().to_owned();
    assert!(said.contains("bailiwick mcp add notes -- /bin/sh -c 'touch "), "{said}");
    assert_eq!(editor.turn(opened["sessionId"].as_str().unwrap(), "go", "reject_once"), "end_turn");
    assert_eq!(editor.end().1.code, 0);
    assert!(!started.exists());
}

#[test]
fn two_sessions_keep_apart() {
    let world = World::new(User::Myself);
    let other = world.root().join("other");
    fs::create_dir(&other).unwrap();
    let model = model_of_agents(
        [],
        ["one", "two"].map(|name| (name.to_owned(), vec![writes("a.txt", name), done()])),
    );
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let one = editor.open(&world);
    let two = editor.call("session/new", json!({"cwd": other, "mcpServers": []}))["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let prompts = [editor.say(&one, "one"), editor.say(&two, "two")];
    let mut asked = [editor.asked(), editor.asked()];
    asked.sort_by_key(|asked| asked["params"]["sessionId"] == two.as_str());
    // An option of one session is no answer in the other.
    let [of_one, of_two] = &asked;
    let foreign = of_one["params"]["options"][0]["optionId"].clone();
    editor.answer(of_two, json!({"outcome": {"outcome": "selected", "optionId": foreign}}));
    editor.choose(of_one, "allow_once");
    let mut ended: Vec<_> =
        [editor.line(), editor.line()].iter().map(|line| line["id"].as_u64().unwrap()).collect();
    ended.sort_unstable();
    assert_eq!(ended, prompts);
    assert_eq!(world.read("a.txt"), "one");
    assert!(!other.join("a.txt").exists());
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn an_editor_that_is_gone_ends_everything() {
    let world = World::new(User::Myself);
    let model = model_of([shell("echo $$ > pid; sleep 600")]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &["--mode", "auto"]);
    let session = editor.open(&world);
    editor.say(&session, "wait");
    let pid = world.pid_in("pid");
    let (_, ended) = editor.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    wait_until("the command is gone", || !alive(pid));
    wait_until("nothing of this world is left", || marked(world.mark().as_bytes()).is_empty());
}

/// Returns the log of a session, without parts that differ from run to run.
fn comparable(world: &World) -> Vec<Value> {
    let session = world.log()[0]["session"].as_str().unwrap().to_owned();
    world.log().into_iter().map(|event| plain(event, &session)).collect()
}

fn plain(value: Value, session: &str) -> Value {
    const VOLATILE: [&str; 10] = [
        "time_ms",
        "prev",
        "sum",
        "rules",
        "hidden",
        "pid",
        "startup_us",
        "duration_ms",
        "rights_digest",
        "tool_use",
    ];
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, _)| !VOLATILE.contains(&name.as_str()))
            .map(|(name, value)| (name, plain(value, session)))
            .collect(),
        Value::Array(items) => items.into_iter().map(|item| plain(item, session)).collect(),
        Value::String(text) => json!(tests::without_durations(&text.replace(session, "SESSION"))),
        other => other,
    }
}

#[test]
fn the_same_task_leaves_the_same_log_as_by_serve() {
    let replies = || [writes("a.txt", "x"), shell("cat a.txt"), done()];
    let by_acp = World::new(User::Myself);
    let model = model_of(replies());
    let mut editor = Editor::greeted(&by_acp, &model.base_url(), &[]);
    let session = editor.open(&by_acp);
    assert_eq!(editor.turn(&session, "write", "allow_once"), "end_turn");
    editor.call("session/close", json!({"sessionId": session}));
    assert_eq!(editor.end().1.code, 0);

    let by_serve = World::new(User::Myself);
    let second = model_of(replies());
    let mut command = by_serve.bailiwick(["serve"]);
    command.env("ANTHROPIC_API_KEY", KEY);
    let mut served = Served::of(command);
    served.call("initialize", json!({}));
    let id = served.converse(&by_serve.project(), &second.base_url(), "ask");
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "write"}));
    let asked = served.asked("applyPatchApproval");
    let answer = json!({"decision": "approved", "digest": asked["params"]["digest"]});
    served.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).to_string());
    served.until("event/turnFinished");
    served.call("closeConversation", json!({"conversation_id": id}));
    served.until("event/conversationClosed");
    assert_eq!(served.end().1.code, 0);

    let place = |world: &World, log: Vec<Value>, url: String| {
        let text = serde_json::to_string_pretty(&log).unwrap();
        let text = text.replace(world.root().to_str().unwrap(), "ROOT").replace(&url, "URL");
        // The directory of the project's caches is named by a hash of its place.
        let mut pieces = text.split("/projects/project-");
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces
            .fold(first, |text, piece| text + "/projects/project-HASH" + piece.get(16..).unwrap_or_default())
    };
    let one = place(&by_acp, comparable(&by_acp), model.base_url());
    let other = place(&by_serve, comparable(&by_serve), second.base_url());
    let digests = |text: &str| {
        text.split('"')
            .map(|word| {
                if word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    "DIGEST"
                } else {
                    word
                }
            })
            .collect::<Vec<_>>()
            .join("\"")
    };
    similar_lines(&digests(&one), &digests(&other));
}

fn similar_lines(one: &str, other: &str) {
    for (one, other) in one.lines().zip(other.lines()) {
        assert_eq!(one, other);
    }
    assert_eq!(one.lines().count(), other.lines().count());
}
