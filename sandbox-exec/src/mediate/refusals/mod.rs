//! Reports of denied calls to the process that started the programs.
//!
//! No call waits for the reader: if a report does not fit into the pipe, its count is added to the next report. A
//! repeated denial is reported after two, four, eight … times.

mod origins;
mod report;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipc::refusal::{Act, Refusal, Target};
use nix::errno::Errno;
use nix::libc::pid_t;

use super::kernel::status::Status;
use super::kernel::text::{self, name};
use super::unix::listeners::Listeners;
use origins::Origins;

/// Maximum number of a calling process's ancestors that are examined.
const MOST_ANCESTORS: usize = 256;
/// Name of the process that becomes the program, until it has tried forbidden acts; these are not reported.
const OWN_NAME: &str = "sandbox-exec";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// Denied by the rules alone: without them the call would have succeeded.
    Rules { target: Target, errno: Errno },
    /// The call would have failed anyway, or the cause is unknown.
    Other(Errno),
}

impl Denied {
    pub(super) fn errno(&self) -> Errno {
        match self {
            Self::Rules { errno, .. } | Self::Other(errno) => *errno,
        }
    }
}

impl From<Errno> for Denied {
    fn from(errno: Errno) -> Self {
        Self::Other(errno)
    }
}

#[derive(Debug)]
pub struct Refusals(Option<Telling>);

#[derive(Debug)]
struct Telling {
    program: pid_t,
    listeners: Listeners,
    state: Mutex<RefusalState>,
}

#[derive(Debug)]
struct RefusalState {
    pipe: File,
    origins: Origins,
}

impl Refusals {
    /// Returns a reporter that drops all denials.
    pub fn untold() -> Self {
        Self(None)
    }

    /// Returns a reporter that writes denials of the child `program` to a pipe. Without a pipe, it drops all denials.
    pub(crate) fn told(program: pid_t, telling: Option<(OwnedFd, Listeners)>) -> Self {
        let state = |pipe| Mutex::new(RefusalState { pipe: File::from(pipe), origins: Origins::default() });
        Self(telling.map(|(pipe, listeners)| Telling { program, listeners, state: state(pipe) }))
    }

    /// Reports the denial of a thread's call, if the call still waits. Returns the error for the caller.
    pub(super) fn tell(&self, thread: pid_t, act: Act, hindrance: Denied) -> Errno {
        let errno = hindrance.errno();
        if let Denied::Rules { target, .. } = hindrance
            && let Some(telling) = self.0.as_ref().filter(|telling| !telling.only_tries(thread))
        {
            telling.tell(thread, act, target, errno);
        }
        errno
    }
}

impl Telling {
    fn tell(&self, thread: pid_t, act: Act, target: Target, errno: Errno) {
        if let Target::Socket(path) = &target
            && self.listeners.answers(path.as_path()) == Some(false)
        {
            // Without the rules the call would have failed as well.
            return;
        }
        let Some((caller, process)) = self.lineage(thread) else { return };
        let program = name(caller);
        let Some(began) = began(process) else { return };
        let refusal = Refusal {
            process: process.cast_unsigned(),
            program,
            act,
            object: target,
            errno: errno as i32,
            count: 1,
            untold: 0,
        };
        let mut state = self.lock();
        let RefusalState { pipe, origins } = &mut *state;
        origins.of(process, began).count(refusal, |refusal| report::write(pipe, refusal));
    }

    fn only_tries(&self, thread: pid_t) -> bool {
        thread == self.program && name(thread) == OWN_NAME
    }

    /// Returns a thread's process, and the process to which its denials are attributed: that process itself or an
    /// ancestor, which is the program, a child of the program, or an adopted orphan. `None` if there is none.
    fn lineage(&self, thread: pid_t) -> Option<(pid_t, pid_t)> {
        let own = std::process::id().cast_signed();
        let mut status = Status::of(thread).ok()?;
        let caller = status.process;
        for _ in 0..MOST_ANCESTORS {
            if status.process == self.program || [self.program, own].contains(&status.parent) {
                return Some((caller, status.process));
            }
            status = Status::of(status.parent).ok()?;
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, RefusalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a process's start time: field 22 of `proc_pid_stat(5)`, found after the name, which may contain anything.
fn began(process: pid_t) -> Option<u64> {
    let stat = text::read_string(&format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
