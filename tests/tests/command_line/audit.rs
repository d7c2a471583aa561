//! Tests `bailiwick audit`: it reports the log's facts about agents, and tries out what an agent can do.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ipc::confinement::Tier;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use protocol::event::{EventKind, ObservedBy};
use serde_json::{Value, json};
use supervisor::journal::session::SessionLog;
use tests::replies::{calls, done, model_of, shell};
use tests::tier::{self, everywhere};
use tests::{Finished, User, World, wait_until};

/// Creates a project with git files, a hidden file, and a link to a key in the home.
fn world(user: User, tier: Tier) -> World {
    let world = World::new(user).in_tier(tier);
    world.file("src/a.txt", "a\n");
    world.file("secret/key.txt", "k\n");
    world.file(".git/config", "[core]\n");
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    let ssh = world.home().join(".ssh");
    fs::create_dir(&ssh).unwrap();
    fs::write(ssh.join("id"), "b\n").unwrap();
    world.give(&ssh);
    world.give(&ssh.join("id"));
    symlink("../home/.ssh/id", world.project().join("away")).unwrap();
    world.configure("[rights]\nhide = [\"secret\"]\n");
    world
}

fn probe(world: &World, mode: &str, code: i32) -> Value {
    let mut command = world.bailiwick(["audit", "--probe", "--json", "--mode", mode, "-C"]);
    let run = Finished::of(command.arg(world.project()).args(world.tier_flags())).expect(code);
    serde_json::from_str(&run.stdout).unwrap()
}

fn of<'a>(audit: &'a Value, path: &Path) -> &'a Value {
    let paths = audit["paths"].as_array().unwrap();
    let found = paths.iter().find(|tried| tried["path"] == path.to_str().unwrap());
    found.unwrap_or_else(|| panic!("{} was not tried: {paths:#?}", path.display()))
}

fn outcome(answer: &Value) -> (&str, &str) {
    (answer["verdict"].as_str().unwrap(), answer["tried"]["outcome"].as_str().unwrap_or_default())
}

