//! Tests of commands, each in a Landlock domain nested in its worker's.
//!
//! In most tests the test process itself is the worker. A worker that dies or is confined is another process: it runs
//! the last "test" in this file, which does nothing unless another test executes it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{finish, spec, worker_rights};
use ipc::confinement::Tier;
use ipc::rights::{Execution, Network};
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox_exec::command::{
    CommandDomain, CommandError, CommandSpec, DomainAccess, Ending, deny_execution, make_undumpable,
};
use sandbox_exec::platform::{Platform, SCOPES};
use sandbox_exec::stage::Stage;
use tempfile::TempDir;

struct Worker {
    project: TempDir,
    domain: CommandDomain,
}

impl Worker {
    fn new() -> Self {
        Self::in_tier(Tier::Floor)
    }

    fn in_tier(tier: Tier) -> Self {
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join("keep"), "mine").unwrap();
        let mut rights = worker_rights(project.path());
        rights.net = Network::On;
        let domain = CommandDomain::prepare(&rights, None, tier).unwrap();
        Self { project, domain }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.project.path()).unwrap().join(name)
    }

    fn run(&self, script: &str) -> (String, Ending) {
        finish(self.domain.spawn(&spec(self.project.path(), script)).unwrap())
    }

    fn read(&self, script: &str) -> (String, Ending) {
        let temp = self.path("tmp");
        fs::create_dir_all(&temp).unwrap();
        let mut command = spec(self.project.path(), script);
        command.environment.push(("TMPDIR".into(), temp.clone().into()));
        command.access = DomainAccess::Read { temp, net: Network::Off };
        finish(self.domain.spawn(&command).unwrap())
    }
}

fn gone(output: &str) {
    for pid in output.split_whitespace() {
        assert_eq!(kill(Pid::from_raw(pid.parse().unwrap()), None), Err(Errno::ESRCH), "{pid} lives");
    }
}

/// Script of a command that asks to be traced, then stops at a signal until its tracer continues it.
const TRACED: &str = "exec python3 -c 'import ctypes, os, signal\n\
    signal.signal(signal.SIGUSR1, lambda *_: print(\"handled\", flush=True))\n\
    print(ctypes.CDLL(None).ptrace(0, 0, 0, 0), flush=True)\n\
    os.kill(os.getpid(), signal.SIGUSR1)\n\
    os._exit(7)'";

#[test]
fn a_command_that_stops_for_a_tracer_has_not_ended() {
    for tier in [Tier::Full, Tier::Floor] {
        assert_eq!(Worker::in_tier(tier).run(TRACED), ("0\nhandled\n".to_owned(), Ending::Exited(7)));
    }
}

#[test]
fn a_command_runs_and_reports() {
    let worker = Worker::new();
    let (output, ending) = worker.run("echo out; echo err >&2; pwd; cat; exit 3");
    assert_eq!(
        output,
        format!("out\nerr\n{}\n", worker.path("").display().to_string().trim_end_matches('/'))
    );
    assert_eq!(ending, Ending::Exited(3));
    assert_eq!(worker.run("kill -9 $$").1, Ending::Signalled(9));
}

#[test]
fn what_cannot_be_executed_says_why() {
    let worker = Worker::new();
    let failed = |command: &CommandSpec| finish(worker.domain.spawn(command).unwrap()).1;
    let mut command = spec(worker.project.path(), "true");
    command.argv[0] = "/no/such/program".into();
    assert_eq!(failed(&command), Ending::NotStarted { stage: Stage::Execute, errno: libc::ENOENT });
    command.argv[0] = worker.path("keep").into();
    assert_eq!(failed(&command), Ending::NotStarted { stage: Stage::Execute, errno: libc::EACCES });
    command = spec(Path::new("/no/such/directory"), "true");
    assert_eq!(failed(&command), Ending::NotStarted { stage: Stage::Directory, errno: libc::ENOENT });
}

#[test]
fn a_command_writes_the_project_and_nothing_else() {
    let worker = Worker::new();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("new").display().to_string();
    let (output, ending) = worker.run(&format!("echo x > keep; echo x > {target}"));
    assert!(output.contains("Permission denied"), "{output}");
    assert_eq!(ending, Ending::Exited(1));
    assert_eq!(fs::read_to_string(worker.path("keep")).unwrap(), "x\n");
    assert!(!Path::new(&target).exists());
}

