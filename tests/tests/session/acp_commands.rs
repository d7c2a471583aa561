//! Tests the person's own slash commands in an editor and with `serve`: they are listed, shown and sent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use serde_json::{Value, json};
use tests::editor::Editor;
use tests::replies::{calls, done, model_of, says};
use tests::served::Served;
use tests::{User, World};

const FIX: &str = "---\ndescription: Mend it\n---\nMend $1 and say ``` so.";

const LOOK: &str = "---\naccess: read\nmodel: claude-haiku-5-5\n---\nLook.";

/// Creates a world with the person's commands `fix` and `look` (which only reads), and the project's command `ours`.
fn world() -> World {
    let world = World::new(User::Myself);
    let commands = world.configure("agents.models = [\"claude-haiku-5-5\"]\n").with_file_name("commands");
    fs::create_dir_all(&commands).unwrap();
    fs::write(commands.join("fix.md"), FIX).unwrap();
    fs::write(commands.join("look.md"), LOOK).unwrap();
    let of_project = world.project().join(".bailiwick/commands");
    fs::create_dir_all(&of_project).unwrap();
    fs::write(of_project.join("ours.md"), "Do as we do.").unwrap();
    world
}

fn trust(world: &World) {
    assert_eq!(tests::trust::trust(world, "y\n").0, 0);
}

fn writes(path: &str) -> String {
    calls(&[("write_file", json!({"path": path, "content": "x"}))])
}

/// Returns the user's messages in a request.
fn sent(body: &[u8]) -> String {
    let request: Value = serde_json::from_slice(body).unwrap();
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].to_string())
        .collect()
}

