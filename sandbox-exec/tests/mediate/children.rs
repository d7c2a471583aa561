//! Helpers for processes that a mediated program creates, and for the open files of its mediator.

use std::time::{Duration, Instant};

use nix::libc::{self, c_int, c_long};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

pub(crate) fn in_child(life: impl FnOnce()) -> Pid {
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            // SAFETY: integers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
            // SAFETY: ends this process.
            unsafe { libc::_exit(i32::from(lived.is_err())) }
        }
    }
}

pub(crate) fn end(child: Pid) {
    assert_ne!(child, getpid());
    kill(child, Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
}

pub(crate) fn with_flags(flags: c_int) -> std::io::Result<libc::pid_t> {
    let flags = c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without a stack the child goes on with a copy of this one, as after fork(2); this process has
    // one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid < 0 { Err(std::io::Error::last_os_error()) } else { Ok(libc::pid_t::try_from(pid).unwrap()) }
}

pub(crate) fn open_there() -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", getppid())).unwrap().count()
}

fn all_there() -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{}/fd", getppid())).unwrap();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    links.map(|link| link.display().to_string()).collect()
}

pub(crate) fn wait_until_open_there(most: usize) {
    let start = Instant::now();
    while open_there() > most {
        assert!(start.elapsed() < Duration::from_mins(1), "more than {most} are left: {:?}", all_there());
        std::thread::yield_now();
    }
}
