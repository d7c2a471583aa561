//! Prompts of servers, which a person asks for, and lines about the progress of calls.

use serde_json::json;
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
    // The server answers a prompt once it has been told that the call is taken back.
    let prompt = json!({"server": "docs", "name": "greet", "arguments": {"who": "Ada"}});
    served.call("getPrompt", json!({"conversation_id": conversation, "prompt": prompt}));
    let expanded = served.until("event/promptExpanded");
    assert_eq!(expanded["data"]["text"], "Greet Ada. Cancelled: 1.");
    served.end();
}

#[test]
fn a_question_of_a_server_is_shown_and_answered_by_nobody() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    world.file("mode", "asks");
    let model = model_of([echo("x"), done()]);
    let mut served = Served::greeted(&world);
    let conversation = served.converse(&world.project(), &model.base_url(), "ask");
    served.call("sendUserMessage", json!({"conversation_id": conversation, "text": "go"}));
    let delta = served.until("event/outputDelta");
    assert_eq!(delta["data"]["text"], "asks, and nobody can answer: Your name?\n");
    let finished = served.until("event/toolCallFinished");
    assert!(finished.to_string().contains("cancel"), "{finished}");
    served.end();
}