#[test]
fn a_command_that_reads_changes_nothing_but_its_temp() {
    let worker = Worker::new();
    let changes = [
        ("echo x > keep", "Permission denied"),
        ("rm keep", "Permission denied"),
        ("mkdir new", "Permission denied"),
        ("chmod 600 keep", "Operation not permitted"),
        ("touch -d 2001-01-01 keep", "Permission denied"),
        ("touch -a -c -d 2001-01-01 keep", "Permission denied"),
    ];
    let before = fs::metadata(worker.path("keep")).unwrap();
    for (script, error) in changes {
        let (output, ending) = worker.read(script);
        assert!(output.contains(error) || output.contains("not permitted"), "{script}: {output}");
        assert_ne!(ending, Ending::Exited(0), "{script}");
    }
    let after = fs::metadata(worker.path("keep")).unwrap();
    assert_eq!(fs::read_to_string(worker.path("keep")).unwrap(), "mine");
    assert_eq!(before.permissions().mode(), after.permissions().mode());
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(worker.read("cat keep; echo x > $TMPDIR/f; cat $TMPDIR/f; echo > /dev/null").0, "minex\n");
    for (script, _) in [&changes[0], &changes[3], &changes[4], &changes[2], &changes[1]] {
        assert_eq!(worker.run(script), (String::new(), Ending::Exited(0)), "{script} works with all rights");
    }
}

#[test]
fn a_command_that_declares_no_network_has_none_and_can_still_write() {
    let worker = Worker::new();
    let mut command = spec(worker.project.path(), "touch made && exec 3<>/dev/udp/127.0.0.1/9 && echo open");
    command.access = DomainAccess::Offline;
    let (output, _) = finish(worker.domain.spawn(&command).unwrap());
    assert!(output.contains("Operation not permitted"), "{output}");
    assert!(worker.path("made").exists());
}

#[test]
fn a_command_that_declares_no_network_keeps_its_unix_sockets_where_they_are_mediated() {
    let script = "for family in AF_UNIX AF_INET AF_INET6; do
        python3 -c \"import socket; socket.socket(socket.$family)\" 2>/dev/null && echo $family; done; true";
    for (tier, families) in
        [(Tier::Full, "AF_UNIX\n"), (Tier::Floor, "AF_UNIX\n"), (Tier::FloorUnmediated, "")]
    {
        let worker = Worker::in_tier(tier);
        if worker.run(script).0 != "AF_UNIX\nAF_INET\nAF_INET6\n" {
            eprintln!("skipped: not on this machine: python3 with sockets of all families");
            return;
        }
        let mut command = spec(worker.project.path(), script);
        command.access = DomainAccess::Offline;
        assert_eq!(finish(worker.domain.spawn(&command).unwrap()).0, families, "{tier}");
        assert_eq!(worker.read(script).0, "", "{tier}");
    }
}

#[test]
fn a_command_that_reads_has_no_network_whatever_its_worker_has() {
    let worker = Worker::new();
    let script = "exec 3<>/dev/udp/127.0.0.1/9 && echo open";
    assert_eq!(worker.run(script).0, "open\n");
    let (output, _) = worker.read(script);
    assert!(output.contains("Operation not permitted"), "{output}");
}

#[test]
fn a_reading_command_may_run_git() {
    let worker = Worker::new();
    let setup = "git init -q . && git add keep && git -c user.name=n -c user.email=e commit -qm first && echo x > new";
    let git = Command::new("git").arg("--version").output();
    if !git.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: needs git");
        return;
    }
    assert_eq!(worker.run(setup), (String::new(), Ending::Exited(0)));
    let (output, ending) = worker.read("git status --short && git log --oneline | wc -l && git diff --stat");
    assert_eq!((output.as_str(), ending), ("?? new\n1\n", Ending::Exited(0)));
}

#[test]
fn every_descendant_ends_with_the_command() {
    let worker = Worker::new();
    let script = "setsid sleep 1000 & echo $!; (setsid bash -c 'trap \"\" TERM HUP; echo $$; exec sleep 1000' &) | head -1";
    let (output, ending) = worker.run(script);
    assert_eq!(ending, Ending::Exited(0));
    assert_eq!(output.lines().count(), 2, "{output}");
    gone(&output);
}

#[test]
fn a_command_can_be_ended() {
    let worker = Worker::new();
    let running = worker
        .domain
        .spawn(&spec(worker.project.path(), "trap '' TERM; mkfifo f; cat f; sleep 1000"))
        .unwrap();
    assert!(running.pid() > 0);
    running.end().unwrap();
    let (_, ending) = finish(running);
    assert_eq!(ending, Ending::Signalled(Signal::SIGKILL as i32));
}

