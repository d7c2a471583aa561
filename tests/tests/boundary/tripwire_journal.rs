//! Tests two sessions in one project, and a killed one: files that one of them planted are never taken for the
//! person's, and the person's changes stay.
//!
//! CI plays fifty rounds of kills. `BAILIWICK_KILLS` sets another number, as `just soak` does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ipc::confinement::Tier;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::random::Random;
use tests::replies::model;
use tests::repository::{is_marked, repository, shell};
use tests::served::Served;
use tests::{Finished, User, World, marked, tier, wait_until};

/// Command that plants files that the host executes later: a hook, a missing settings file, and a repository in the
/// project.
const PLANT: &str = "cp evil.sh .git/hooks/pre-commit 2>/dev/null; cp evil.sh .envrc; git init -q sub; \
    git -C sub config core.fsmonitor \"$PWD/evil.sh\"; ";

/// Later commands of a person in a project.
const PERSON: &str =
    "git status; git commit -q --allow-empty -m later; [ ! -d sub ] || git -C sub status; true";

fn sandbox(world: &World, tier: Tier, flags: &[&str], command: &str) -> Command {
    let mut sandbox = world.sandbox(tier, flags, "bash");
    sandbox.args(["-c", command]);
    sandbox
}

fn start(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> Finished {
    child.wait_with_output().unwrap().into()
}

/// Starts a command that plants files and keeps running, and waits until the files are there.
fn planted(world: &World, tier: Tier, flags: &[&str]) -> Child {
    let stays = format!("{PLANT} touch planted; while [ ! -e go ]; do sleep 0.02; done");
    let child = start(sandbox(world, tier, flags, &stays));
    wait_until("the command has planted", || world.project().join("planted").exists());
    child
}

fn all() -> impl Iterator<Item = (User, Tier)> {
    User::all().into_iter().flat_map(|user| tier::all().into_iter().map(move |tier| (user, tier)))
}

fn nobody_planted(world: &World, what: &str) {
    let seen = shell(world, PERSON);
    assert!(!is_marked(world), "{what}: {}", seen.stderr);
    for name in [".envrc", ".git/hooks/pre-commit"] {
        assert!(!world.project().join(name).exists(), "{what}: {name}");
    }
}

#[test]
fn a_session_that_starts_meanwhile_puts_back_nothing_that_another_one_planted() {
    for (user, tier) in all() {
        // Control: with a recorded state of its own, the other session would restore the planted files.
        for is_control in [true, false] {
            let world = repository(user);
            let one = planted(&world, tier, &[]);
            let mut other = sandbox(
                &world,
                tier,
                &["--allow-degraded"],
                "touch joined; while [ ! -e done ]; do sleep 0.02; done",
            );
            if is_control {
                other.env("BAILIWICK_HOME", world.home().join("another"));
            }
            let other = start(other);
            wait_until("the other one runs", || world.project().join("joined").exists());
            world.file("go", "");
            let one = end(one);
            assert!(one.stderr.contains("changed and restored: .envrc"), "{}", one.stderr);
            world.file("done", "");
            let other = end(other);
            if is_control {
                assert!(
                    world.project().join(".envrc").exists(),
                    "the control does nothing: {}",
                    other.stderr
                );
                assert!(other.stderr.contains("could be taken for yours"), "{}", other.stderr);
            } else {
                nobody_planted(&world, &format!("{user:?}, {tier:?}: {}\n{}", one.stderr, other.stderr));
            }
        }
    }
}

#[test]
fn a_project_that_another_state_directory_writes_is_refused() {
    for (user, tier) in all() {
        let world = repository(user);
        let one = planted(&world, tier, &[]);
        let mut other = sandbox(&world, tier, &[], "touch ran");
        other.env("BAILIWICK_HOME", world.home().join("another"));
        let refused = Finished::of(&mut other);
        assert_eq!(refused.code, 5, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("hint: end that session first, or use --allow-degraded"),
            "{}",
            refused.stderr
        );
        assert!(!world.project().join("ran").exists());
        // A session that only reads records no state, so it can start.
        let mut reads = sandbox(&world, tier, &["--access", "read"], "cat kept.txt");
        reads.env("BAILIWICK_HOME", world.home().join("another"));
        assert_eq!(Finished::of(&mut reads).code, 0);
        world.file("go", "");
        end(one);
    }
}

#[test]
fn what_a_killed_command_left_is_decided_by_a_person() {
    for (user, tier) in all() {
        for word in ["mine", "restore"] {
            let world = repository(user);
            let mut killed = planted(&world, tier, &[]);
            killed.kill().unwrap();
            killed.wait().unwrap();
            wait_until("nothing of it lives", || marked(world.mark().as_bytes()).is_empty());
            let refused = Finished::of(&mut sandbox(&world, tier, &[], "touch ran"));
            let what = format!("{user:?}, {tier:?}, {word}: {}", refused.stderr);
            assert_eq!(refused.code, 5, "{what}");
            assert!(
                refused.stderr.contains(".envrc (created)") && refused.stderr.contains("--baseline mine"),
                "{what}"
            );
            assert!(!world.project().join("ran").exists(), "{what}");
            let run = Finished::of(&mut sandbox(&world, tier, &["--baseline", word], "touch ran"));
            assert_eq!(run.code, 0, "{what}\n{}", run.stderr);
            assert_eq!(world.project().join(".envrc").exists(), word == "mine", "{what}\n{}", run.stderr);
            if word == "restore" {
                nobody_planted(&world, &what);
            }
            // After the person's decision, a start without `--baseline` succeeds.
            assert_eq!(Finished::of(&mut sandbox(&world, tier, &[], "true")).code, 0);
        }
    }
}

/// Tests every signal whose default action ends a program.
#[test]
fn no_signal_that_ends_a_run_leaves_what_it_planted() {
    let real_time = [libc::SIGRTMIN(), libc::SIGRTMAX()];
    let named = [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGALRM,
        Signal::SIGVTALRM,
        Signal::SIGPROF,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGIO,
        Signal::SIGPWR,
        Signal::SIGSTKFLT,
        Signal::SIGXCPU,
    ];
    let numbers: Vec<_> = named.map(|signal| signal as i32).into_iter().chain(real_time).collect();
    let user = User::Myself;
    for number in numbers {
        let world = repository(user);
        let mut child = planted(&world, tier::all()[0], &[]);
        // SAFETY: an integer, and the process of a child that was not waited for.
        assert_eq!(unsafe { libc::kill(child.id().cast_signed(), number) }, 0);
        assert_eq!(child.wait().unwrap().code(), Some(128 + number), "sandbox, {number}");
        nobody_planted(&world, &format!("sandbox, {number}"));

        let world = repository(user);
        let stays = format!("{PLANT} touch planted; sleep 60");
        let server = model(&[("shell_exec", json!({"command": stays}))]);
        let mut exec = world.exec(&server, &["--mode", "auto"]);
        let mut child =
            exec.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the command has planted", || world.project().join("planted").exists());
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(child.id().cast_signed(), number) }, 0);
        let code = match number {
            libc::SIGINT | libc::SIGHUP => 128 + number,
            _ => 128 + libc::SIGTERM,
        };
        assert_eq!(child.wait().unwrap().code(), Some(code), "exec, {number}");
        nobody_planted(&world, &format!("exec, {number}"));
    }
}