#[test]
fn what_an_agent_could_do_is_what_is_declared() {
    for (user, tier) in everywhere() {
        let world = world(user, tier);
        let socket = world.root().join("listener.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let before = snapshot(&world.project());
        let audit = probe(&world, "auto", 0);
        assert_eq!(audit["differences"], json!([]), "{user:?} {tier}");
        assert_eq!(outcome(&of(&audit, &world.project().join("src"))["write"]), ("allowed", "done"));
        // In the floor tier an agent can list the names of hidden files. In neither tier can it read their contents.
        for hidden in [world.project().join("secret"), world.home().join(".ssh")] {
            let listed = if tier == Tier::Full { ("denied", "refused") } else { ("depends", "done") };
            assert_eq!(outcome(&of(&audit, &hidden)["read"]), listed, "{tier} {}", hidden.display());
        }
        for secret in [world.project().join("secret/key.txt"), world.home().join(".ssh/id")] {
            assert_eq!(outcome(&of(&audit, &secret)["read"]), ("denied", "refused"), "{tier}");
        }
        // In the floor tier protected files are writable, and changes are undone afterwards.
        let protected = if tier == Tier::Full { "denied" } else { "depends" };
        assert_eq!(
            outcome(&of(&audit, &world.project().join(".git/config"))["write"]).0,
            protected,
            "{tier}"
        );
        let connect = &of(&audit, &socket)["connect"];
        assert_eq!(outcome(connect), ("denied", "refused"), "{connect:#}");
        assert!(listener.accept().is_err(), "nobody came");
        let acts = audit["acts"].as_array().unwrap();
        assert!(acts.len() > 10 && acts.iter().all(|act| act["denied"] == true), "{acts:#?}");
        assert_eq!(snapshot(&world.project()), before, "nothing was changed by trying");
        let denied = probe(&world, "deny", 0);
        assert_eq!(outcome(&of(&denied, &world.project().join("src"))["write"]), ("denied", "refused"));
    }
}

#[test]
fn what_is_other_than_declared_is_marked() {
    // Leaves out the full tier, in which a mask covers the link.
    for tier in tier::all().into_iter().filter(|tier| *tier != Tier::Full) {
        let world = world(User::Myself, tier);
        // A hard link to a hidden file. No rule names the link, and the kernel denies it all the same.
        let link = world.project().join(".a-link");
        fs::hard_link(world.project().join("secret/key.txt"), &link).unwrap();
        let audit = probe(&world, "auto", 1);
        assert_eq!(audit["differences"], json!([format!("narrower: read {}", link.display())]), "{tier}");
    }
}

/// Creates a fifo in the project, on which commands wait for a line.
fn fifo(world: &World) -> PathBuf {
    let go = world.project().join("go");
    mkfifo(&go, Mode::S_IRWXU).unwrap();
    world.give(&go);
    go
}

/// Starts a session with a command that waits for a line in the fifo.
fn running(world: &World) -> (std::process::Child, PathBuf) {
    let go = fifo(world);
    let live = world.own().join("state/live");
    // In the floor tier the session's own agent may see the socket's name, as that of any hidden file, but cannot
    // connect.
    let reach = format!(
        "python3 -c \"import os, socket as s; d = '{}/'; s.socket(s.AF_UNIX).connect(d + os.listdir(d)[0]); print('rea' + 'ched')\"",
        live.display()
    );
    let server = model_of([shell(&format!("{reach}; : > begun; read -r _ < go")), done()]);
    let mut exec = world.exec(&server, &["--mode", "auto"]);
    let child = exec.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the command runs", || world.project().join("begun").exists());
    // The model server runs as long as the session.
    std::mem::forget(server);
    (child, go)
}

#[test]
fn an_agent_that_runs_is_tried_in_the_very_confinement_of_its_worker() {
    for (user, tier) in everywhere() {
        let world = world(user, tier);
        let (child, go) = running(&world);
        let before = world.log();
        // The audited agent is not that of the running session.
        let audit = probe(&world, "deny", 0);
        let [found] = &audit["running"].as_array().unwrap()[..] else { panic!("{audit:#}") };
        assert_eq!(found["session"], before[0]["session"], "{user:?} {tier}");
        let started = before.iter().find(|event| event["type"] == "worker_started").unwrap();
        assert_eq!(found["pid"], started["data"]["pid"]);
        for digest in ["ruleset_digest", "logged_digest"] {
            assert_eq!(found[digest], started["data"]["ruleset_digest"], "{user:?} {tier} {digest}");
        }
        assert_ne!(found["ruleset_digest"], audit["ruleset_digest"]);
        assert_eq!((&found["mode"], &found["differences"]), (&json!("auto"), &json!([])), "{user:?} {tier}");
        assert_eq!(found["rights"], started["data"]["rights"], "{user:?} {tier}");
        assert_eq!(outcome(&of(found, &world.project())["write"]), ("allowed", "done"));
        assert_eq!(outcome(&of(&audit, &world.project())["write"]), ("denied", "refused"));
        // Nothing happened in the session.
        assert_eq!(world.log(), before);
        fs::write(&go, "on\n").unwrap();
        let done = Finished::from(child.wait_with_output().unwrap()).expect(0);
        let told = done.events_of("tool_call_finished")[0]["content"].to_string();
        assert!(told.contains("Error: ") && !told.contains("reached"), "{user:?} {tier}: {told}");
        assert_eq!(probe(&world, "deny", 0)["running"], json!([]), "this agent has ended");
    }
}

#[test]
fn a_sub_agent_that_runs_is_tried_under_rights_of_its_own() {
    for tier in tier::all() {
        let world = world(User::Myself, tier);
        let go = fifo(&world);
        let spawn = calls(&[("spawn_agent", json!({"task": "wait", "access": "write", "write": ["src"]}))]);
        let wait = shell(": > src/begun; read -r _ < go");
        let server = model_of([spawn, wait, done(), done()]);
        let mut exec = world.exec(&server, &["--mode", "auto"]);
        let child = exec.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the command runs", || world.project().join("src/begun").exists());
        let audit = probe(&world, "deny", 0);
        let [top, sub] = &audit["running"].as_array().unwrap()[..] else { panic!("{audit:#}") };
        assert_eq!((&top["agent"], &sub["agent"]), (&json!("1"), &json!("1.1")));
        assert_eq!((&top["mode"], &sub["mode"]), (&json!("auto"), &json!("deny")));
        let spawned = world.log().into_iter().find(|event| event["type"] == "sub_agent_spawned").unwrap();
        let started = world.log().into_iter().rfind(|event| event["type"] == "worker_started").unwrap();
        assert_eq!(started["data"]["rights_digest"], spawned["data"]["rights_digest"], "{tier}");
        assert_eq!(sub["ruleset_digest"], started["data"]["ruleset_digest"], "{tier}");
        let writes = |agent| outcome(&of(agent, &world.project())["write"]);
        assert_eq!((writes(top), writes(sub)), (("allowed", "done"), ("denied", "refused")), "{tier}");
        assert_eq!(outcome(&of(sub, &world.project().join("src"))["write"]), ("allowed", "done"), "{tier}");
        fs::write(&go, "on\n").unwrap();
        Finished::from(child.wait_with_output().unwrap()).expect(0);
    }
}

#[test]
fn a_session_that_cannot_be_asked_is_named_and_one_that_was_killed_is_none() {
    let world = world(User::Myself, tier::all()[0]);
    probe(&world, "auto", 0);
    let live = world.own().join("state/live");
    drop(UnixListener::bind(live.join("killed")).unwrap());
    let other = UnixListener::bind(live.join("other")).unwrap();
    let answering = std::thread::spawn(move || {
        for _ in 0..2 {
            std::io::Write::write_all(&mut other.accept().unwrap().0, &[0xa5; 64]).unwrap();
        }
    });
    let audit = probe(&world, "auto", 1);
    let unasked =
        json!([{"session": "other", "unasked": "the session's process is another version of Bailiwick"}]);
    assert_eq!(audit["running"], unasked);
    let mut command = world.bailiwick(["audit", "--probe", "-C"]);
    let run = Finished::of(command.arg(world.project()).args(world.tier_flags())).expect(1);
    let said =
        "session other runs, but did not answer: the session's process is another version of Bailiwick";
    assert!(run.stdout.lines().any(|printed| printed == said), "{}", run.stdout);
    answering.join().unwrap();
}

/// Returns path, content and time of every file.
fn snapshot(directory: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let (path, meta) = (entry.path(), entry.metadata().unwrap());
        if meta.is_dir() {
            found.extend(snapshot(&path));
        }
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.push((path, content, meta.modified().unwrap()));
    }
    found.sort();
    found
}

