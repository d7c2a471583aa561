//! Tests prompts of MCP servers that a person requests, and progress messages of calls.

use serde_json::json;
use tests::editor::Editor;
use tests::replies::{done, model_of};
use tests::served::Served;
use tests::tier;

use crate::sessions::{add, echo, world};

#[test]
fn a_front_end_lists_the_prompts_and_gets_their_text_which_no_model_reads() {
    let world = world(tier::all()[0]);
    let added = add(&world, &[]).expect(0);
    assert!(added.stdout.contains("prompts   greet"), "{}", added.stdout);
    let model = model_of([done()]);
    let mut served = Served::greeted(&world);
    let conversation = served.converse(&world.project(), &model.base_url(), "ask");
    let listed = served.call("listPrompts", json!({"conversation_id": conversation}));
    let arguments = json!([{"name": "who", "required": true}, {"name": "how", "required": false}]);
    let greet = json!({"server": "docs", "name": "greet", "description": "Greets.", "arguments": arguments});
    assert_eq!(listed["prompts"], json!([greet]));
    let mut get = |prompt| {
        served.call("getPrompt", json!({"conversation_id": conversation, "prompt": prompt}));
        served.until("event/promptExpanded")["data"].clone()
    };
    let found = get(json!({"server": "docs", "name": "greet", "arguments": {"who": "Ada\u{202e}"}}));
    assert_eq!(found, json!({"server": "docs", "name": "greet", "text": "Greet Ada\\u{202e}."}));
    let none = get(json!({"server": "docs", "name": "other"}));
    assert_eq!(none["failed"], "no MCP server docs with a prompt other in this session");
    let nobody = get(json!({"server": "elsewhere", "name": "greet"}));
    assert!(nobody["text"].is_null(), "{nobody}");
    assert!(model.requests().is_empty());
    served.end();
}

#[test]
fn an_editor_offers_the_prompts_and_sends_their_text_once_it_was_shown_and_allowed() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    let model = model_of([done()]);
    let mut editor = Editor::greeted(&world, &model.base_url(), world.tier_flags());
    let session = editor.open(&world);
    let offered = editor.update("available_commands_update");
    let greet = offered["availableCommands"].as_array().expect("commands").last().cloned();
    assert_eq!(
        greet,
        Some(json!({"name": "docs:greet", "description": "Greets.", "input": {"hint": "WHO [HOW]"}}))
    );
    let missing = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/docs:greet"}]});
    assert_eq!(editor.refused("session/prompt", missing), (-32602, "invalid_params".to_owned()));
    let prompt = editor.say(&session, "/docs:greet Ada\u{202e}");
    let asked = editor.asked();
    let call = &asked["params"]["toolCall"];
    assert_eq!(call["content"][0]["content"]["text"], "```\nGreet Ada\\u{202e}.\n```");
    assert_eq!(call["toolCallId"], editor.seen("tool_call")[0]["toolCallId"]);
    editor.choose(&asked, "reject_once");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert!(model.requests().is_empty());
    assert_eq!(editor.turn(&session, "/docs:greet Ada", "allow_once"), "end_turn");
    let said = String::from_utf8_lossy(&model.requests()[0].body).into_owned();
    assert!(said.contains("Greet Ada.") && !said.contains("/docs:greet"), "{said}");
    // A turn that is cancelled before the server has answered sends nothing.
    let prompt = editor.say(&session, "/docs:greet Bob");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(model.requests().len(), 1);
    assert_eq!(editor.end().1.code, 0);
}

#[test]
fn a_call_shows_its_progress_and_is_taken_back_with_its_turn() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    world.file("mode", "notes-cancelled");
    let model = model_of([echo("x"), done()]);
    let mut served = Served::greeted(&world);
    let conversation = served.converse(&world.project(), &model.base_url(), "ask");
    served.call("sendUserMessage", json!({"conversation_id": conversation, "text": "go"}));
    let delta = served.until("event/outputDelta");
    assert_eq!(delta["data"]["text"], "1 of 3: step\n");
    served.call("interrupt", json!({"conversation_id": conversation}));
    served.until("event/toolCallFinished");
    // The server gets this request after the message that the call is cancelled.
    let prompt = json!({"server": "docs", "name": "greet", "arguments": {"who": "Ada"}});
    served.call("getPrompt", json!({"conversation_id": conversation, "prompt": prompt}));
    let expanded = served.until("event/promptExpanded");
    assert_eq!(expanded["data"]["text"], "Greet Ada. Cancelled: 1.");
    served.end();
}
