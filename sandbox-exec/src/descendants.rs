//! End of every descendant of this process.
//!
//! A subreaper becomes the parent of its orphaned descendants. So no descendant is left once `waitpid` returns
//! `ECHILD`. [`Bound::Domain`] kills with `kill(-1)`, which the caller's Landlock domain bounds; the kernel locks out
//! `fork` meanwhile, so that no new process escapes. Without signal scopes (below ABI 6), [`Bound::Children`] kills the
//! direct children, round after round.
//!
//! The calling process has one thread that forks.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::libc::{self, c_int, pid_t};

use crate::domain::Domain;
use crate::system::process;

/// Number for `kill(2)` by which a process asks its mediating broker to confine the signals of its descendants. It is
/// not a signal: without a broker the call fails with `EINVAL`.
pub const FENCE: c_int = 1 << 16;

/// Asks the broker to confine the signals of this process's descendants. Does nothing if no broker mediates signals.
pub fn fence() -> io::Result<()> {
    match send(0, FENCE) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        fenced => fenced,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `kill(-1)` reaches only processes in this process's Landlock domain and inner ones, as a trial has shown.
    Domain,
    /// `kill(-1)` would reach every process of the user, so children are killed by their pids instead.
    Children,
}

impl Bound {
    /// Enters the domain `signals`, which bounds signals. Returns [`Bound::Domain`] if this process could signal the
    /// process `outside` before, and cannot any more.
    pub fn enter(signals: Option<&Domain>, outside: pid_t) -> io::Result<Self> {
        let Some(signals) = signals else {
            return Ok(Self::Children);
        };
        let reachable = probe(outside).is_ok();
        signals.enter()?;
        let denied = probe(outside).is_err_and(|error| error.raw_os_error() == Some(libc::EPERM));
        Ok(if reachable && denied { Self::Domain } else { Self::Children })
    }
}

fn probe(pid: pid_t) -> io::Result<()> {
    send(pid, 0)
}

pub fn send(pid: pid_t, signal: c_int) -> io::Result<()> {
    // Callers pass -1 only under `Bound::Domain`.
    process::kill(pid, signal)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Ended(pid_t, c_int),
    Running,
    None,
}

pub fn reap_one(block: bool) -> Waited {
    loop {
        // __WALL also reaps children made by clone without SIGCHLD.
        let options = libc::__WALL | if block { 0 } else { libc::WNOHANG };
        match process::wait_for_any(options) {
            Ok((0, _)) => return Waited::Running,
            Ok((pid, status)) if libc::WIFSTOPPED(status) => go_on(pid, libc::WSTOPSIG(status)),
            Ok((pid, status)) => return Waited::Ended(pid, status),
            Err(Errno::EINTR) => {}
            Err(_) => return Waited::None,
        }
    }
}

/// Detaches a stopped child that asked to be traced (`PTRACE_TRACEME`), and delivers the signal that stopped it.
fn go_on(pid: pid_t, signal: c_int) {
    let signal = if signal == libc::SIGTRAP { 0 } else { libc::c_long::from(signal) };
    process::detach(pid, signal);
}

/// Kills and reaps every descendant, and calls `ended` with the pid and wait status of each. `known` is the pid of a
/// child to kill even if `/proc` lists no children; 0 for no child.
pub fn end_all(bound: Bound, mut known: pid_t, mut ended: impl FnMut(pid_t, c_int)) {
    let mut block = false;
    loop {
        match reap_one(block) {
            Waited::None => return,
            Waited::Ended(pid, status) => {
                // From now on the pid may be another process's.
                known = if pid == known { 0 } else { known };
                ended(pid, status);
                block = false;
            }
            Waited::Running => {
                kill_all(bound, known);
                block = true;
            }
        }
    }
}

fn kill_all(bound: Bound, known: pid_t) {
    // A process that is gone by now needs no signal.
    match bound {
        Bound::Domain => drop(send(-1, libc::SIGKILL)),
        Bound::Children => {
            kill_children();
            if known > 0 {
                drop(send(known, libc::SIGKILL));
            }
        }
    }
}

/// Kills the children that `/proc` lists (needs `CONFIG_PROC_CHILDREN`, which distributions set).
fn kill_children() {
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        drop(send(child, libc::SIGKILL));
    }
}
