//! Test that the orphans of a killed reaper are ended. It is a test program of its own, since every child of the
//! process that is no reaper counts as an orphan.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;
use std::io::Read;

use common::{read_all, spec, worker_rights};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox_exec::command::{CommandDomain, end_orphans};

#[test]
fn what_a_killed_reaper_leaves_is_ended_by_the_worker() {
    let project = tempfile::tempdir().unwrap();
    let domain =
        CommandDomain::prepare(&worker_rights(project.path()), None, ipc::confinement::Tier::Floor).unwrap();
    let running = domain.spawn(&spec(project.path(), "exec 2>/dev/null; echo $$; sleep 1000; echo")).unwrap();
    let mut line = [0; 32];
    let mut output = fs::File::from(running.output.try_clone().unwrap());
    let read = loop {
        match output.read(&mut line) {
            Ok(read) => break read,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    };
    kill(Pid::from_raw(running.pid().cast_signed()), Signal::SIGKILL).unwrap();
    assert_eq!(read_all(&running.status), b"", "no status comes from a killed reaper");
    running.reap().unwrap();
    end_orphans(&[]);
    let pid = String::from_utf8_lossy(&line[..read]).trim().parse().unwrap();
    assert_eq!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH));
}