/// Tests a repository that becomes writable while a session runs.
#[test]
fn a_repository_that_becomes_writable_is_watched() {
    for (user, tier) in all() {
        for is_control in [true, false] {
            let world = repository(user).in_tier(tier);
            let other = world.home().join("other");
            shell(
                &world,
                &format!("git init -q {0}; git -C {0} config user.name t; cp evil.sh {0}", other.display()),
            );
            let plant = format!(
                "cd {} && cp evil.sh .git/hooks/pre-commit 2>/dev/null; cp evil.sh .envrc; git config core.fsmonitor \"$PWD/evil.sh\"; true",
                other.display()
            );
            if is_control {
                shell(&world, &plant);
            } else {
                let server = model(&[("shell_exec", json!({"command": plant}))]);
                let mut client = Served::greeted(&world);
                let options = json!({
                    "cwd": world.project(), "base_url": server.base_url(), "mode": "auto", "tier": tier::choice(tier),
                });
                let id = client.call("newConversation", options)["conversation_id"].clone();
                let grant = json!({"conversation_id": id, "right": {"write": other}});
                client.line(
                    &json!({"jsonrpc": "2.0", "id": "g", "method": "grant", "params": grant}).to_string(),
                );
                client.until("event/rightsChanged");
                client.call("sendUserMessage", json!({"conversation_id": id, "text": "do it"}));
                client.until("event/turnFinished");
                client.end();
            }
            shell(&world, &format!("cd {}; git status; git commit -q --allow-empty -m x", other.display()));
            assert_eq!(is_marked(&world), is_control, "{user:?}, {tier:?}");
            assert_eq!(other.join(".envrc").exists(), is_control, "{user:?}, {tier:?}");
        }
    }
}