#[test]
fn a_command_that_nobody_waits_for_is_ended() {
    let worker = Worker::new();
    let fifo = worker.path("f");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let running =
        worker.domain.spawn(&spec(worker.project.path(), "exec 3> f; echo $$ >&3; sleep 1000")).unwrap();
    let mut lines = BufReader::new(fs::File::open(&fifo).unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    drop(running);
    gone(&line);
}

#[test]
fn a_command_can_touch_neither_its_reaper_nor_its_worker() {
    let worker = Worker::new();
    // As a worker: perfmon_capable() opens /proc/PID/environ past every LSM (fs/proc/base.c, mm_access).
    sandbox_exec::privilege::drop_capabilities().unwrap();
    let me = std::process::id();
    let script = format!(
        "kill -0 $PPID; kill -0 {me}; kill -0 $$ && echo self; cat /proc/{me}/environ; cat /proc/$PPID/environ"
    );
    let (output, _) = worker.run(&script);
    assert_eq!(output.matches("Operation not permitted").count(), 2, "{output}");
    assert!(output.contains("self\n"));
    assert_eq!(output.matches("Permission denied").count(), 2, "{output}");
    kill(Pid::from_raw(me.cast_signed()), None).unwrap();
}

/// Tests that a command cannot read the memory of another command's process while that starts. Such a process, the
/// reaper or the command before its exec, is a copy of the worker's.
#[test]
fn a_command_cannot_open_the_memory_of_what_starts_beside_it() {
    let worker = Worker::new();
    // As above.
    sandbox_exec::privilege::drop_capabilities().unwrap();
    let script = "exec 2> /dev/null; : < /proc/$$/environ && echo own; touch ready
        until [ -e stop ]; do for it in /proc/[0-9]*; do
            [ $it = /proc/$$ ] || ! : < $it/environ || ! read -rN 1 _ < $it/environ || echo $it
        done; done";
    let attacker = worker.domain.spawn(&spec(worker.project.path(), script)).unwrap();
    while !worker.path("ready").exists() {}
    for _ in 0..100 {
        assert_eq!(worker.run("exit 0").1, Ending::Exited(0));
    }
    fs::write(worker.path("stop"), "").unwrap();
    assert_eq!(finish(attacker), ("own\n".to_owned(), Ending::Exited(0)));
}

#[test]
fn a_command_may_be_longer_than_a_pipe_holds() {
    let worker = Worker::new();
    let long = "x".repeat(120 << 10);
    assert_eq!(worker.run(&format!("echo {long}")), (format!("{long}\n"), Ending::Exited(0)));
    let mut command = spec(worker.project.path(), "true");
    // Longer than one argument may be (execve(2)).
    command.argv.push("x".repeat(128 << 10).into());
    let ending = finish(worker.domain.spawn(&command).unwrap()).1;
    assert_eq!(ending, Ending::NotStarted { stage: Stage::Execute, errno: libc::E2BIG });
}

#[test]
fn killing_everything_kills_the_command_alone() {
    // Without them it would kill every process of the machine.
    if Platform::probe().abi < SCOPES {
        eprintln!("skipped: needs Landlock ABI 6");
        return;
    }
    let worker = Worker::new();
    let other = worker.domain.spawn(&spec(worker.project.path(), "mkfifo f; cat f")).unwrap();
    // With signal scopes -1 reaches the command's own domain; a bystander of another call lives on.
    let (_, ending) = worker.run("until [ -p f ]; do :; done; kill -9 -1; exit 4");
    assert_eq!(ending, Ending::Exited(4));
    fs::write(worker.path("f"), "alive").unwrap();
    assert_eq!(finish(other), ("alive".to_owned(), Ending::Exited(0)));
}

#[test]
fn rights_without_commands_start_none() {
    let project = tempfile::tempdir().unwrap();
    let mut rights = worker_rights(project.path());
    rights.exec = Execution::Denied;
    let domain = CommandDomain::prepare(&rights, None, Tier::Floor).unwrap();
    let error = domain.spawn(&spec(project.path(), "true")).unwrap_err();
    assert!(matches!(error, CommandError::Denied));
}

#[test]
fn a_worker_without_commands_can_execute_nothing() {
    // The denial is for this thread and what it makes; the test's thread ends with the test.
    assert!(Command::new("/bin/true").status().unwrap().success());
    deny_execution().unwrap();
    let error = Command::new("/bin/true").status().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
}

fn worker_process(sandbox: bool, project: &Path) -> Command {
    let me = std::env::current_exe().unwrap();
    let mut command = if sandbox {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandbox-exec"));
        command.arg("--write").arg(project).arg("--").arg(me);
        command
    } else {
        Command::new(me)
    };
    command.args(["--exact", "a_worker_for_other_tests", "--ignored", "--nocapture"]);
    command.current_dir(project).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

#[test]
fn nothing_outlives_a_killed_worker() {
    for sandbox in [false, true] {
        let project = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&project.path().join("f"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut worker = worker_process(sandbox, project.path()).spawn().unwrap();
        let mut lines = BufReader::new(fs::File::open(project.path().join("f")).unwrap());
        let mut pids = String::new();
        lines.read_line(&mut pids).unwrap();
        worker.kill().unwrap();
        worker.wait().unwrap();
        // The command and its daemon hold the fifo: its end is theirs.
        lines.read_to_end(&mut vec![]).unwrap();
        assert_eq!(pids.split_whitespace().count(), 2);
    }
}

#[test]
#[ignore = "the worker process of other tests"]
fn a_worker_for_other_tests() {
    make_undumpable().unwrap();
    let project = std::env::current_dir().unwrap();
    let domain = CommandDomain::prepare(&worker_rights(&project), None, Tier::Floor).unwrap();
    let script = "exec 3> f; setsid sleep 1000 & echo $! $$ >&3; wait";
    finish(domain.spawn(&spec(&project, script)).unwrap());
}
