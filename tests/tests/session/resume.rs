//! Tests sessions that are continued: after an end or a kill, with another model, and in one process at a time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use model::replay::{ReplayServer, sse};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, says, shell};
use tests::{Finished, User, World, wait_until};

fn run(world: &World, server: &ReplayServer, arguments: &[&str]) -> Finished {
    Finished::of(&mut world.exec(server, arguments))
}

fn log_of(world: &World) -> PathBuf {
    let mut logs = fs::read_dir(world.own().join("state/sessions")).unwrap().flatten();
    let log = logs.next().unwrap().path();
    assert!(logs.next().is_none(), "one session");
    log
}

fn messages(server: &ReplayServer, request: usize) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&server.requests()[request].body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

/// Removes the cache markers from a message.
fn plain(message: &Value) -> Value {
    let mut message = message.clone();
    for block in message["content"].as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    message
}

fn audited(world: &World) {
    let audit = Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project())).expect(0);
    assert!(!audit.stdout.contains("finding:"), "{}", audit.stdout);
}

#[test]
fn the_model_is_sent_what_it_was_sent_and_said_before() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\n");
    let first =
        model_of([calls(&[("read_file", json!({"path": "a.txt"}))]), says("It says one.", "end_turn")]);
    run(&world, &first, &[]).expect(0);
    let second = model_of([done()]);
    run(&world, &second, &["--continue"]).expect(0);
    let (before, after) = (messages(&first, 1), messages(&second, 0));
    // All of the last request, byte for byte, then its reply, and the next message.
    assert_eq!(after.len(), before.len() + 2);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(plain(before), plain(after));
    }
    assert!(after[before.len()].to_string().contains("It says one."));
    let last = after.last().unwrap().to_string();
    assert!(last.contains("goes on after a pause") && last.contains("do it"), "{last}");
    log_of(&world);
    let started = world.log().into_iter().filter(|event| event["type"] == "session_started");
    let resumed: Vec<_> = started.map(|event| event["data"]["resumed"] == true).collect();
    assert_eq!(resumed, [false, true]);
    audited(&world);
}

#[test]
fn a_session_is_found_by_its_name_and_stays_with_its_project() {
    let world = World::new(User::Myself);
    run(&world, &model_of([done()]), &[]).expect(0);
    let log = log_of(&world);
    let name = log.file_stem().unwrap().to_str().unwrap().to_owned();
    run(&world, &model_of([done()]), &["--resume", &name[..30]]).expect(0);
    let nobody = model_of([]);
    assert!(run(&world, &nobody, &["--resume", "x"]).expect(2).stderr.contains("no session \"x\""));
    let other = world.root().join("other");
    fs::create_dir(&other).unwrap();
    let mut elsewhere = world.bailiwick(["exec", "--resume", &name, "go on", "-C"]);
    elsewhere.arg(&other).args(["--base-url", &nobody.base_url()]).env("ANTHROPIC_API_KEY", "k");
    let refused = Finished::of(&mut elsewhere).expect(2);
    assert!(refused.stderr.contains("belongs to the project"), "{}", refused.stderr);
    let mut none = world.bailiwick(["exec", "-c", "go on", "-C"]);
    none.arg(&other).args(["--base-url", &nobody.base_url()]).env("ANTHROPIC_API_KEY", "k");
    assert!(Finished::of(&mut none).expect(2).stderr.contains("no session of"));
    let listed = Finished::of(world.bailiwick(["sessions", "--json", "-C"]).arg(world.project())).expect(0);
    let row: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((row["id"].as_str(), row["message"].as_str()), (Some(name.as_str()), Some("do it")));
    let found = |text: &str| {
        let mut list = world.bailiwick(["sessions", "--search", text, "-C"]);
        Finished::of(list.arg(world.project())).expect(0).stdout
    };
    assert!(found("do it").contains(&name) && found("other").is_empty());
}