fn offered(editor: &Editor) -> Vec<String> {
    let update = editor.seen("available_commands_update");
    let commands = update.last().unwrap()["availableCommands"].as_array().unwrap();
    commands.iter().map(|command| command["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_command_of_the_persons_own_is_shown_as_it_is_sent() {
    let world = world();
    let model = model_of([done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    assert_eq!(editor.turn(&session, "/fix \"a b\" now", "reject_once"), "end_turn");
    assert_eq!(offered(&editor), ["plan", "compact", "fix", "look"]);
    let shown = editor.text("agent_message_chunk");
    assert!(
        shown.contains("/fix, a command of yours:_\n\n````\nMend a b and say ``` so.\n````\n"),
        "{shown}"
    );
    let said = sent(&model.requests()[0].body);
    assert!(said.contains("Mend a b and say ``` so.") && !said.contains("/fix"), "{said}");
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_command_that_reads_with_another_model_changes_this_turn_alone() {
    let world = world();
    let model = model_of([writes("a.txt"), done(), writes("b.txt"), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &["--mode", "auto"]);
    let session = editor.open(&world);
    assert_eq!(editor.turn(&session, "/look", "allow_once"), "end_turn");
    assert!(!world.project().join("a.txt").exists());
    let shown = editor.text("agent_message_chunk");
    assert!(shown.contains("the agent can only read in this turn; the model is claude-haiku-5-5"), "{shown}");
    assert_eq!(editor.turn(&session, "write", "reject_once"), "end_turn");
    assert_eq!(world.read("b.txt"), "x");
    let models: Vec<_> = model
        .requests()
        .iter()
        .map(|request| serde_json::from_slice::<Value>(&request.body).unwrap()["model"].clone())
        .collect();
    assert_eq!((&models[0], &models[1]), (&json!("claude-haiku-5-5"), &models[0]));
    assert!(models[2] != models[0] && models[3] == models[2], "{models:?}");
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_command_of_the_project_exists_once_trusted_and_is_sent_once_allowed() {
    let world = world();
    let model = model_of([says("Just words.", "end_turn"), done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    // Without trust the words are a message like any other.
    assert_eq!(editor.turn(&session, "/ours", "reject_once"), "end_turn");
    assert!(!offered(&editor).contains(&"ours".to_owned()));
    trust(&world);
    let session = editor.open(&world);
    assert!(editor.update("available_commands_update").to_string().contains("(of the project)"));
    let prompt = editor.say(&session, "/ours too");
    let asked = editor.asked();
    let text = asked["params"]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
    assert_eq!(text, "```\nDo as we do.\n\ntoo\n```");
    editor.choose(&asked, "reject_once");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(model.requests().len(), 1);
    // A second answer to the same question sends nothing.
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.turn(&session, "/ours too", "allow_once"), "end_turn");
    assert!(sent(&model.requests()[1].body).contains("Do as we do."));
    let ends: Vec<_> =
        editor.seen("tool_call_update").iter().map(|update| update["status"].clone()).collect();
    assert_eq!(ends, ["failed", "completed"]);
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_question_about_a_text_ends_with_its_turn() {
    let world = world();
    trust(&world);
    let model = model_of([done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    let prompt = editor.say(&session, "/ours");
    let asked = editor.asked();
    let busy = editor.refused("session/prompt", json!({"sessionId": session, "prompt": []}));
    assert_eq!(busy, (-32600, "busy".to_owned()));
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    editor.choose(&asked, "allow_once");
    // An option of the question about another text is no valid answer.
    let prompt = editor.say(&session, "/ours now");
    let again = editor.asked();
    let old = asked["params"]["options"][0]["optionId"].clone();
    editor.answer(&again, json!({"outcome": {"outcome": "selected", "optionId": old}}));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    // Closing a session answers the open questions and requests.
    let prompt = editor.say(&session, "/ours");
    editor.asked();
    let close = editor.send("session/close", json!({"sessionId": session}));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.response(close)["result"], json!({}));
    assert!(model.requests().is_empty());
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn in_the_mode_plan_the_text_is_the_purpose() {
    let world = world();
    let model = model_of([says("Nothing to plan.", "end_turn")]);
    let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
    let session = editor.open(&world);
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"}));
    editor.turn(&session, "/fix it", "reject_once");
    let said = sent(&model.requests()[0].body);
    assert!(said.contains("Mend it and say"), "{said}");
    assert!(world.log().iter().any(|event| event["type"] == "sub_agent_spawned"));
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_front_end_lists_the_commands_gets_their_text_and_has_a_turn_only_read() {
    let world = world();
    trust(&world);
    let model = model_of([writes("a.txt"), done(), writes("b.txt"), done()]);
    let mut served = Served::greeted(&world);
    let id = served.converse(&world.project(), &model.base_url(), "auto");
    let listed = served.call("listCommands", json!({"conversation_id": id}))["commands"].clone();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|command| command["name"].clone()).collect();
    assert_eq!(names, ["fix", "look", "ours"]);
    let expected = json!({"name": "ours", "description": "Do as we do.", "text": "Do as we do.", "reads": false, "of_project": true});
    assert_eq!(listed[2], expected);
    let get = |served: &mut Served, name: &str, arguments: &str| {
        served.call("getCommand", json!({"conversation_id": id, "name": name, "arguments": arguments}))
    };
    assert_eq!(get(&mut served, "fix", "it"), json!({"text": "Mend it and say ``` so."}));
    let look = get(&mut served, "look", "");
    assert_eq!(look, json!({"text": "Look.", "reads": true, "model": "claude-haiku-5-5"}));
    let none = served.refused("getCommand", json!({"conversation_id": id, "name": "other"}));
    assert_eq!(none, (-32602, "invalid_params".to_owned()));
    assert!(model.requests().is_empty());
    served.call("sendUserMessage", json!({"conversation_id": id, "text": look["text"], "reads": true}));
    served.until("event/turnFinished");
    assert!(!world.project().join("a.txt").exists());
    served.call("sendUserMessage", json!({"conversation_id": id, "text": "write"}));
    served.until("event/turnFinished");
    assert_eq!(world.read("b.txt"), "x");
    served.end();
}
