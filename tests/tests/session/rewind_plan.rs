//! Tests rewinds after a plan that ran next to the first agent, and while the session ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, says};
use tests::{User, World};

use crate::rewind::{Talk, names};

const PLAN: &str = "# Two\n\n## Steps\n\n### 1. Write two\n\nAcceptance:\n- `grep -q two a.txt`\n";

fn approve(talk: &mut Talk<'_>) {
    let request = talk.served.asked("planApproval");
    let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"decision": "approved"}});
    talk.served.line(&response.to_string());
}

#[test]
fn a_plan_that_is_executed_after_a_turn_is_nobody_elses_work() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    let step = calls(&[
        ("update_step", json!({"step": 1, "status": "in_progress"})),
        ("write_file", json!({"path": "a.txt", "content": "two\n"})),
        ("update_step", json!({"step": 1, "status": "completed"})),
    ]);
    let server = model_of([
        says("Hello.", "end_turn"),
        calls(&[("write_plan", json!({ "markdown": PLAN }))]),
        step,
        done(),
        done(),
        says("Hello again.", "end_turn"),
    ]);
    let mut talk = Talk::new(&world, &server);
    talk.say("hello");
    talk.served.call("startPlan", json!({"conversation_id": talk.id, "text": "write two"}));
    approve(&mut talk);
    let is_planner = |event: &Value| event["data"]["call"].is_null();
    while !is_planner(&talk.served.until("event/subAgentResult")) {}
    assert_eq!(fs::read_to_string(world.project().join("a.txt")).unwrap(), "two\n");
    let preview = talk.preview(Some(talk.said[0]), "files");
    assert_eq!(names(&preview["files"]), ["modified a.txt"], "{preview}");
    assert_eq!(preview["left"], json!([]));
    // A file that somebody creates after the plan is not removed.
    world.file("theirs", "");
    let taken_back = talk.rewind(Some(talk.said[0]), "files");
    assert_eq!(names(&taken_back["files"]), ["modified a.txt"], "{taken_back}");
    assert_eq!(fs::read_to_string(world.project().join("a.txt")).unwrap(), "one\n");
    assert!(world.project().join("theirs").exists());
    talk.end();
}

#[test]
fn a_session_whose_front_end_goes_while_files_are_taken_back_ends_with_them_taken_back() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    let server = model_of([
        calls(&[("write_file", json!({"path": "a.txt", "content": "two\n"}))]),
        says("Done.", "end_turn"),
    ]);
    let mut talk = Talk::new(&world, &server);
    talk.say("write two");
    let preview = talk.preview(Some(talk.said[0]), "files");
    let wanted = json!({
        "conversation_id": talk.id, "to": talk.said[0], "scope": "files", "digest": preview["digest"],
    });
    talk.served.call("rewind", wanted);
    talk.end();
    assert_eq!(fs::read_to_string(world.project().join("a.txt")).unwrap(), "one\n");
}
