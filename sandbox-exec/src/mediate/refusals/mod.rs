//! Reports denied calls one by one to the process that started the programs.
//!
//! No call waits for that: a report is written only if the pipe has room for the whole of it, and is
//! otherwise counted, and reported with the next one. A repeated denial is reported again when it has
//! happened twice, four times, eight times as often. So the memory of denials is bounded, and so is the
//! output of a flood of denied calls.

mod origins;
mod report;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipc::refusal::{Act, Refusal, Target};
use nix::errno::Errno;
use nix::libc::pid_t;

use super::listeners::Listeners;
use super::status::Status;
use super::text;
use origins::Origins;

/// Maximum number of ancestors that are looked at.
const MOST_ANCESTORS: usize = 256;
/// Name of this process, which the program still has while it tries a forbidden act for the self-test.
const OWN_NAME: &str = "sandbox-exec";

/// Cause of the failure of a judged call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// Denied by the rules; without them the call would have continued.
    Rules {
        /// Object of the call.
        target: Target,
        errno: Errno,
    },
    /// Any other cause: the call would have failed without the rules too, or the cause is unknown.
    Other(Errno),
}

impl Denied {
    /// Returns the error for the caller.
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

/// Reporter of denials.
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

    /// Returns a reporter for this program, a child of this process, to the reader of a pipe, if there is
    /// one.
    pub(crate) fn told(program: pid_t, telling: Option<(OwnedFd, Listeners)>) -> Self {
        let state = |pipe| Mutex::new(RefusalState { pipe: File::from(pipe), origins: Origins::default() });
        Self(telling.map(|(pipe, listeners)| Telling { program, listeners, state: state(pipe) }))
    }

    /// Reports the denial of a thread's call, which must wait until then; returns the error for the caller.
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

    /// True if this thread will become the program, and still runs the self-test.
    fn only_tries(&self, thread: pid_t) -> bool {
        thread == self.program && name(thread) == OWN_NAME
    }

    /// Returns the process of a thread, and the child of the program that it descends from, if it is not the
    /// program itself. Orphans that this process has adopted count as its children.
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

/// Returns the name that a process gives itself (`proc_pid_comm(5)`).
fn name(process: pid_t) -> String {
    let name = text::read(&format!("/proc/{process}/comm")).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    String::from_utf8_lossy(name).into_owned()
}

/// Returns the start time of a process: the twenty-second field (`proc_pid_stat(5)`), counted after its name,
/// which may contain anything.
fn began(process: pid_t) -> Option<u64> {
    let stat = text::read_string(&format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
