//! What a worker keeps of the commands that have ended: a program of its own, since it counts the memory of its whole process.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;

use common::{finish, spec, worker_rights};
use ipc::confinement::Tier;
use sandbox_exec::command::{CommandDomain, Ending};

#[test]
fn what_a_reaper_had_is_given_back() {
    let project = tempfile::tempdir().unwrap();
    let domain = CommandDomain::prepare(&worker_rights(project.path()), None, Tier::Floor).unwrap();
    let command = spec(project.path(), "true");
    let run = |times: usize| {
        for _ in 0..times {
            assert_eq!(finish(domain.spawn(&command).unwrap()).1, Ending::Exited(0));
        }
    };
    run(10);
    let before = data();
    run(100);
    // A hundred stacks are six megabytes.
    assert!(data() < before + 2048, "{before} kB, then {} kB", data());
}

/// How much memory of its own this process has, touched or not, in kilobytes.
fn data() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
