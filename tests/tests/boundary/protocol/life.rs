//! Tests that no process, file or log entry is left behind, however a process ends.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use ipc::confinement::Tier;
use model::replay::ReplayServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::replies::model;
use tests::side_by_side::side_by_side;
use tests::world::tool_results;
use tests::{Finished, Programs, User, World, alive, marked, tier, wait_until};

/// Command that resists its end: it leaves a daemon in another process session, without parent and descriptors, and
/// ignores every signal that can be ignored.
const STUBBORN: &str = "trap '' TERM HUP INT QUIT
    (setsid bash -c 'exec <&- >&- 2>&-; trap \"\" TERM HUP INT QUIT; echo $$ > daemon; while :; do sleep 9; done' &)
    until [ -s daemon ]; do :; done
    echo $$ > command
    while :; do sleep 9; done";

fn everywhere() -> Vec<(Tier, User)> {
    tier::all().into_iter().flat_map(|tier| User::all().into_iter().map(move |user| (tier, user))).collect()
}

fn start(world: &World, tier: Tier, server: &ReplayServer, more: &[&str]) -> Child {
    let mut command = world.exec(server, &[&["--mode", "auto"], tier::flags(tier), more].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> Finished {
    child.wait_with_output().unwrap().into()
}

fn worker_of(world: &World) -> u32 {
    let started = world.log().into_iter().find(|event| event["type"] == "worker_started").unwrap();
    u32::try_from(started["data"]["pid"].as_u64().unwrap()).unwrap()
}

fn parent_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

fn slay(pid: u32) {
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
}

/// Kills a process while a command that resists its end runs. `victim` returns that process for the worker's pid. The
/// run must continue with the next worker.
fn kill_during_a_call(tier: Tier, user: User, victim: fn(u32) -> u32) {
    let world = World::new(user);
    let server = model(&[
        ("shell_exec", json!({"command": STUBBORN})),
        ("shell_exec", json!({"command": "echo on we go"})),
    ]);
    let child = start(&world, tier, &server, &[]);
    let (command, daemon) = (world.pid_in("command"), world.pid_in("daemon"));
    slay(victim(worker_of(&world)));
    let done = end(child);
    assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
    let lost = &tool_results(&server, 1)[0];
    assert_eq!(lost["is_error"], Value::Bool(true), "{lost}");
    assert!(lost["content"].to_string().contains("worker"), "{lost}");
    let next = tool_results(&server, 2)[0]["content"].to_string();
    assert!(next.contains("on we go"), "{next}");
    let generations: Vec<_> =
        done.events_of("worker_started").iter().map(|started| started["generation"].clone()).collect();
    assert_eq!(generations, [1, 2]);
    assert!(done.events_of("worker_ended")[0]["generation"] == 1);
    assert!(!alive(command) && !alive(daemon), "{command} {daemon}");
}

#[test]
fn a_killed_worker_is_replaced_and_its_call_is_lost() {
    for (tier, user) in everywhere() {
        kill_during_a_call(tier, user, |worker| worker);
    }
}

#[test]
fn a_killed_broker_takes_its_worker_along_and_is_replaced() {
    for (tier, user) in everywhere() {
        kill_during_a_call(tier, user, parent_of);
    }
}

/// Kills the stub: in the full tier, the parent of the broker, outside of the broker's pid namespace.
#[test]
fn a_killed_stub_takes_its_worker_along_and_is_replaced() {
    for (tier, user) in everywhere().into_iter().filter(|(tier, _)| *tier == Tier::Full) {
        kill_during_a_call(tier, user, |worker| parent_of(parent_of(worker)));
    }
}

/// Kills the supervisor at moments between its first instruction and the middle of a call: during starts, during the
/// first snapshot, and while daemons run.
#[test]
fn a_killed_supervisor_leaves_no_process_no_litter_and_a_log_that_parses() {
    // `just soak` kills at all moments, CI at every third.
    let step = if tests::soaks() { 1 } else { 3 };
    let moments = || (0..33).step_by(step);
    let cases = everywhere().into_iter().flat_map(|place| moments().map(move |moment| (place, moment)));
    side_by_side(cases, |((tier, user), moment)| {
        let world = World::new(user);
        world.file("kept.txt", "kept\n");
        world.file(".gitignore", "ignored\n");
        world.commit();
        let server = model(&[
            ("shell_exec", json!({"command": "touch $TMPDIR/x; echo 1"})),
            ("shell_exec", json!({"command": STUBBORN})),
        ]);
        let patch = world.own().join("out.diff");
        let child = start(&world, tier, &server, &["--patch", patch.to_str().unwrap()]);
        // Every other moment counts from the time at which the stubborn command and its daemon run.
        if moment % 2 == 1 {
            world.pid_in("command");
        }
        // A fixed time and no event, since the test must hold for any moment.
        std::thread::sleep(Duration::from_millis(moment * 8));
        slay(child.id());
        end(child);
        let mark = world.mark();
        wait_until(&format!("everything of {tier} {user:?}, moment {moment} is gone"), || {
            marked(mark.as_bytes()).is_empty()
        });
        check_what_is_left(&world, tier);
    });
}

fn check_what_is_left(world: &World, tier: Tier) {
    world.log();
    let status = Finished::of(
        world.command("git").args(["status", "--porcelain", "--ignored"]).current_dir(world.project()),
    );
    let by_commands = |line: &&str| ["?? daemon", "?? command"].contains(line);
    let litter: Vec<_> = status.stdout.lines().filter(|line| !by_commands(line)).collect();
    assert!(litter.is_empty() && status.code == 0, "{litter:?} {}", status.stderr);
    let locks = world.own().join("state/temps");
    let temps: Vec<_> = fs::read_dir(&locks)
        .into_iter()
        .flatten()
        .map(|lock| PathBuf::from(fs::read_to_string(lock.unwrap().path()).unwrap()))
        .collect();
    let next = Finished::of(&mut world.sandbox(tier, &[], "true"));
    assert_eq!(next.code, 0, "{}", next.stderr);
    assert!(temps.iter().all(|temp| !temp.is_dir()), "{temps:?}");
    assert_eq!(fs::read_dir(&locks).unwrap().count(), 0);
}

#[test]
fn a_daemon_ends_with_its_call() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let leave = STUBBORN.replace("echo $$ > command\n    while :; do sleep 9; done", "exit 0");
        assert!(leave.ends_with("exit 0"));
        let server = model(&[
            ("shell_exec", json!({"command": leave})),
            ("shell_exec", json!({"command": "[ -d /proc/$(cat daemon) ] && echo alive || echo gone"})),
        ]);
        let done = end(start(&world, tier, &server, &[]));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let said = tool_results(&server, 2)[0]["content"].to_string();
        assert!(said.contains("gone"), "{said}");
        // The sandbox-exec that waits for the next start ends once the supervisor has.
        wait_until("everything is gone", || marked(world.mark().as_bytes()).is_empty());
        // Control: without a sandbox, the same daemon survives.
        fs::remove_file(world.project().join("daemon")).unwrap();
        Finished::of(
            world.command("bash").args(["-c", &leave]).current_dir(world.project()).stdout(Stdio::null()),
        );
        let daemon = world.pid_in("daemon");
        assert!(alive(daemon));
        slay(daemon);
    }
}

