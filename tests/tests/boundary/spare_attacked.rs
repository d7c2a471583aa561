//! Tests attacks of a command on the prestarted sandbox-exec. That process runs as the same user and outside of every
//! sandbox.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::process::{Child, Stdio};

use ipc::confinement::Tier;
use model::replay::ReplayServer;
use nix::libc;
use serde_json::{Value, json};
use tests::replies::model;
use tests::{Finished, Programs, User, World, alive, marked, tier, wait_until};

/// Attacks. `$S` stands for the pid of the sandbox-exec. It reads its order from descriptor 3.
const ACTS: &[&str] = &[
    "kill $S 9",
    "tgkill $S 9",
    "sigqueue $S 9",
    "pidfd-signal $S 9",
    "procfd-signal $S 9",
    "ptrace-attach $S",
    "ptrace-seize $S",
    "proc-mem $S 4096",
    "pidfd-getfd $S 3",
    "open-to-write /proc/$S/fd/3",
    "open-to-write /proc/$S/mem",
    "proc-links $S fd/3",
    "proc $S environ",
    "proc $S maps",
    "prlimit $S",
];

/// Harmless variants of the attacks, each with the users for whom it succeeds without a sandbox. Root owns the `/proc`
/// files of a process that is not dumpable.
const CONTROLS: &[(&str, &[User])] = &[
    ("kill $S 0", &[User::Myself, User::Plain]),
    ("pidfd-signal $S 0", &[User::Myself, User::Plain]),
    ("open-to-write /proc/$S/fd/3", &[User::Myself]),
    ("open-to-write /proc/$S/mem", &[User::Myself]),
    ("proc $S environ", &[User::Myself]),
];

struct Run {
    world: World,
    child: Child,
    _server: ReplayServer,
}

impl Run {
    fn start(tier: Tier, user: User) -> Self {
        let world = World::new(user);
        let attack = format!("for S in $ALL; do {} >> tried; done", probe(ACTS));
        let command = format!("mkfifo gate; echo > running; read ALL < gate; {attack}; read ALL < gate");
        let server = model(&[("shell_exec", json!({"command": command}))]);
        let mut exec = world.exec(&server, &[&["--mode", "auto"], tier::flags(tier)].concat());
        let child = exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the command waits", || world.project().join("running").exists());
        Self { world, child, _server: server }
    }

    /// Returns the pids of the waiting sandbox-execs, which are those without a child.
    fn waiting(&self) -> Vec<u32> {
        let waits = |pid: &u32| {
            let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
            read("comm").is_ok_and(|name| name == "sandbox-exec\n")
                && read(&format!("task/{pid}/children")).is_ok_and(|children| children.is_empty())
        };
        marked(self.world.mark().as_bytes()).into_iter().filter(waits).collect()
    }

    fn tell(&self, line: &str) {
        fs::write(self.world.project().join("gate"), format!("{line}\n")).unwrap();
    }

    /// Runs the attacks on these processes, and returns the error numbers.
    fn attack(&self, whom: &[u32]) -> Vec<i32> {
        self.tell(&whom.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
        let tried = self.world.project().join("tried");
        let lines = || fs::read_to_string(&tried).unwrap_or_default();
        wait_until("it has attacked", || lines().lines().count() == whom.len() * ACTS.len());
        errors(&lines())
    }

    fn finish(self) {
        self.tell("");
        Finished::from(self.child.wait_with_output().unwrap()).expect(0);
    }
}

fn probe(acts: &[&str]) -> String {
    format!("{} {}", Programs::get().path("probe").display(), acts.join(" -- "))
}

fn errors(lines: &str) -> Vec<i32> {
    let one = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        i32::try_from(line["errno"].as_i64().unwrap()).unwrap()
    };
    lines.lines().map(one).collect()
}

#[test]
fn a_command_reaches_nothing_of_what_waits_for_the_next_start() {
    if !nix::unistd::geteuid().is_root() {
        tests::skip!("what is not dumpable is found by its descriptors, which only root may list");
    }
    for (tier, user) in
        tier::all().into_iter().flat_map(|tier| User::all().into_iter().map(move |user| (tier, user)))
    {
        let run = Run::start(tier, user);
        wait_until("something waits", || run.waiting().len() == 1);
        let waiting = run.waiting();
        for (act, users) in CONTROLS {
            for pid in &waiting {
                let mut bash = run.world.command("bash");
                bash.args(["-c", &probe(&[act])]).env("S", pid.to_string());
                let errno = errors(&Finished::of(&mut bash).expect(0).stdout)[0];
                assert_eq!(errno == 0, users.contains(&user), "unconfined, {user:?}, {act}: {errno}");
            }
        }
        let tried = run.attack(&waiting);
        assert!(waiting.iter().all(|pid| alive(*pid)), "{tier}, {user:?}: {tried:?}");
        let denied: &[i32] = match tier {
            // There is no such process.
            Tier::Full => &[libc::EPERM, libc::EACCES, libc::ENOENT, libc::ESRCH],
            Tier::Floor | Tier::FloorUnmediated => &[libc::EPERM, libc::EACCES],
        };
        for (act, errno) in ACTS.iter().cycle().zip(tried) {
            assert!(denied.contains(&errno), "{tier}, {user:?}, {act}: {errno}");
        }
        run.finish();
        wait_until("nothing is left", || !waiting.iter().any(|pid| alive(*pid)));
    }
}