fn rounds() -> u64 {
    std::env::var("BAILIWICK_KILLS").map_or(50, |number| number.parse().unwrap())
}

/// Kills one or both sessions at a random moment while a command plants files.
#[test]
fn no_kill_makes_a_planted_file_the_persons_or_loses_one_of_theirs() {
    let now = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos());
    let seed = std::env::var("KILLS_SEED").ok().map_or_else(now, |seed| seed.parse().unwrap());
    eprintln!("KILLS_SEED={seed}");
    let mut random = Random::new(seed);
    let world = repository(User::Myself);
    let (mut refused, mut asked) = (0, 0);
    for round in 0..rounds() {
        let tier = tier::all()[usize::try_from(round).unwrap() % tier::all().len()];
        // The person works while nothing runs.
        let own = format!("# {round}\n");
        world.file(".envrc", &own);
        let hook = format!("#!/bin/sh\n# {round}\n");
        world.file(".git/hooks/post-merge", &hook);
        let plant = "cp evil.sh .git/hooks/post-merge 2>/dev/null; cp evil.sh .envrc; cp evil.sh .mcp.json; \
            git init -q sub; git -C sub config core.fsmonitor \"$PWD/evil.sh\"; sleep 0.05";
        let mut sessions = [0, 1].map(|_| {
            thread::sleep(Duration::from_micros(random.below(60_000)));
            start(sandbox(&world, tier, &[], plant))
        });
        // A fixed time and no event, since the test must hold for any moment.
        thread::sleep(Duration::from_micros(random.below(120_000)));
        let both = random.below(2) == 0;
        for session in sessions.iter_mut().take(if both { 2 } else { 1 }) {
            let _ = kill(Pid::from_raw(session.id().cast_signed()), Signal::SIGKILL);
        }
        let told: Vec<_> = sessions.map(|session| end(session).stderr).into();
        wait_until("nothing of them lives", || marked(world.mark().as_bytes()).is_empty());
        let next = Finished::of(&mut sandbox(&world, tier, &[], "true"));
        let is_own = || world.read(".envrc") == own && world.read(".git/hooks/post-merge") == hook;
        if next.code == 5 {
            refused += 1;
            assert!(next.stderr.contains("--baseline"), "round {round}: {}", next.stderr);
            let next = Finished::of(&mut sandbox(&world, tier, &["--baseline", "restore"], "true"));
            assert_eq!(next.code, 0, "round {round}: {}", next.stderr);
        } else {
            assert_eq!(next.code, 0, "round {round}: {}", next.stderr);
            asked += 1;
        }
        let what = format!("round {round}, {tier:?}, both {both}: {told:?}\n{}", next.stderr);
        assert!(is_own(), "{what}");
        assert!(!world.project().join(".mcp.json").exists(), "{what}");
        let fsmonitor = shell(&world, "[ ! -d sub ] || git -C sub config core.fsmonitor");
        assert_eq!(fsmonitor.stdout, "", "{what}");
        let _ = fs::remove_dir_all(world.project().join("sub"));
        assert!(no_journal(&world), "{what}");
    }
    eprintln!("{refused} starts were refused, {asked} were not");
}

fn no_journal(world: &World) -> bool {
    let place = world.own().join("state/baselines");
    !Path::exists(&place) || fs::read_dir(place).unwrap().next().is_none()
}
