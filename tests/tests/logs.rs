//! The session log: private, chained, ahead of what it tells of, and out of the agent's reach.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Stdio;

use ipc::event::EventKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use supervisor::session;
use tests::replies::{calls, done, model_of, shell};
use tests::tier::everywhere;
use tests::world::tool_results;
use tests::{Finished, User, World, alive, wait_until};

/// The logs of a world, oldest first.
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
        // The first run leaves a log; the second finds it, and its own.
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
        // The positive twin: unconfined, the same user reads it.
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
        // What was started went with it.
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
