//! Tests `exec --schema`: the run's answer conforms to the JSON schema.

use serde_json::{Value, json};
use tests::replies::{model_of, says, shell};
use tests::{Finished, User, World};

const SCHEMA: &str = r#"{"type":"object","required":["files"],"properties":{"files":{"type":"array","items":{"type":"string"}}}}"#;

fn world() -> World {
    let world = World::new(User::Myself);
    world.file("answer.json", SCHEMA);
    world
}

fn run(world: &World, replies: &[String], arguments: &[&str]) -> (Finished, Vec<String>) {
    let server = model_of(replies.iter().cloned());
    let schema = world.project().join("answer.json").display().to_string();
    let mut all = vec!["--schema", schema.as_str()];
    all.extend(arguments);
    all.push("do it");
    let done = Finished::of(&mut world.task(&server.base_url(), all));
    let bodies =
        server.requests().into_iter().map(|request| String::from_utf8_lossy(&request.body).into_owned());
    (done, bodies.collect())
}

#[test]
fn the_answer_alone_is_printed_and_the_model_is_told_the_schema() {
    let world = world();
    let replies =
        [shell("echo seen"), says("```json\n{ \"files\": [\"a\\u202eb\\u009b\", \"é\"] }\n```", "end_turn")];
    let (done, bodies) = run(&world, &replies, &[]);
    let done = done.expect(0);
    assert_eq!(done.stdout, "{\"files\":[\"a\\u202eb\\u009b\",\"é\"]}\n");
    assert!(
        bodies[0].contains("answer_schema") && bodies[0].contains(r#"\"required\":[\"files\"]"#),
        "{}",
        bodies[0]
    );
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_once_more_and_the_stream_has_its_value() {
    let world = world();
    let replies = [says("Two files: a and b.", "end_turn"), says(r#"{"files":["a","b"]}"#, "end_turn")];
    let (done, bodies) = run(&world, &replies, &["--output", "stream-json"]);
    let done = done.expect(0);
    let result = done.result();
    assert_eq!((&result["output"], &result["reason"]), (&json!({ "files": ["a", "b"] }), &json!("done")));
    let notices = done.events_of("notice");
    assert!(notices.iter().any(|notice| notice["code"] == "answer_misfit"), "{notices:?}");
    assert!(
        bodies[1].contains("does not fit the JSON Schema") && bodies[1].contains("the answer is not JSON"),
        "{}",
        bodies[1]
    );
}

#[test]
fn two_answers_that_do_not_fit_end_with_status_3_and_an_empty_output() {
    let world = world();
    let replies =
        [says("{}", "end_turn"), says(r#"{"files":[1]}"#, "end_turn"), says("{\"files\":[]}", "end_turn")];
    let (done, bodies) = run(&world, &replies, &[]);
    let done = done.expect(3);
    assert_eq!((done.stdout.as_str(), bodies.len()), ("", 2));
    assert!(
        done.stderr.contains("also on the second try: /files/0: 1 is not of type \"string\""),
        "{}",
        done.stderr
    );
    let (done, _) = run(&world, &replies, &["--output", "json"]);
    let result: Value = serde_json::from_str(&done.expect(3).stdout).unwrap();
    assert_eq!(
        (&result["data"]["reason"], &result["data"]["output"]),
        (&json!("schema_unmet"), &Value::Null)
    );
}

#[test]
fn a_session_that_goes_on_is_told_the_schema_of_this_run() {
    let world = world();
    let (done, _) = run(&world, &[says(r#"{"files":[]}"#, "end_turn")], &[]);
    done.expect(0);
    let (done, bodies) =
        run(&world, &[says("no", "end_turn"), says(r#"{"files":["c"]}"#, "end_turn")], &["-c"]);
    assert_eq!(done.expect(0).stdout, "{\"files\":[\"c\"]}\n");
    assert_eq!(bodies[0].matches("</answer_schema>").count(), 2, "of each run: {}", bodies[0]);
}

#[test]
fn a_schema_that_cannot_be_used_is_a_usage_error_before_any_request() {
    let world = world();
    for (text, part) in [
        ("{\n\"type\": 7\n}", "line 2: "),
        ("{\n\"type\": \"object\"", "is not JSON: EOF while parsing an object at line 2"),
        ("{\"$ref\":\"http://127.0.0.1:9/s\"}", "line 1: `http://127.0.0.1:9/s` refers to another file"),
    ] {
        world.file("answer.json", text);
        let (done, bodies) = run(&world, &[says("{}", "end_turn")], &[]);
        let done = done.expect(2);
        assert!(done.stderr.contains(part) && bodies.is_empty(), "{}", done.stderr);
    }
}
