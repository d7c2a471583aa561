//! A reaper, and its command up to exec, run in their worker's memory: the worker must not notice.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{finish, spec, worker_rights};
use ipc::confinement::Tier;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, mkfifo};
use sandbox_exec::command::{CommandDomain, Ending};
use sandbox_exec::stage::Stage;

fn domain(project: &Path) -> CommandDomain {
    CommandDomain::prepare(&worker_rights(project), None, Tier::Floor).unwrap()
}

/// Its last call fails with ECHILD, while the worker's thread goes on.
#[test]
fn a_reapers_errors_are_not_its_workers() {
    const MINE: i32 = 12_345;
    let project = tempfile::tempdir().unwrap();
    let fifo = project.path().join("f");
    mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let domain = domain(project.path());
    let running = domain.spawn(&spec(project.path(), "read -r line < f")).unwrap();
    let writer = fs::File::options().write(true).open(&fifo).unwrap();
    Errno::set_raw(MINE);
    drop(writer);
    running.reap().unwrap();
    assert_eq!(Errno::last_raw(), MINE);
}

/// A command that cannot be executed says so by its reaper, and by nothing else.
#[test]
fn a_commands_errors_are_not_its_workers() {
    const MINE: i32 = 12_345;
    let project = tempfile::tempdir().unwrap();
    let domain = domain(project.path());
    let mut command = spec(project.path(), "true");
    command.argv[0] = "/no/such/program".into();
    for _ in 0..50 {
        let running = domain.spawn(&command).unwrap();
        Errno::set_raw(MINE);
        while is_silent(&running.status) {}
        assert_eq!(Errno::last_raw(), MINE);
        assert_eq!(finish(running).1, Ending::NotStarted { stage: Stage::Execute, errno: libc::ENOENT });
    }
}

/// Whether nothing has come on a pipe, by a call that does not fail.
fn is_silent(pipe: &impl std::os::fd::AsFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() == 0
}

#[test]
fn a_reaper_that_is_killed_may_leave_its_command_in_memory_that_nobody_else_gets() {
    let project = tempfile::tempdir().unwrap();
    let domain = domain(project.path());
    let command = spec(project.path(), "true");
    for round in 0..400 {
        let running = domain.spawn(&command).unwrap();
        let (started, delay) = (Instant::now(), Duration::from_micros(round % 100 * 10));
        while started.elapsed() < delay {}
        kill(Pid::from_raw(running.pid().cast_signed()), Signal::SIGKILL).unwrap();
        running.reap().unwrap();
        // As large as what a reaper has: it would be given the same place.
        let mine = black_box(vec![0xa5_u8; 64 << 10]);
        let killed = Instant::now();
        while killed.elapsed() < Duration::from_micros(300) {}
        assert!(black_box(&mine).iter().all(|byte| *byte == 0xa5), "round {round}");
    }
}

/// Another's reaper, and another command before its exec, would be a way into the worker.
#[test]
fn a_command_cannot_open_the_memory_of_what_starts_beside_it() {
    let project = tempfile::tempdir().unwrap();
    let domain = domain(project.path());
    // As a worker: perfmon_capable() opens /proc/PID/environ past every LSM (fs/proc/base.c, mm_access).
    sandbox_exec::privilege::drop_capabilities().unwrap();
    let script = "exec 2> /dev/null; : < /proc/$$/environ && echo own; touch ready
        until [ -e stop ]; do for it in /proc/[0-9]*; do
            [ $it = /proc/$$ ] || ! : < $it/environ || echo $it
        done; done";
    let attacker = domain.spawn(&spec(project.path(), script)).unwrap();
    while !project.path().join("ready").exists() {}
    let command = spec(project.path(), "true");
    for _ in 0..200 {
        assert_eq!(finish(domain.spawn(&command).unwrap()).1, Ending::Exited(0));
    }
    fs::write(project.path().join("stop"), "").unwrap();
    assert_eq!(finish(attacker), ("own\n".to_owned(), Ending::Exited(0)));
}
