//! Tests reports of changed files and the calls that changed them, over `serve`, with real workers in a real project.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, says, shell};
use tests::world::KEY;
use tests::{Finished, User, World, wait_until};

use crate::rewind::Talk;

/// Command that changes files in every way that is reported.
const EVERY_WAY: &str = "echo fresh > made.txt && sed -i s/one/two/ edited.txt && git mv moved.txt there.txt && rm gone.txt && chmod +x tool.sh \
     && ln -s made.txt link && ln -sfn made.txt relinked && printf '\\0\\1' > bytes.bin && mkdir -p gen && echo code > gen/code.rs && mkdir -p target && echo x > target/x";

/// Returns the reported changes of a turn, a line for each file.
fn lines(told: &[Value]) -> Vec<String> {
    let files = told.iter().flat_map(|changed| changed["files"].as_array().into_iter().flatten());
    files.map(line).collect()
}

fn line(file: &Value) -> String {
    let change = match &file["change"] {
        Value::String(word) => word.clone(),
        moved => format!("from {}", moved["renamed_from"].as_str().unwrap()),
    };
    let number = |of: &str| file[of].as_u64().unwrap_or(0);
    let by = file["by"].as_array().into_iter().flatten().map(|call| call["call"].to_string());
    format!(
        "{} {change} {} +{} -{} by {}{}",
        file["path"].as_str().unwrap(),
        file["content"].as_str().unwrap(),
        number("added"),
        number("removed"),
        by.collect::<Vec<_>>().join(","),
        file.get("modes").map(|modes| format!(" modes {modes}")).unwrap_or_default(),
    )
}

/// Returns the changes of files in the session's log.
fn told(world: &World, session: &str) -> Vec<Value> {
    let log =
        fs::read_to_string(world.own().join("state/sessions").join(session).with_extension("jsonl")).unwrap();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["type"] == "files_changed").map(|event| event["data"].clone()).collect()
}

/// Sends a message, and waits until the turn has reported exactly the `expected` changes in addition to the `known`
/// ones.
fn expect(talk: &mut Talk<'_>, text: &str, known: &mut Vec<String>, expected: &[&str]) {
    talk.say(text);
    known.extend(expected.iter().map(|line| (*line).to_owned()));
    wait_until("the changes are told", || lines(&told(talk.world, &talk.id)).len() >= known.len());
    assert_eq!(lines(&told(talk.world, &talk.id)), *known);
}

fn project(world: &World) {
    for name in ["edited.txt", "moved.txt", "gone.txt"] {
        world.file(name, format!("one {name}\n"));
    }
    world.file("tool.sh", "#!/bin/sh\n");
    world.file(".gitignore", "target\n");
    symlink("edited.txt", world.project().join("relinked")).unwrap();
    world.commit();
}

#[test]
fn what_a_command_changes_is_told_with_the_command() {
    let world = World::new(User::Myself);
    project(&world);
    let server = model_of([shell(EVERY_WAY), done()]);
    let mut talk = Talk::new(&world, &server);
    let expected = [
        "bytes.bin added binary +0 -0 by 1",
        "edited.txt modified text +1 -1 by 1",
        "gen/code.rs added text +1 -0 by 1",
        "gone.txt deleted text +0 -1 by 1",
        "link added link +1 -0 by 1",
        "made.txt added text +1 -0 by 1",
        "relinked modified link +1 -1 by 1",
        "there.txt from moved.txt text +0 -0 by 1",
        "tool.sh modified text +0 -0 by 1 modes [420,493]",
    ];
    expect(&mut talk, "change everything", &mut Vec::new(), &expected);
    let told = told(&world, &talk.id);
    let last = told.last().unwrap();
    assert_eq!(last["ignored"], json!({"count": 1, "first": ["target"]}));
    let diff = &told[0]["files"][1]["diff"];
    assert_eq!(
        (&diff["old_text"], &diff["new_text"]),
        (&json!("one edited.txt\n"), &json!("two edited.txt\n"))
    );
    talk.end();
}

