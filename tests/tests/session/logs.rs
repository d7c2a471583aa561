//! Tests the session log: private, chained by digests, written before the reported actions, and beyond the agent's
//! reach.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::event::EventKind;
use serde_json::json;
use supervisor::journal::session;
use tests::replies::{calls, done, model_of, shell};
use tests::tier::everywhere;
use tests::world::tool_results;
use tests::{Finished, User, World, alive, wait_until};

/// Returns the paths of a world's logs, oldest first.
fn logs(world: &World) -> Vec<PathBuf> {
    let Ok(directory) = fs::read_dir(world.own().join("state/sessions")) else { return vec![] };
    let mut logs: Vec<_> = directory.map(|entry| entry.unwrap().path()).collect();
    logs.sort();
    logs
}

fn log(world: &World) -> PathBuf {
    let [log] = logs(world).try_into().expect("one log");
    log
}

#[test]
fn a_log_is_private_whole_and_what_the_stream_showed() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let server = model_of([shell("echo hello"), done()]);
        let run = world.run(&server, &["--mode", "auto"]).expect(0);
        let log = log(&world);
        let meta = fs::metadata(&log).unwrap();
        assert_eq!((meta.mode() & 0o777, meta.uid()), (0o600, user.uid()));
        for directory in log.ancestors().skip(1).take(2) {
            assert_eq!(fs::metadata(directory).unwrap().mode() & 0o077, 0, "{}", directory.display());
        }
        let loaded = session::load(&log).unwrap();
        assert!(loaded.faults.is_empty(), "{:?}", loaded.faults);
        // The stream is the log without its chain.
        let lines = fs::read_to_string(&log).unwrap();
        let mut logged: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for event in &mut logged {
            let mut take =
                |name| event.as_object_mut().unwrap().remove(name).unwrap().as_str().unwrap().len();
            assert_eq!((take("prev"), take("sum")), (64, 16));
        }
        assert_eq!(logged, run.events());
        let session = run.events()[0]["session"].as_str().unwrap().to_owned();
        assert!(log.file_name().unwrap().to_str().unwrap().contains(&session), "{}", log.display());
    }
}

#[test]
fn a_change_of_a_log_is_found() {
    let world = World::new(User::Myself);
    world.run(&model_of([shell("echo hello"), done()]), &[]).expect(0);
    let log = log(&world);
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("echo hello"));
    fs::write(&log, text.replacen("echo hello", "echo other", 1)).unwrap();
    let loaded = session::load(&log).unwrap();
    assert!(!loaded.is_intact() && !loaded.faults.is_empty());
}

#[test]
fn no_command_and_no_tool_reads_or_changes_a_log() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let state = world.own().join("state/sessions");
        // The first run leaves a log. The second attacks that log and its own.
        world.run(&model_of([done()]), &[]).expect(0);
        let old = log(&world);
        let before = fs::read(&old).unwrap();
        let path = old.to_str().unwrap();
        let attack = |line: &str| ("shell_exec", json!({"command": line.replace("LOG", path)}));
        let asked = [
            ("search_files", json!({"pattern": "session_started", "path": state})),
            attack("cat LOG"),
            attack("echo x >> LOG"),
            attack("rm -f LOG"),
            attack("mv LOG stolen"),
            attack("ln LOG stolen && cat stolen"),
            attack("ln -s LOG link && cat link"),
            attack("truncate -s 0 LOG"),
            attack("cp $(dirname LOG)/* ."),
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
        ];
        let server = model_of([calls(&asked), done()]);
        let run = world.run(&server, &["--mode", "auto"]).expect(4);
        let results = tool_results(&server, 1);
        for (asked, result) in asked.iter().zip(&results) {
            assert!(!result["content"].to_string().contains("session_started"), "{asked:?}: {result}");
        }
        assert!(results[1..].iter().all(|result| result["is_error"] == true), "{results:?}");
        assert_eq!(fs::read(&old).unwrap(), before);
        assert!(logs(&world).iter().all(|log| session::load(log).unwrap().is_intact()));
        // No flag opens it: no grant is named.
        assert!(run.events_of("denied").iter().all(|denied| denied.get("grant").is_none()), "{}", run.stdout);
        // Control: without a sandbox, the same user can read the log.
        assert_eq!(Finished::of(world.command("cat").arg(path)).stdout.as_bytes(), before);
    }
}