#[test]
fn a_session_goes_on_where_its_project_was_moved_and_the_model_is_told() {
    for place in ["moved", "a longer way/with blanks", "übersetzt/プロジェクト", ".hidden/-x"] {
        let world = World::new(User::Myself);
        run(&world, &model_of([done()]), &[]).expect(0);
        let log = log_of(&world);
        let name = log.file_stem().unwrap().to_str().unwrap().to_owned();
        let moved = world.root().join(place);
        fs::create_dir_all(moved.parent().unwrap()).unwrap();
        fs::rename(world.project(), &moved).unwrap();
        let server = model_of([done()]);
        let mut elsewhere = world.bailiwick(["exec", "--resume", &name, "go on", "-C"]);
        elsewhere.arg(&moved).args(["--base-url", &server.base_url()]).env("ANTHROPIC_API_KEY", "k");
        let run = Finished::of(&mut elsewhere).expect(0);
        assert!(run.stderr.contains("is no longer at"), "{place}: {}", run.stderr);
        let told = messages(&server, 0);
        let last = told.last().unwrap().to_string();
        assert!(told[0].to_string().contains("do it") && last.contains("was moved from"), "{place}: {last}");
    }
}

#[test]
fn another_model_sees_what_was_said_and_no_thinking() {
    let world = World::new(User::Myself);
    let blocks = [sse::Block::thinking("hm", "signature-1"), sse::Block::text("It says one.")];
    let reply = sse::message(&blocks, "end_turn", sse::Usage::default());
    run(&world, &model_of([reply]), &[]).expect(0);
    let same = model_of([done()]);
    run(&world, &same, &["-c"]).expect(0);
    assert!(messages(&same, 0)[1].to_string().contains("signature-1"));
    let second = model_of([done()]);
    run(&world, &second, &["-c", "--model", "claude-haiku-5-5"]).expect(0);
    let sent = messages(&second, 0);
    assert!(sent[1].to_string().contains("It says one."), "{sent:?}");
    assert!(!sent[1].to_string().contains("signature-1"), "{sent:?}");
    // The reply is again sent without its signature when the session is continued once more.
    let third = model_of([done()]);
    run(&world, &third, &["-c", "--model", "claude-haiku-5-5"]).expect(0);
    assert!(!messages(&third, 0)[1].to_string().contains("signature-1"));
    let fixed = fixed_prompts(&world);
    assert_eq!(fixed.len(), 2, "{fixed:?}");
    assert_eq!(
        (&fixed[1]["data"]["same_as"], &fixed[1]["data"]["new_context"]),
        (&fixed[0]["id"], &json!("model"))
    );
}

/// Returns the system prompt and the tools of a request, without the cache markers.
fn prompt(server: &ReplayServer, request: usize) -> (String, String) {
    let body: Value = serde_json::from_slice(&server.requests()[request].body).unwrap();
    let text = |key: &str| body[key].to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    (text("system"), text("tools"))
}

fn fixed_prompts(world: &World) -> Vec<Value> {
    world.log().into_iter().filter(|event| event["type"] == "prompt_fixed").collect()
}

#[test]
fn a_session_goes_on_with_its_own_prompt_and_tools() {
    let world = World::new(User::Myself);
    let first = model_of([done()]);
    run(&world, &first, &["--profile", "minimal"]).expect(0);
    let second = model_of([done()]);
    let resumed = run(&world, &second, &["-c", "--profile", "full"]).expect(0);
    assert_eq!(prompt(&first, 0), prompt(&second, 0));
    assert!(!resumed.stdout.contains("new context"), "{}", resumed.stdout);
    let fixed = fixed_prompts(&world);
    assert_eq!(fixed.len(), 1, "{fixed:?}");
    assert!(
        prompt(&second, 0).0.contains(fixed[0]["data"]["system"].as_str().unwrap().lines().next().unwrap())
    );
    assert_eq!(fixed[0]["data"]["tools"][0]["name"], "shell_exec");
    let shown = |more: &[&str]| {
        let mut show = world.bailiwick(["show", "-C"]);
        Finished::of(show.arg(world.project()).args(more)).expect(0).stdout
    };
    assert!(!shown(&[]).contains("system prompt"));
    assert!(shown(&["--full"]).contains("system prompt and 1 tools"));
    audited(&world);
}

