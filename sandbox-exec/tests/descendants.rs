#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe};
use sandbox_exec::descendants::{Bound, end_all};
use sandbox_exec::platform::Platform;
use sandbox_exec::{domain::Domain, system};

const SCRIPT: &str = "setsid bash -c 'trap \"\" TERM HUP; echo $$; exec sleep 1000 > /dev/null' & \
                      (setsid bash -c 'echo $$; (sleep 1000 > /dev/null & echo $!); exec sleep 1000 > /dev/null' &) ; \
                      echo $$; wait";

#[test]
fn children_are_ended_round_by_round() {
    let (read, write) = pipe().unwrap();
    // SAFETY: the child is what a broker is, a process with one thread, and exits without unwinding. It
    // allocates, which the C library allows after a fork, though the standard does not.
    let ForkResult::Parent { child } = unsafe { fork() }.unwrap() else {
        let pids = broker();
        std::fs::File::from(write).write_all(pids.as_bytes()).unwrap();
        std::process::exit(0);
    };
    drop(write);
    let mut pids = String::new();
    std::fs::File::from(read).read_to_string(&mut pids).unwrap();
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
    assert_eq!(pids.lines().count(), 4, "{pids}");
    for pid in pids.lines() {
        assert_eq!(kill(Pid::from_raw(pid.parse().unwrap()), None), Err(Errno::ESRCH), "{pid} lives");
    }
}

#[expect(clippy::zombie_processes, reason = "end_all reaps")]
fn broker() -> String {
    system::set_subreaper().unwrap();
    let mut command = Command::new("/bin/bash");
    let mut child = command.args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pids: Vec<_> = lines.take(4).map(Result::unwrap).collect();
    let mut ended = 0;
    end_all(Bound::Children, child.id().cast_signed(), |_, _| ended += 1);
    assert!(ended >= 4, "{ended}");
    pids.join("\n")
}

#[test]
fn a_bound_that_cannot_be_verified_is_not_believed() {
    let nobody = i32::MAX;
    assert_eq!(Bound::enter(None, nobody).unwrap(), Bound::Children);
    let Some(signals) = Domain::of_scopes(Platform::probe()).unwrap() else {
        eprintln!("skipped: needs Landlock ABI 6");
        return;
    };
    system::set_no_new_privs().unwrap();
    assert_eq!(Bound::enter(Some(&signals), nobody).unwrap(), Bound::Children);
}
