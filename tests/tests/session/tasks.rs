//! Tests the task list of an agent: in the log, in plain output, in a continued session, and after a rewind.

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::served::Served;
use tests::{Finished, User, World};

fn list(tasks: &[(&str, &str)]) -> (&'static str, Value) {
    let tasks: Vec<_> = tasks.iter().map(|(text, state)| json!({ "text": text, "state": state })).collect();
    ("update_tasks", json!({ "tasks": tasks }))
}

#[test]
fn lines_say_how_far_the_list_is_and_hostile_words_are_harmless() {
    let world = World::new(User::Myself);
    let replies = [
        calls(&[list(&[("look\u{1b}[2J\u{202e}", "in_progress"), ("mend", "pending")])]),
        calls(&[
            ("list_directory", json!({ "path": "." })),
            list(&[("look", "done"), ("mend", "in_progress")]),
        ]),
        calls(&[list(&[("look", "done"), ("mend", "in_progress"), ("test", "in_progress")])]),
        calls(&[list(&[("look", "done"), ("mend", "done")])]),
        done(),
    ];
    let server = model_of(replies);
    let done = Finished::of(&mut world.task(&server.base_url(), ["do it"])).expect(0);
    let lines: Vec<_> = done.stderr.lines().filter(|line| line.contains("tasks")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    tasks 0/2 · now: look [2J\u{202e}
    tasks 1/2 · now: mend
    tasks 2/2 · all done
    ");
    assert_eq!(done.stdout, "Done.\n");
    assert!(!done.stderr.contains(['\u{1b}', '\u{202e}']), "{:?}", done.stderr);
    let log = world.log();
    let updates: Vec<_> = log.iter().filter(|event| event["type"] == "tasks_updated").collect();
    assert_eq!(updates.len(), 3, "the list beyond its bounds changed nothing");
    assert_eq!(updates[2]["data"]["tasks"][1], json!({ "text": "mend", "state": "done" }));
}

#[test]
fn a_front_end_gets_the_list_and_no_question() {
    let world = World::new(User::Myself);
    let server = model_of([calls(&[list(&[("look", "in_progress")])]), done()]);
    let mut serve = Served::greeted(&world);
    let conversation = serve.converse(&world.project(), &server.base_url(), "ask");
    serve.call("sendUserMessage", json!({ "conversation_id": conversation, "text": "do it" }));
    let event = serve.until("event/tasksUpdated");
    assert_eq!(event["data"]["tasks"], json!([{ "text": "look", "state": "in_progress" }]), "{event}");
    serve.until("event/turnFinished");
}
