//! Tests the output of `exec`, for people and for programs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use model::replay::{ReplayServer, Reply, sse};
use serde_json::{Value, json};
use tests::replies::{done, model_of, says, serve, shell};
use tests::tier;
use tests::{Finished, User, World, wait_until};

fn world() -> World {
    let world = World::new(User::Myself);
    world.file("a.txt", "a\n");
    world
}

fn run(world: &World, server: &ReplayServer, arguments: &[&str]) -> Finished {
    Finished::of(&mut world.task(&server.base_url(), arguments)).expect(0)
}

/// Runs a command whose standard input is a pipe that stays open and silent.
fn with_open_stdin(command: &mut Command) -> Finished {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let held = child.stdin.take();
    let done = Finished::from(child.wait_with_output().unwrap());
    drop(held);
    done
}

#[test]
fn text_is_the_models_words_and_nothing_else_on_stdout() {
    let world = world();
    let server = model_of([shell("echo from the command; echo and its error >&2"), done()]);
    let run = run(&world, &server, &["do it"]);
    assert_eq!(run.stdout, "Done.\n");
    let account = run.stderr.lines().last().unwrap();
    let account = account.rsplit_once(" · ").unwrap().0;
    assert_eq!(account, "done · 2 steps · 200 in, 0% cached, 40 out, $0.0016");
    let called = run.stderr.lines().find(|line| line.starts_with('→')).unwrap();
    assert_eq!(called, "→ run echo from the command; echo and its error >&2");
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_one_that_nobody_reads_is_none() {
    let world = world();
    for output in ["text", "json", "stream-json"] {
        let run = |stdout: Stdio| {
            let server = model_of([shell("true"), done()]);
            let mut exec = world.task(&server.base_url(), ["do it", "--output", output]);
            Finished::from(exec.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).output().unwrap())
        };
        let full = run(File::options().write(true).open("/dev/full").unwrap().into());
        let said = "bailiwick: cannot write to standard output: No space left on device (os error 28)\n";
        assert!(full.code == 1 && full.stderr.ends_with(said), "{output}: {} {}", full.code, full.stderr);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let gone = run(writer.into());
        assert!(gone.code == 0 && !gone.stderr.contains("output"), "{output}: {}", gone.stderr);
        for run in [full, gone].iter().filter(|_| output == "text") {
            assert!(run.stderr.contains("done · 2 steps"), "its notes go on: {}", run.stderr);
        }
    }
}