#[test]
fn a_tools_own_change_is_told_once_and_another_hand_is_told_apart() {
    let world = World::new(User::Myself);
    world.file("a", "1\n");
    let server = model_of([
        calls(&[("write_file", json!({"path": "a", "content": "1\n2\n"}))]),
        shell("echo 3 >> a"),
        done(),
        calls(&[("write_file", json!({"path": "script", "content": "x\n"}))]),
        shell("rm script"),
        done(),
        says("Nothing.", "end_turn"),
        shell("true"),
        done(),
    ]);
    let mut talk = Talk::new(&world, &server);
    let mut known = Vec::new();
    expect(&mut talk, "append", &mut known, &["a modified text +1 -0 by 2"]);
    let seen = told(&world, &talk.id);
    assert_eq!(seen[0]["files"][0]["diff"]["old_text"], "1\n2\n");
    expect(&mut talk, "try it", &mut known, &["script deleted text +0 -1 by 4"]);
    expect(&mut talk, "rest", &mut known, &[]);
    world.file("mine", "by a person\n");
    expect(&mut talk, "look again", &mut known, &["mine added text +1 -0 by "]);
    talk.end();
}

#[test]
fn a_session_of_exec_keeps_looks_unless_a_flag_says_otherwise() {
    let world = World::new(User::Myself);
    world.file("a", "1\n");
    let run = |flags: &[&str], command: &str| {
        let server = model_of([shell(command), done()]);
        let mut exec = world.exec(&server, &["--mode", "auto"]);
        Finished::of(exec.args(flags)).expect(0).stdout
    };
    let seen = |stdout: &str| -> Vec<Value> {
        let events = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == "files_changed").map(|event| event["data"].clone()).collect()
    };
    let first = run(&[], "echo 2 > a; echo new > b");
    assert_eq!(lines(&seen(&first)), ["a modified text +1 -1 by 1", "b added text +1 -0 by 1"]);
    let mut rewind = world.bailiwick(["rewind", "--to", "1", "--only", "files", "-C"]);
    let shown = Finished::of(rewind.arg(world.project())).expect(2);
    assert_eq!(shown.stdout, "restore   a\ndelete    b\n", "{}", shown.stderr);

    let server =
        model_of([calls(&[("write_file", json!({"path": "a", "content": "4\n"}))]), shell("rm b"), done()]);
    let mut exec = world.bailiwick([
        "exec",
        "--mode",
        "auto",
        "--output",
        "json",
        "--base-url",
        &server.base_url(),
        "-C",
    ]);
    exec.arg(world.project()).arg("go").env("ANTHROPIC_API_KEY", KEY);
    let object: Value = serde_json::from_str(&Finished::of(&mut exec).expect(0).stdout).unwrap();
    let file =
        |path, change, call| json!({"path": path, "change": change, "by": [{"agent": "1", "call": call}]});
    assert_eq!(object["files_changed"], json!([file("a", "modified", 1), file("b", "deleted", 2)]));

    let unseen = run(&["--no-rewind"], "echo 3 > a");
    assert_eq!(seen(&unseen), Vec::<Value>::new());
    let mut rewind = world.bailiwick(["rewind", "--to", "1", "--only", "files", "-C"]);
    let shown = Finished::of(rewind.arg(world.project())).expect(2);
    assert!(shown.stdout.contains("no copies of files were saved after that message"), "{}", shown.stdout);
}

#[test]
fn where_no_call_could_write_the_preview_says_that_and_nothing_of_exec() {
    let world = World::new(User::Myself);
    world.file("a", "1\n");
    let server = model_of([calls(&[("read_file", json!({"path": "a"}))]), done()]);
    Finished::of(&mut world.exec(&server, &["--mode", "deny"])).expect(0);
    let mut rewind = world.bailiwick(["rewind", "--to", "1", "-C"]);
    let shown = Finished::of(rewind.arg(world.project())).expect(2);
    assert!(shown.stdout.contains("no call after that message could change a file"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("exec"), "{}", shown.stdout);
}