#[test]
fn a_call_is_in_the_log_before_its_effect() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let server = model_of([shell("echo > began; exec sleep 1000"), done()]);
        let mut command = world.exec(&server, &["--mode", "auto"]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("the command runs", || world.project().join("began").exists());
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        let loaded = session::load(&log(&world)).unwrap();
        assert!(loaded.is_intact(), "{:?}", loaded.faults);
        let last = loaded.tree.events().last().unwrap();
        let EventKind::ToolCallStarted { name, input, .. } = &last.kind else { panic!("{last:?}") };
        assert!(name == "shell_exec" && input.get().contains("began"), "{input}");
        // All processes that the run started have ended.
        let started = loaded.tree.events().find_map(|event| match &event.kind {
            EventKind::WorkerStarted(worker) => Some(worker.pid),
            _ => None,
        });
        wait_until("the worker is gone", || !alive(started.unwrap()));
        // The next start removes what a killed run left in the temp directory of the system.
        let temps = world.temps();
        assert!(!temps.is_empty() && temps.iter().all(|temp| temp.is_dir()), "{temps:?}");
        world.run(&model_of([done()]), &[]).expect(0);
        assert!(temps.iter().all(|temp| !temp.exists()), "{temps:?}");
    }
}

#[test]
fn a_log_that_cannot_be_made_ends_the_run_before_anything_happens() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    // A file where the directory of logs should be.
    fs::create_dir_all(world.own().join("state")).unwrap();
    fs::write(world.own().join("state/sessions"), "").unwrap();
    let run = world.run(&server, &[]).expect(2);
    assert_eq!(server.connections(), 0);
    insta::assert_snapshot!(world.stable(run.stderr.trim_end()), @"bailiwick: cannot make [world]/own/state/sessions: File exists (os error 17); set BAILIWICK_HOME to a directory that you can write");
}