#[test]
fn text_tells_of_each_call_how_it_ended() {
    let world = world();
    let read = |path: &str| ("read_file", json!({"path": path}));
    let failing = ("shell_exec", json!({"command": "echo no such luck; false"}));
    let server = model_of([tests::replies::calls(&[read("a.txt"), read("none.txt"), failing]), done()]);
    let run = run(&world, &server, &["do it"]);
    let without_time = |line: &str| {
        line.split(' ').filter(|word| word.parse::<u64>().is_err()).collect::<Vec<_>>().join(" ")
    };
    let mut ends: Vec<_> =
        run.stderr.lines().filter(|line| line.starts_with("  ")).map(without_time).collect();
    ends.sort();
    // The end of a long line depends on how long the call took.
    let ends: Vec<_> = ends.iter().map(|line| line.split("; `").next().unwrap_or_default()).collect();
    insta::assert_snapshot!(world.stable(&ends.join("\n")), @r"
    ✓ read a.txt after ms
    ✗ read none.txt failed after ms: `[world]/project/none.txt` does not exist
    ✗ run echo no such luck; false failed after ms: no such luck
    ");
}

#[test]
fn text_names_calls_as_people_do_and_hostile_names_are_escaped() {
    let world = world();
    let edit = ("edit_file", json!({"path": "a.txt", "old_string": "a\n", "new_string": "b\nc\n"}));
    let write = ("write_file", json!({"path": "x\u{1b}]0;t\u{7}\u{202e}\n✓ y", "content": "1\n"}));
    let long = ("shell_exec", json!({"command": format!("true {}", "x".repeat(500))}));
    let server = model_of([tests::replies::calls(&[edit, write, long]), done()]);
    let run = run(&world, &server, &["--mode", "auto", "do it"]);
    let begun: Vec<_> = run.stderr.lines().filter_map(|line| line.strip_prefix("→ ")).collect();
    assert_eq!(begun[..2], ["edit a.txt +2 -1", r"write x\u{1b}]0;t\u{7}\u{202e}\u{a}✓ y (1 line)"]);
    assert_eq!((begun.len(), begun[2].chars().count()), (3, 158));
    assert!(!run.stderr.contains('\u{1b}') && !run.stderr.contains("\"path\""), "{}", run.stderr);
}

#[test]
fn an_edit_that_nobody_approves_is_told_with_the_numbers_of_its_lines() {
    let world = world();
    world.file("list.txt", (1..=9_000).fold(String::new(), |text, n| text + "line " + &n.to_string() + "\n"));
    let edit =
        ("edit_file", json!({"path": "list.txt", "old_string": "line 700\n", "new_string": "seven\n"}));
    let over = ("write_file", json!({"path": "a.txt", "content": "A\n"}));
    let server = model_of([tests::replies::calls(&[edit, over]), done()]);
    let run = run(&world, &server, &["--mode", "auto", "--output", "stream-json", "do it"]);
    let ends = run.events_of("tool_call_finished").into_iter();
    let diffs: Vec<_> = ends.map(|mut end| end["diffs"][0].take()).collect();
    let lines = |changed| {
        let around = ["line 697\nline 698\nline 699\n", "line 701\nline 702\nline 703\n"];
        [around[0], changed, around[1]].concat()
    };
    let place = |name: &str| world.project().join(name).to_str().map(str::to_owned);
    assert_eq!(
        diffs,
        [
            json!({
                "path": place("list.txt"), "first_line": 697,
                "old_text": lines("line 700\n"), "new_text": lines("seven\n"),
            }),
            json!({"path": place("a.txt"), "first_line": 1, "old_text": "a\n", "new_text": "A\n"}),
        ]
    );
}

#[test]
fn a_run_that_may_write_nothing_says_so_at_once_and_how_to_change_it() {
    let world = world();
    let said = |flags: &[&str]| {
        let server = model_of([done()]);
        let run = run(&world, &server, &[flags, &["do it"]].concat());
        run.stderr.lines().filter(|line| line.contains("read-only (--mode deny")).count()
    };
    assert_eq!([said(&[]), said(&["--output", "json"]), said(&["--mode", "auto"])], [1, 1, 0]);
    let server = model_of([done()]);
    let run = run(&world, &server, &["do it"]);
    let second = run.stderr.lines().nth(1).unwrap();
    assert_eq!(
        second,
        "note: the project is read-only (--mode deny, the default); --mode auto lets the agent change it"
    );
}

/// Runs a denied write and a change of two files, and returns the JSON summary.
fn summary(world: &World, arguments: &[&str]) -> Value {
    let replies =
        [shell("echo b > a.txt; echo c > \"c d.txt\"; touch /etc/probe"), says("All döne.", "end_turn")];
    let server = model_of(replies);
    let run = run(world, &server, &[arguments, &["--output", "json", "do it"]].concat());
    let [object] = run.events().try_into().unwrap();
    object
}

#[test]
fn json_answers_the_first_questions_of_a_script_at_the_top() {
    let world = world();
    let object = summary(&world, &["--mode", "auto", "--denied", "ok"]);
    assert_eq!(object["answer"], "All döne.");
    let by = json!([{"agent": "1", "call": 1}]);
    let changed = json!([
        {"path": "a.txt", "change": "modified", "by": by}, {"path": "c d.txt", "change": "added", "by": by},
    ]);
    assert_eq!(object["files_changed"], changed);
    let [denial] = object["denials"].as_array().unwrap().as_slice() else { panic!("{object}") };
    assert_eq!((&denial["call"], &denial["operation"]), (&json!(1), &json!("write")));
    assert_eq!(
        (&denial["object"], &denial["grant"]),
        (&json!({"path": "/etc/probe"}), &json!("--write /etc"))
    );
    assert_eq!(object["cost"], 0.0016);
    let log = object["log"].as_str().unwrap();
    assert!(std::fs::read_to_string(log).unwrap().contains("All döne."), "{log}");
    // A model without a price, and a run without changes.
    let plain = summary(&world, &["--model", "nobody-knows", "--denied", "ok"]);
    assert_eq!((&plain["cost"], &plain["files_changed"]), (&json!(null), &json!([])));
}

#[test]
fn json_with_a_patch_lists_what_the_patch_has() {
    let world = world();
    let patch = world.root().join("fix.diff");
    let object = summary(&world, &["--mode", "auto", "--denied", "ok", "--patch", patch.to_str().unwrap()]);
    assert_eq!(object["files_changed"].as_array().unwrap().len(), 2);
    assert!(std::fs::read_to_string(patch).unwrap().contains("c d.txt"));
}

/// Returns the texts of a reply in a stream with deltas, and all events of that run.
fn deltas(world: &World, reply: Reply, arguments: &[&str]) -> (Vec<String>, Vec<Value>) {
    let server = serve([reply]);
    let run = run(world, &server, &[arguments, &["--output", "stream-json", "do it"]].concat());
    let (pieces, events): (Vec<_>, Vec<_>) =
        run.events().into_iter().partition(|event| event["type"] == "text_delta");
    for piece in &pieces {
        assert_eq!(
            (&piece["v"], &piece["session"]),
            (&json!(protocol::event::SCHEMA), &events[0]["session"])
        );
        assert_eq!(piece.get("id"), None);
    }
    (pieces.iter().map(|piece| piece["data"]["text"].as_str().unwrap().to_owned()).collect(), events)
}

#[test]
fn a_stream_has_the_pieces_of_a_reply_where_they_are_asked_for() {
    let world = world();
    let text = "Größe 漢字 👩\u{200d}👩\u{200d}👧: fine.\n\u{1b}[2J";
    // One byte at a time: no piece may end within a character.
    let reply = || Reply::sse(says(text, "end_turn")).chunked(1);
    let (none, _) = deltas(&world, reply(), &[]);
    assert_eq!(none, [""; 0]);
    let (pieces, events) = deltas(&world, reply(), &["--deltas"]);
    assert!(pieces.len() > 3, "{pieces:?}");
    assert_eq!(pieces.concat(), text);
    assert_eq!(events.last().unwrap()["data"]["text"], text);
    assert_eq!(events.iter().filter(|event| event["type"] == "assistant_message").count(), 1);
}

#[test]
fn deltas_are_for_a_stream() {
    let world = world();
    let run = Finished::of(&mut world.task("http://127.0.0.1:9", ["--deltas", "do it"])).expect(2);
    assert!(run.stderr.ends_with("hint: use --output stream-json --deltas\n"), "{}", run.stderr);
}

#[test]
fn json_is_one_object_the_result() {
    let world = world();
    let server = model_of([shell("true"), done()]);
    let run = run(&world, &server, &["--output", "json", "do it"]);
    let [result] = run.events().try_into().unwrap();
    let result: Value = result;
    assert_eq!(result["type"], "result");
    let data = &result["data"];
    assert_eq!(
        (&data["exit_code"], &data["reason"], &data["text"]),
        (&json!(0), &json!("done"), &json!("Done."))
    );
    assert_eq!(data["usage"]["output"], 40);
}

#[test]
fn stream_json_is_every_event_in_order_and_the_result_is_the_last() {
    let world = world();
    world.file("AGENTS.md", "Be kind.\n");
    let server = model_of([shell("echo hello"), done()]);
    let run = run(&world, &server, &["--output", "stream-json", "do it"]);
    assert_eq!(run.stderr, "");
    let events = run.events();
    let line = |event: &Value| {
        let data = &event["data"];
        let what = ["source", "text", "step", "name", "status", "stop_reason", "reason"];
        let what = what.iter().find_map(|key| data.get(key)).unwrap_or(&Value::Null).to_string();
        let parent = &event["parent"];
        let what = what.split("\\n").next().unwrap_or_default();
        format!(
            "{} {parent} {} {} {what}",
            event["id"],
            event["observed_by"].as_str().unwrap(),
            event["type"].as_str().unwrap()
        )
    };
    insta::assert_snapshot!(events.iter().map(line).collect::<Vec<_>>().join("\n"), @r#"
    1 null supervisor session_started null
    2 1 supervisor prompt_fixed null
    3 2 supervisor worker_started null
    4 3 supervisor context_added "environment"
    5 4 supervisor context_added "AGENTS.md"
    6 5 supervisor user_message "do it"
    7 6 supervisor model_requested 1
    8 7 supervisor assistant_message "tool_use"
    9 8 supervisor tool_call_started "shell_exec"
    10 9 worker tool_call_finished "completed"
    11 10 supervisor model_requested 2
    12 11 supervisor assistant_message "end_turn"
    13 12 supervisor worker_ended {"type":"run_over"}
    14 13 supervisor result "Done."
    "#);
    let session = events[0]["session"].clone();
    for event in &events {
        assert_eq!(
            (&event["v"], &event["session"], &event["agent"]),
            (&json!(protocol::event::SCHEMA), &session, &json!("1"))
        );
        assert!(event["time_ms"].as_u64().unwrap() > 1_700_000_000_000, "{event}");
    }
    assert_eq!(run.result()["exit_code"], 0);
}

#[test]
fn events_come_as_they_happen() {
    let world = world();
    let wait = world.project().join("go");
    let server = model_of([shell("until [ -e go ]; do read -t 0.01 < <(:) || true; done"), done()]);
    let mut command = world.exec(&server, &[]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    // The command cannot end before this line was read.
    assert!(lines.any(|line| line.contains(r#""type":"tool_call_started""#)));
    std::fs::write(wait, "").unwrap();
    assert!(lines.last().unwrap().contains(r#""type":"result""#));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_task_that_was_given_never_waits_for_standard_input() {
    let world = world();
    let server = model_of([done()]);
    let run = with_open_stdin(&mut world.task(&server.base_url(), ["do it"])).expect(0);
    assert_eq!(run.stdout, "Done.\n");
}

#[test]
fn a_dash_reads_the_task_from_standard_input() {
    let world = world();
    let server = model_of([done()]);
    let mut command = world.task(&server.base_url(), ["-"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all("fix the\nfirst bug\n".as_bytes()).unwrap();
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    let content = body["messages"][0]["content"].as_array().unwrap().clone();
    assert_eq!(content.last().unwrap()["text"], "fix the\nfirst bug\n");
}

#[test]
fn a_task_that_is_not_utf_8_is_refused() {
    let world = world();
    let mut command = world.task("http://127.0.0.1:9", ["-"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"\xff\xfe").unwrap();
    let run = Finished::from(child.wait_with_output().unwrap()).expect(2);
    assert!(
        run.stderr.contains("cannot use standard input as the task: byte 0 is not UTF-8"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_reader_that_leaves_does_not_end_the_run() {
    for output in ["text", "json", "stream-json"] {
        let world = world();
        let server = model_of([shell("echo x > made.txt"), says(&"many words ".repeat(2_000), "end_turn")]);
        let mut command = world.task(&server.base_url(), ["--mode", "auto", "--output", output, "do it"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        if output == "stream-json" {
            stdout.read_line(&mut String::new()).unwrap();
        }
        drop(stdout);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{output}");
        assert_eq!(world.read("made.txt"), "x\n");
    }
}

#[test]
fn a_person_who_leaves_does_not_end_the_run() {
    let world = world();
    let server = model_of([shell("echo x > made.txt"), done()]);
    let mut command = world.task(&server.base_url(), ["--mode", "auto", "do it"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    drop(child.stderr.take());
    let run = Finished::from(child.wait_with_output().unwrap()).expect(0);
    // Without standard error, standard output is still complete.
    assert_eq!((run.stdout.as_str(), world.read("made.txt").as_str()), ("Done.\n", "x\n"));
}

#[test]
fn hostile_text_is_harmless_on_a_terminal() {
    let world = world();
    let escape = "\x1b]0;owned\x07\x1b[2J\u{202e}\u{9b}31m";
    world.file("a\x1b[2Jb", "");
    let server = model_of([
        shell(&format!("printf '{escape}' > /etc/'{escape}'")),
        tests::replies::calls(&[("read_file", json!({"path": escape})), ("no\x1b[2Jtool", json!({}))]),
        says(escape, "end_turn"),
    ]);
    let mut command = world.task(&server.base_url(), ["--mode", "auto", escape]);
    let run = Finished::of(&mut command);
    for text in [&run.stdout, &run.stderr] {
        let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{text:?}");
    }
    assert!(run.stdout.contains("\\u{1b}]0;owned\\u{7}"), "{}", run.stdout);
}

#[test]
fn no_color_is_written_to_what_is_no_terminal() {
    let world = world();
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR_FORCE", "0")] {
        let mut help = world.bailiwick(["exec", "--help"]);
        let mut usage = world.bailiwick(["exec", "--yolo"]);
        for command in [&mut help, &mut usage] {
            let said = Finished::of(command.env(name, value));
            assert!(!said.stdout.contains('\x1b') && !said.stderr.contains('\x1b'), "{said:?}");
        }
    }
}

#[test]
fn no_terminal_is_needed_or_taken() {
    for tier in tier::all() {
        let world = world().in_tier(tier);
        let server = model_of([shell("tty; cat < /dev/tty"), done()]);
        // Without a controlling terminal of our own, as in CI.
        let mut command = world.command("setsid");
        let task = world.task(&server.base_url(), ["--output", "stream-json", "do it"]);
        command.arg(task.get_program()).args(task.get_args()).env("ANTHROPIC_API_KEY", tests::world::KEY);
        let run = Finished::of(&mut command).expect(0);
        let said = run.events_of("tool_call_finished")[0]["content"].to_string();
        assert!(said.contains("not a tty") && said.contains("/dev/tty"), "{said}");
    }
}

#[test]
fn two_runs_in_one_project_do_not_meet() {
    for tier in tier::all() {
        let world = world().in_tier(tier);
        let first =
            model_of([shell("touch one; until [ -e two ]; do read -t 0.01 < <(:) || true; done"), done()]);
        let mut command = world.exec(&first, &["--mode", "auto"]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the first runs", || world.project().join("one").exists());
        let second = model_of([shell("touch two"), done()]);
        let other = world.run(&second, &["--mode", "auto"]).expect(0);
        let run = Finished::from(child.wait_with_output().unwrap()).expect(0);
        assert_ne!(run.events()[0]["session"], other.events()[0]["session"]);
    }
}

/// Tests output to a full pipe that nobody reads. The time limit ends the run, and a signal ends the program.
#[test]
fn a_reader_that_stops_reading_stops_neither_time_nor_signals() {
    let world = World::new(User::Myself);
    let long = sse::message(&[sse::Block::text("word ".repeat(60_000))], "end_turn", sse::Usage::default());
    let server = model_of([long]);
    let mut child = world
        .exec(&server, &[])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let logs = world.own().join("state/sessions");
    wait_until("the run is over in the log", || {
        let files = std::fs::read_dir(&logs).into_iter().flatten().flatten();
        files
            .filter_map(|file| std::fs::read_to_string(file.path()).ok())
            .any(|log| log.contains("\"type\":\"result\""))
    });
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    wait_until("the process is gone", || child.try_wait().unwrap().is_some());
}