#[test]
fn the_digest_is_that_of_the_worker_in_the_log() {
    for tier in tier::all() {
        let world = world(User::Myself, tier);
        let server = model_of([done()]);
        world.run(&server, &["--mode", "auto"]).expect(0);
        let log = world.log();
        let started = log.iter().find(|event| event["type"] == "worker_started").unwrap();
        let digests = [0, 1].map(|_| probe(&world, "auto", 0)["ruleset_digest"].clone());
        assert_eq!(digests[0], digests[1], "two equal starts");
        assert_eq!(digests[0], started["data"]["ruleset_digest"]);
        assert_ne!(digests[0], probe(&world, "deny", 0)["ruleset_digest"]);
    }
}

#[test]
fn a_log_is_added_up_per_agent_and_a_breach_is_found() {
    let world = World::new(User::Myself);
    world.file("a.txt", "a\n");
    let outside = world.outside().join("there.txt").display().to_string();
    let denied = calls(&[("write_file", json!({"path": outside, "content": "x"}))]);
    let server = model_of([denied, shell("true"), shell("false"), done()]);
    world.run(&server, &["--mode", "auto"]).expect(0);
    let sessions = fs::read_dir(world.own().join("state/sessions")).unwrap();
    let log = sessions
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let log = log.unwrap();
    let id = log.file_stem().unwrap().to_str().unwrap().to_owned();
    let audit = |what: &str, code| {
        let run = Finished::of(&mut world.bailiwick(["audit", "--json", what])).expect(code);
        serde_json::from_str::<Value>(&run.stdout).unwrap()
    };
    let account = audit(&id, 0);
    assert_eq!((&account["intact"], &account["faults"]), (&json!(true), &json!([])));
    let agent = &account["agents"][0];
    assert_eq!(agent["calls"]["shell_exec"], json!({"completed": 1, "failed": 1}));
    assert_eq!(agent["denials"].as_array().unwrap().len(), 1, "{agent:#}");
    assert_eq!(agent["workers"][0]["ruleset_digest"].as_str().unwrap().len(), 64);
    let text = Finished::of(world.bailiwick(["audit"]).arg(&log)).expect(0).stdout;
    assert!(text.starts_with("ok: ") && text.contains("calls: shell_exec 2 (1 failed)"), "{text}");
    // A changed word in the middle breaks the chain.
    let whole = fs::read_to_string(&log).unwrap();
    fs::write(&log, whole.replacen("there.txt", "where.txt", 1)).unwrap();
    let breach = audit(&id, 1);
    assert_eq!(breach["intact"], false);
    assert!(
        breach["faults"][0].as_str().unwrap().contains("its digest does not match its content"),
        "{breach:#}"
    );
}