/// Tests a command that forks faster than its processes can be listed. All of them end with the command's time limit.
#[test]
fn what_keeps_forking_ends_with_its_time() {
    for tier in tier::all() {
        end_a_bomb(tier);
    }
}

fn end_a_bomb(tier: Tier) {
    let world = World::new(User::Myself);
    let bomb = "trap '' TERM HUP; for i in {1..40}; do (setsid sleep 99 &); done
        echo started > started; flee() { (flee &); }; flee; while :; do sleep 9; done";
    let server = model(&[("shell_exec", json!({"command": bomb, "timeout_s": 3}))]);
    let done = end(start(&world, tier, &server, &[]));
    assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
    assert_eq!(world.read("started"), "started\n");
    let said = tool_results(&server, 1)[0].to_string();
    assert!(said.contains("the command ran longer than allowed"), "{said}");
    wait_until("everything is gone", || marked(world.mark().as_bytes()).is_empty());
}

/// Actions that affect another process.
const HOLDS: [&str; 21] = [
    "kill $pid 9",
    "kill $pid 15",
    "kill $pid 19",
    "tgkill $pid 9",
    "pidfd-signal $pid 9",
    "sigqueue $pid 9",
    "ptrace-attach $pid",
    "ptrace-seize $pid",
    "proc $pid environ",
    "proc $pid maps",
    "proc-mem $pid 4096",
    "vm-read $pid 4096",
    "pidfd-getfd $pid 0",
    "proc-links $pid ns/net",
    "proc-links $pid root",
    "proc-links $pid cwd",
    "proc-links $pid exe",
    "prlimit $pid",
    NEEDS_ROOT,
    "open-to-write /proc/$pid/mem",
    "open-to-write /proc/$pid/oom_score_adj",
];
/// The action of [`HOLDS`] that the kernel permits only to root.
const NEEDS_ROOT: &str = "proc $pid stack";