#[test]
fn a_session_whose_tool_is_gone_goes_on_in_a_new_context() {
    let world = World::new(User::Myself);
    let blocks = [sse::Block::thinking("hm", "signature-1"), sse::Block::text("It says one.")];
    run(&world, &model_of([sse::message(&blocks, "end_turn", sse::Usage::default())]), &[]).expect(0);
    let (second, third) = (model_of([done()]), model_of([done()]));
    let resumed = run(&world, &second, &["-c", "--profile", "minimal"]).expect(0);
    assert!(resumed.stdout.contains("in a new context"), "{}", resumed.stdout);
    run(&world, &third, &["-c"]).expect(0);
    assert_eq!(prompt(&second, 0), prompt(&third, 0));
    for server in [&second, &third] {
        let sent = messages(server, 0)[1].to_string();
        assert!(sent.contains("It says one.") && !sent.contains("signature-1"), "{sent}");
    }
    let fixed = fixed_prompts(&world);
    let causes: Vec<_> = fixed.iter().map(|event| event["data"]["new_context"]["tool"].is_string()).collect();
    assert_eq!(causes, [false, true]);
    audited(&world);
}

#[test]
fn access_that_is_gone_or_new_since_the_last_run_is_told_in_one_line() {
    let world = World::new(User::Myself);
    let place = world.root().join("data");
    fs::create_dir(&place).unwrap();
    let place = place.to_str().unwrap();
    let go_on = |flags: &[&str]| {
        let resumed = run(&world, &model_of([done()]), flags).expect(0);
        let told =
            resumed.stdout.lines().filter(|line| line.contains("access that has changed since the last run"));
        told.map(|line| world.stable(line)).collect::<Vec<_>>()
    };
    assert_eq!(go_on(&["--mode", "auto", "--write", place, "--net", "on"]), Vec::<String>::new());
    assert_eq!(go_on(&["-c", "--mode", "auto", "--write", place, "--net", "on"]), Vec::<String>::new());
    let [told] = &go_on(&["-c"])[..] else { unreachable!("one line") };
    let gone = [
        "[world]/data is no longer writable",
        "the network is off now",
        "the mode is deny now, and was auto before",
    ];
    assert!(gone.iter().all(|gone| told.contains(gone)), "{told}");
    let [told] = &go_on(&["-c", "--write", place])[..] else { unreachable!("one line") };
    assert!(told.contains("[world]/data is writable now") && !told.contains("network"), "{told}");
    audited(&world);
}

#[test]
fn what_a_kill_cut_off_is_told_and_never_run_again() {
    let world = World::new(User::Myself);
    let server = model_of([shell("echo once >> ran; sleep 600"), done()]);
    let mut child = world.exec(&server, &["--mode", "auto"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the command runs", || {
        fs::read(world.project().join("ran")).is_ok_and(|text| text == b"once\n")
    });
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    // The kernel may have taken half a line.
    let log = log_of(&world);
    OpenOptions::new().append(true).open(&log).unwrap().write_all(b"{\"id\":99,\"par").unwrap();
    let audit = Finished::of(&mut world.bailiwick(["audit", log.to_str().unwrap()])).expect(0);
    assert!(
        audit.stdout.contains("the log is intact except for its last line, which was cut off"),
        "{}",
        audit.stdout
    );
    let second = model_of([done()]);
    let resumed = run(&world, &second, &["--mode", "auto", "-c"]).expect(0);
    assert!(resumed.stdout.contains("an incomplete last line was removed"), "{}", resumed.stdout);
    let sent = messages(&second, 0);
    let result = sent.iter().find(|message| message.to_string().contains("tool_result")).unwrap().to_string();
    assert!(
        result.contains("the call may have done all or a part of its work")
            && result.contains("\"is_error\":true"),
        "{result}"
    );
    assert_eq!(world.read("ran"), "once\n");
    audited(&world);
}

/// Name of the temporary file of a write that a kill interrupted.
const TEMPORARY: &str = ".bw-0123456789abcdef.tmp";