fn log_of(world: &World) -> PathBuf {
    let sessions = fs::read_dir(world.own().join("state/sessions")).unwrap();
    let mut logs = sessions.flatten().map(|entry| entry.path());
    logs.find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap()
}

#[test]
fn each_agent_of_a_session_is_audited_and_all_events_agree() {
    let world = World::new(User::Myself);
    let spawn = |task: &str, access: &str| ("spawn_agent", json!({"task": task, "access": access}));
    let both = calls(&[spawn("<b>look</b>", "read"), spawn("write", "write")]);
    // Whichever sub-agent asks first: each ends with its first `done`.
    let server = model_of([both, shell("true"), shell("true"), done(), done(), done()]);
    world.run(&server, &["--mode", "auto"]).expect(0);
    let page = world.root().join("page.html");
    let audit = |flags: &[&str], code| {
        let mut command = world.bailiwick(["audit"]);
        Finished::of(command.arg(log_of(&world)).args(flags)).expect(code)
    };
    let flags = ["--json", "--html", page.to_str().unwrap()];
    let account: Value = serde_json::from_str(&audit(&flags, 0).stdout).unwrap();
    assert_eq!((&account["intact"], &account["findings"]), (&json!(true), &json!([])), "{account:#}");
    let agents = account["agents"].as_array().unwrap();
    assert_eq!(agents.iter().map(|agent| &agent["agent"]).collect::<Vec<_>>(), ["1", "1.1", "1.2"]);
    for sub in &agents[1..] {
        assert_eq!((&sub["parent"], &sub["status"]), (&json!("1"), &json!("done")), "{sub:#}");
        let [worker] = &sub["workers"].as_array().unwrap()[..] else { panic!("{sub:#}") };
        assert_eq!(worker["rights_digest"], sub["spawned"]["rights_digest"]);
        assert_eq!(worker["ended"], "the run is over");
    }
    assert_eq!(agents[1]["spawned"]["write"], json!([]));
    assert!(agents[2]["spawned"]["write"].as_array().unwrap().contains(&json!(world.project())));
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(html.contains("&lt;b&gt;look&lt;/b&gt;") && !html.contains("<b>"), "{html}");
    let again = audit(&flags, 2);
    assert!(again.stderr.contains("a file of this name exists"), "{}", again.stderr);
    let text = audit(&[], 0).stdout;
    assert!(text.contains("\n  agent 1.1: <b>look</b>\n    done · "), "{text}");
}

#[test]
fn the_first_agents_task_is_named_and_a_file_without_events_is_no_whole_log() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    Finished::of(&mut world.exec(&server, &[])).expect(0);
    let text = Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project())).expect(0).stdout;
    let said = world.log().into_iter().find(|event| event["type"] == "user_message").unwrap();
    let task = format!("\nagent 1: {}\n", said["data"]["text"].as_str().unwrap());
    assert!(text.contains(&task), "{text}");
    for content in ["", "{\"v\":7,", &"x".repeat(100_000)] {
        let file = world.root().join("none.jsonl");
        fs::write(&file, content).unwrap();
        let run = Finished::of(world.bailiwick(["audit"]).arg(&file)).expect(1);
        assert!(run.stdout.starts_with("FAIL: 0 events, the log is NOT intact"), "{}", run.stdout);
        assert!(run.stdout.contains("  the log has no event that can be read\n"), "{}", run.stdout);
    }
}