/// Tests actions against the processes above a command: its reaper, worker and broker, and the supervisor, which is
/// invisible in the full tier.
#[test]
fn a_command_has_no_hold_on_what_is_above_it() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        let probe = Programs::get().path("probe").display().to_string();
        let above = match tier {
            Tier::Full => "reaper worker broker",
            Tier::Floor | Tier::FloorUnmediated => "reaper worker broker supervisor",
        };
        let acts = HOLDS.join(" -- ");
        let script = format!(
            "pid=$PPID; for name in {above}; do echo $name $pid >> above
            {probe} {acts} >> tried
            pid=$(sed -n 's/^PPid:\\t//p' /proc/$pid/status); done"
        );
        let server = model(&[("shell_exec", json!({"command": script}))]);
        let done = end(start(&world, tier, &server, &[]));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let above = world.read("above");
        let worker = done.events_of("worker_started")[0]["pid"].as_u64().unwrap();
        match tier {
            // The broker is the first process of the namespace, and no process above it is visible.
            Tier::Full => assert!(above.ends_with("broker 1\n"), "{above}"),
            Tier::Floor | Tier::FloorUnmediated => {
                assert!(above.contains(&format!("worker {worker}\n")), "{above}");
            }
        }
        let tried = world.read("tried");
        assert_eq!(tried.lines().count(), above.lines().count() * HOLDS.len(), "{tried}");
        let got_through: Vec<_> = tried.lines().filter(|line| !is_refused(line)).collect();
        assert!(got_through.is_empty(), "{tier} {user:?} {above}{}", got_through.join("\n"));
        assert_eq!(done.events_of("worker_started").len(), 1, "{}", done.stdout);
    }
}

/// Control: each action succeeds without a sandbox against another process of the same user.
#[test]
fn the_same_acts_have_a_hold_on_an_ordinary_process() {
    for user in User::all() {
        let world = World::new(user);
        let probe = Programs::get().path("probe").display().to_string();
        for act in HOLDS.into_iter().filter(|act| user != User::Plain || *act != NEEDS_ROOT) {
            let mut victim = world.command("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
            let mut attacker = world.command("bash");
            attacker.args(["-c", &format!("{probe} {act}")]).env("pid", victim.id().to_string());
            let done = Finished::of(&mut attacker).expect(0);
            // Acts that end the victim have done so before it is killed here.
            victim.kill().unwrap();
            let ended = victim.wait().unwrap();
            assert!(!is_refused(&done.stdout), "{user:?} {act}: {}", done.stdout);
            if act.contains(" 15") {
                assert_eq!(ended.signal(), Some(nix::libc::SIGTERM), "{user:?} {act}");
            }
        }
    }
}

fn is_refused(line: &str) -> bool {
    let tried: Value = serde_json::from_str(line).unwrap();
    [nix::libc::EPERM, nix::libc::EACCES, nix::libc::EROFS].iter().any(|errno| tried["errno"] == *errno)
}

/// Tests hidden files that are renamed. Since rules apply to names and each worker gets new rules, the files must stay
/// hidden from the next worker and from those that compute the change set.
#[test]
fn what_is_hidden_stays_so_when_it_is_renamed_and_the_worker_replaced() {
    for (tier, user) in everywhere() {
        let world = World::new(user);
        world.file("secret/key.txt", "CANARY directory\n");
        world.file(".env", "CANARY file\n");
        world.file("linked.env", "CANARY linked\n");
        let server = model(&[
            ("shell_exec", json!({"command": "mv secret plain; mv .env env; ln linked.env twin; ls"})),
            ("shell_exec", json!({"command": STUBBORN})),
            ("shell_exec", json!({"command": "cat plain/key.txt env twin; true"})),
            ("read_file", json!({"path": "env"})),
            ("search_files", json!({"pattern": "CANARY"})),
        ]);
        let patch = world.own().join("out.diff");
        let flags = [
            "--hide",
            "secret",
            "--hide",
            ".env",
            "--hide",
            "linked.env",
            "--patch",
            patch.to_str().unwrap(),
        ];
        let child = start(&world, tier, &server, &flags);
        world.pid_in("command");
        slay(worker_of(&world));
        let done = end(child);
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let listed = tool_results(&server, 1)[0]["content"].to_string();
        assert!(listed.contains("plain") && listed.contains("twin"), "the agent could rename: {listed}");
        assert_eq!(done.events_of("worker_started").len(), 2);
        for request in server.requests() {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            assert!(!body.contains("CANARY directory") && !body.contains("CANARY file"), "{body}");
            assert!(!body.contains("CANARY linked"), "{body}");
        }
        let patch = fs::read_to_string(&patch).unwrap_or_default();
        assert!(!patch.contains("CANARY"), "{patch}");
    }
}

/// Tests a program that asks its parent, the broker or init, to trace it, and then gets a signal that it handles.
#[test]
fn a_program_that_stops_for_a_tracer_has_not_ended() {
    let script = "import ctypes, os, signal\n\
        signal.signal(signal.SIGUSR1, lambda *_: print('handled', flush=True))\n\
        print(ctypes.CDLL(None).ptrace(0, 0, 0, 0), flush=True)\n\
        os.kill(os.getpid(), signal.SIGUSR1)\n\
        os._exit(7)";
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let done = Finished::of(world.sandbox(tier, &[], "python3").args(["-c", script]));
        assert_eq!(
            (done.stdout.as_str(), done.code),
            ("0\nhandled\n", 7),
            "{tier}, {user:?}: {}",
            done.stderr
        );
    }
}