#[test]
fn a_directory_of_logs_that_others_could_read_is_closed_to_them() {
    let world = World::new(User::Myself);
    let directory = world.own().join("state/sessions");
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    world.run(&model_of([done()]), &[]).expect(0);
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn token_usage_is_logged_with_each_reply_and_summed_in_the_result() {
    let world = World::new(User::Myself);
    let run = world.run(&model_of([shell("true"), shell("true"), done()]), &[]).expect(0);
    let replies = run.events_of("assistant_message");
    let output: u64 = replies.iter().map(|reply| reply["usage"]["output"].as_u64().unwrap()).sum();
    assert_eq!((replies.len(), output), (3, 60));
    assert_eq!(run.result()["usage"]["output"], 60);
    assert_eq!(run.result()["usage"]["input"], 300);
}

/// Replaces the world's log by one of an earlier schema version, with a valid chain.
fn earlier(world: &World, version: u32) -> PathBuf {
    let name = format!("01930000-0000-7000-8000-00000000000{version}");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fixtures/logs/v{version}.jsonl"));
    let text = fs::read_to_string(fixture).unwrap();
    let text = text.replace("[session]", &name).replace("[project]", world.project().to_str().unwrap());
    let (mut log, mut prev) = (String::new(), "0".repeat(64));
    for line in text.lines() {
        let line = format!("{},\"prev\":\"{prev}\"}}", line.strip_suffix('}').unwrap());
        prev = digest(&line);
        log += &line;
        log.push('\n');
    }
    let path = world.own().join("state/sessions").join(name).with_extension("jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, log).unwrap();
    path
}

fn digest(line: &str) -> String {
    let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    sum.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap()[..64].to_owned()
}

#[test]
fn a_log_of_every_earlier_version_is_shown_and_goes_on() {
    assert_eq!(
        (protocol::event::OLDEST_SCHEMA, protocol::event::SCHEMA),
        (3, 7),
        "a version without a log in fixtures/logs"
    );
    for version in protocol::event::OLDEST_SCHEMA..=protocol::event::SCHEMA {
        let world = World::new(User::Myself);
        let log = earlier(&world, version);
        let before = fs::read(&log).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = world.bailiwick(arguments);
            Finished::of(command.arg("-C").arg(world.project())).expect(0).stdout
        };
        let words =
            [format!("the question of version {version}"), format!("the answer of version {version}")];
        let shown = run(&["show"]);
        assert!(
            words.iter().all(|words| shown.contains(words)) && shown.contains("touch: Permission denied"),
            "{shown}"
        );
        assert!(run(&["audit"]).contains("the log is intact, its events are consistent"), "{version}");
        let row: serde_json::Value = serde_json::from_str(&run(&["sessions", "--json"])).unwrap();
        assert_eq!((&row["message"], &row["tokens"]), (&json!(words[0]), &json!(30)), "{version}");
        let server = model_of([done()]);
        Finished::of(&mut world.exec(&server, &["-c", "--model", "claude-opus-4-5"])).expect(0);
        let sent = String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
        assert!(words.iter().all(|words| sent.contains(words)), "{version}: {sent}");
        assert!(
            sent.contains("signature-1") && sent.contains("touch: Permission denied"),
            "{version}: {sent}"
        );
        assert_eq!(sent.contains("image/png"), version >= 4, "{version}");
        assert!(fs::read(&log).unwrap().starts_with(&before), "what stands there stays as it is");
        assert_eq!(session::load(&log).unwrap().faults, [], "{version}");
        run(&["audit"]);
    }
}

#[test]
fn a_log_of_a_version_that_is_not_read_any_more_is_named_as_such() {
    for version in 1..protocol::event::OLDEST_SCHEMA {
        let world = World::new(User::Myself);
        let log = earlier(&world, version);
        let before = fs::read(&log).unwrap();
        let name = log.file_stem().unwrap().to_str().unwrap();
        let nobody = model_of([]);
        let refused = Finished::of(&mut world.exec(&nobody, &["--resume", name])).expect(2);
        let said = format!("event of schema version {version}, expected 3 to 7");
        assert!(refused.stderr.contains(&said), "{}", refused.stderr);
        let shown = Finished::of(&mut world.bailiwick(["show", name]));
        assert!(shown.code != 0 && (shown.stdout + &shown.stderr).contains(&said));
        assert_eq!(fs::read(&log).unwrap(), before);
    }
}

#[test]
fn a_line_of_100_mb_is_named_by_everything_that_reads_a_log() {
    let world = World::new(User::Myself);
    world.run(&model_of([shell("echo hello"), done()]), &[]).expect(0);
    let log = log(&world);
    let mut file = fs::File::options().append(true).open(&log).unwrap();
    let line = [br#"{"v":7,"id":999,"x":""#.to_vec(), vec![b'x'; 100_000_000], b"\"}\n".to_vec()].concat();
    file.write_all(&line).unwrap();
    let run = |arguments: &[&str]| Finished::of(world.bailiwick(arguments).current_dir(world.project()));
    let name = log.file_stem().unwrap().to_str().unwrap();
    let fault = "has 100000023 bytes, more than any line of a log";
    let shown = run(&["show", name]).expect(1);
    assert!(shown.stdout.contains(fault) && shown.stdout.contains("echo hello"), "{}", shown.stdout);
    let audited = run(&["audit", name]).expect(1);
    assert!(audited.stdout.contains(fault), "{}", audited.stdout);
    let listed = run(&["sessions"]).expect(0);
    assert!(listed.stdout.contains(name) && listed.stdout.contains("MiB"), "{}", listed.stdout);
    let exported = run(&["export", name]).expect(2);
    assert!(exported.stderr.contains(fault), "{}", exported.stderr);
    let server = model_of([done()]);
    let resumed = world.run(&server, &["-c"]).expect(2);
    assert!(
        resumed.stderr.contains(fault) && resumed.stderr.contains("bailiwick audit"),
        "{}",
        resumed.stderr
    );
    assert!(server.requests().is_empty());
    // A file that is no archive is rejected, however long its lines are.
    let imported = run(&["import", log.to_str().unwrap()]).expect(2);
    assert!(imported.stderr.contains("the file is not an export of Bailiwick"), "{}", imported.stderr);
}