#[test]
fn a_log_whose_events_do_not_agree_has_an_exit_code_of_its_own() {
    let world = World::new(User::Myself);
    let mut log = SessionLog::create(world.root(), &"made".into()).unwrap();
    let text = "look".to_owned();
    let said = EventKind::UserMessage { text, images: Vec::new() };
    log.append(&"1.1".into(), ObservedBy::Supervisor, said).unwrap();
    let run = Finished::of(world.bailiwick(["audit"]).arg(log.path())).expect(7);
    let finding = "  finding: agent 1.1 has events before its start";
    assert!(run.stdout.lines().any(|line| line == finding), "{}", run.stdout);
    assert!(run.stdout.lines().next().unwrap().ends_with("FAIL: 1 event, the log is intact, 1 FINDING"));
    let help = Finished::of(&mut world.bailiwick(["audit", "--help"])).expect(0).stdout;
    for code in ["0 ", "1 ", "2 ", "5 ", "7 "] {
        assert!(help.split("Exit status:").nth(1).unwrap().contains(code), "{help}");
    }
}

#[test]
fn no_file_of_a_project_passes_for_a_session() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    world.run(&server, &[]).expect(0);
    let log = log_of(&world);
    let name = log.file_stem().unwrap().to_str().unwrap();
    world.file(name, "");
    world.file("other", "");
    let audit = |name: &str, code| {
        let mut command = world.bailiwick(["audit", name]);
        Finished::of(command.current_dir(world.project())).expect(code)
    };
    assert!(audit(name, 0).stdout.contains("the log is intact"));
    let refused = audit("other", 2);
    assert!(
        refused.stderr.ends_with("hint: bailiwick audit ./other reads the file with this name\n"),
        "{refused:?}"
    );
    audit("./other", 1);
}

#[test]
fn without_an_id_the_last_session_of_this_project_is_audited() {
    let world = World::new(User::Myself);
    let other = world.root().join("other");
    fs::create_dir(&other).unwrap();
    let session = |project: &Path| {
        let server = model_of([done()]);
        let mut command =
            world.bailiwick(["exec", "--base-url", &server.base_url(), "--output", "json", "do it"]);
        let run = Finished::of(command.env("ANTHROPIC_API_KEY", "sk-ant-x").current_dir(project)).expect(0);
        run.events()[0]["log"].as_str().unwrap().to_owned()
    };
    let (first, _, last) = (session(&world.project()), session(&world.project()), session(&other));
    let second = session(&world.project());
    let audited = |project: &Path| {
        let run = Finished::of(world.bailiwick(["audit", "--json"]).current_dir(project)).expect(0);
        serde_json::from_str::<Value>(&run.stdout).unwrap()["log"].as_str().unwrap().to_owned()
    };
    assert_eq!((audited(&world.project()), audited(&other)), (second.clone(), last));
    assert_ne!(first, second);
    let run = Finished::of(world.bailiwick(["audit", "-C"]).arg(&other)).expect(0);
    assert!(run.stdout.contains("the log is intact"), "{}", run.stdout);
}

#[test]
fn a_probe_begins_with_its_verdict_and_lists_its_rows_on_request() {
    let world = World::new(User::Myself);
    let probed = |flags: &[&str]| {
        let mut command = world.bailiwick(["audit", "--probe", "-C"]);
        Finished::of(command.arg(world.project()).args(flags)).expect(0).stdout
    };
    let (short, long) = (probed(&[]), probed(&["--verbose"]));
    for text in [&short, &long] {
        assert!(text.starts_with("as declared: "), "{text}");
    }
    assert!(short.lines().count() < 10, "{short}");
    assert!(long.contains("\nread  write\n") && long.lines().count() > 50, "{long}");
}

#[test]
fn what_cannot_be_audited_is_a_usage_error() {
    let world = World::new(User::Myself);
    for (arguments, words) in [
        (&["audit"][..], "no session of the project"),
        (&["audit", "no-such-session"], "no session \"no-such-session\""),
        (&["audit", "--probe", "x"], "cannot be used with"),
        (&["audit", "--probe", "-C", "/"], "cannot be the project"),
    ] {
        let run = Finished::of(&mut world.bailiwick(arguments)).expect(2);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
}