/// Cuts the log after the first event of this type, as a kill at that moment would.
fn ends_behind(world: &World, kind: &str) {
    let log = log_of(world);
    let text = fs::read_to_string(&log).unwrap();
    let lines = text.lines().position(|line| line.contains(&format!(r#""type":"{kind}""#))).unwrap() + 1;
    fs::write(&log, text.split_inclusive('\n').take(lines).collect::<String>()).unwrap();
}

#[test]
fn the_temporary_file_of_a_write_that_was_cut_off_goes() {
    for (cut_off, mode) in [(true, "auto"), (true, "deny"), (false, "auto")] {
        let world = World::new(User::Myself);
        let write = calls(&[("write_file", json!({"path": "new/b.txt", "content": "two\n"}))]);
        run(&world, &model_of([write, done()]), &["--mode", "auto"]).expect(0);
        if cut_off {
            ends_behind(&world, "tool_call_started");
        }
        world.file(&format!("new/{TEMPORARY}"), "tw");
        world.file(TEMPORARY, "of another write");
        run(&world, &model_of([done()]), &["--mode", mode, "--continue"]).expect(0);
        let is_there = world.project().join("new").join(TEMPORARY).exists();
        assert_eq!(is_there, !cut_off || mode != "auto", "{cut_off} {mode}");
        assert!(world.project().join(TEMPORARY).exists(), "nothing was to be written here");
        audited(&world);
    }
}

#[test]
fn of_a_change_that_was_cut_off_the_model_is_told_whether_it_was_carried_out() {
    let write = || calls(&[("write_file", json!({"path": "a.txt", "content": "two\n"}))]);
    let edit = |from: &str, to: &str| {
        calls(&[("edit_file", json!({"path": "a.txt", "old_string": from, "new_string": to}))])
    };
    for (call, found, told) in [
        (write(), "two\n", "but the change was made"),
        (write(), "one\n", "the change was not made, or the file has changed since"),
        (edit("one", "two"), "a\none\n", "and the change was not made: the file is as this call found it"),
        (edit("one", "two"), "a\ntwo\n", "but the change was made"),
        (edit("one", "two"), "a\nthree\n", "or the file has changed since"),
        (edit("one", "two"), "one two\n", "the call may have done all or a part of its work"),
        (edit("one", ""), "a\n", "the call may have done all or a part of its work"),
    ] {
        let world = World::new(User::Myself);
        world.file("a.txt", "a\none\n");
        run(
            &world,
            &model_of([calls(&[("read_file", json!({"path": "a.txt"}))]), call, done()]),
            &["--mode", "auto"],
        )
        .expect(0);
        let log = log_of(&world);
        let text = fs::read_to_string(&log).unwrap();
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let last = lines.iter().rposition(|line| line.contains(r#""type":"tool_call_started""#)).unwrap();
        fs::write(&log, lines[..=last].concat()).unwrap();
        world.file("a.txt", found);
        let second = model_of([done()]);
        run(&world, &second, &["--mode", "deny", "--continue"]).expect(0);
        let sent = messages(&second, 0).last().unwrap().to_string();
        assert!(
            sent.contains("the session ended before this call did") && sent.contains(told),
            "{found:?}: {sent}"
        );
        assert_eq!(world.read("a.txt"), found);
        audited(&world);
    }
}

#[test]
fn a_directory_that_became_a_link_leads_no_removal_outside() {
    let world = World::new(User::Myself);
    let write = calls(&[("write_file", json!({"path": "new/b.txt", "content": "two\n"}))]);
    run(&world, &model_of([write, done()]), &["--mode", "auto"]).expect(0);
    ends_behind(&world, "tool_call_started");
    let outside = world.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join(TEMPORARY), "somebody's").unwrap();
    fs::remove_dir_all(world.project().join("new")).unwrap();
    std::os::unix::fs::symlink(&outside, world.project().join("new")).unwrap();
    run(&world, &model_of([done()]), &["--mode", "auto", "--continue"]).expect(0);
    assert!(outside.join(TEMPORARY).exists());
    // With the right to write there it goes: so far the link does lead.
    ends_behind(&world, "tool_call_started");
    let allowed = ["--mode", "auto", "--write", outside.to_str().unwrap(), "--continue"];
    run(&world, &model_of([done()]), &allowed).expect(0);
    assert!(!outside.join(TEMPORARY).exists());
}

#[test]
fn a_killed_sub_agent_is_accounted_for() {
    let world = World::new(User::Myself);
    let server = model_of([
        calls(&[("spawn_agent", json!({"task": "x", "access": "write"}))]),
        shell("echo once >> ran; sleep 600"),
    ]);
    let mut child = world.exec(&server, &["--mode", "auto"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the command runs", || world.project().join("ran").exists());
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    let second = model_of([calls(&[("spawn_agent", json!({"task": "y"}))]), done(), done()]);
    run(&world, &second, &["--mode", "auto", "-c"]).expect(0);
    let log = world.log();
    let ended = log.iter().filter(|event| event["type"] == "sub_agent_result");
    let ended: Vec<_> =
        ended.map(|event| (event["data"]["agent"].clone(), event["data"]["status"].clone())).collect();
    assert_eq!(ended, [(json!("1.1"), json!("interrupted")), (json!("1.2"), json!("done"))]);
    audited(&world);
}

#[test]
fn a_session_that_is_open_names_who_has_it_and_a_broken_log_names_its_line() {
    let world = World::new(User::Myself);
    let server = model_of([shell("touch began; sleep 600"), done()]);
    let mut child = world.exec(&server, &["--mode", "auto"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the command runs", || world.project().join("began").exists());
    let nobody = model_of([]);
    let refused = run(&world, &nobody, &["-c"]).expect(2);
    let holder = format!("is open in another process ({}) [session-open]", child.id());
    assert!(refused.stderr.contains(&holder), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("hint: end the session there, or continue in a copy with --fork"),
        "{}",
        refused.stderr
    );
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
    let log = log_of(&world);
    let whole = fs::read_to_string(&log).unwrap();
    fs::write(&log, whole.replacen("do it", "do-it", 1)).unwrap();
    let refused = run(&world, &nobody, &["-c"]).expect(2);
    assert!(refused.stderr.contains("its digest does not match its content"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: bailiwick audit"), "{}", refused.stderr);
    assert!(nobody.requests().is_empty());
}

#[test]
fn no_right_of_an_earlier_run_is_taken_over() {
    let world = World::new(User::Myself);
    let outside = world.root().join("outside");
    fs::create_dir(&outside).unwrap();
    let wide = ["--mode", "auto", "--net", "on", "--write", outside.to_str().unwrap()];
    run(&world, &model_of([done()]), &wide).expect(0);
    let touch = format!("touch {}/x; touch y", outside.display());
    let server = model_of([shell(&touch), done()]);
    run(&world, &server, &["-c", "--denied", "ok"]).expect(0);
    let told = messages(&server, 0).last().unwrap().to_string();
    assert!(told.contains("approval mode: deny") && told.contains("network off"), "{told}");
    assert!(!outside.join("x").exists() && !world.project().join("y").exists());
    audited(&world);
}

#[test]
fn the_last_session_is_the_one_that_was_written_to_last() {
    let world = World::new(User::Myself);
    run(&world, &model_of([done()]), &[]).expect(0);
    let first = log_of(&world);
    let name = first.file_stem().unwrap().to_str().unwrap().to_owned();
    run(&world, &model_of([done()]), &[]).expect(0);
    run(&world, &model_of([done()]), &["--resume", &name]).expect(0);
    let server = model_of([done()]);
    run(&world, &server, &["-c"]).expect(0);
    let asked = messages(&server, 0).iter().filter(|message| message["role"] == "user").count();
    assert_eq!(asked, 3, "the first session, in its third run");
    let listed = Finished::of(world.bailiwick(["sessions", "--json", "-C"]).arg(world.project())).expect(0);
    assert!(listed.stdout.lines().last().unwrap().contains(&name), "{}", listed.stdout);
}
