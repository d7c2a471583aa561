//! Refused calls are told to whoever started the programs, one by one.
//!
//! Nothing waits for that: a report is written only where the pipe has room for the whole of it, and is else counted, and told with
//! the next one. What is the same as before is told again when it has happened twice, four times, eight times as often. So what is
//! remembered is bounded, and so is what a flood of refused calls writes.

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

/// The most ancestors that are looked at.
const MOST_ANCESTORS: usize = 256;
/// The name of this process, which the program still has while it tries what must be refused.
const OWN_NAME: &str = "sandbox-exec";

/// Why a call fails that is judged here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// The rules do not allow it; without them it would have gone on.
    Rules {
        /// The object of the call.
        target: Target,
        /// The answer to the caller.
        errno: Errno,
    },
    /// Anything else: it would have failed without the rules too, or nobody knows.
    Other(Errno),
}

impl Denied {
    /// The answer to the caller.
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

/// Tells of refusals.
#[derive(Debug)]
pub struct Refusals(Option<Telling>);

#[derive(Debug)]
struct Telling {
    program: pid_t,
    /// The unix sockets of the host.
    listeners: Listeners,
    state: Mutex<RefusalState>,
}

#[derive(Debug)]
struct RefusalState {
    pipe: File,
    origins: Origins,
}

impl Refusals {
    /// Tells nobody.
    pub fn untold() -> Self {
        Self(None)
    }

    /// Of this program, a child of this process, to the reader of a pipe, if there is one.
    pub(crate) fn told(program: pid_t, telling: Option<(OwnedFd, Listeners)>) -> Self {
        let state = |pipe| Mutex::new(RefusalState { pipe: File::from(pipe), origins: Origins::default() });
        Self(telling.map(|(pipe, listeners)| Telling { program, listeners, state: state(pipe) }))
    }

    /// Tells of what the rules do not allow a thread, whose call must wait until then; what that is told itself.
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
            // Without the rules it would have failed as well.
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

    /// True if this thread will be the program, and tries what must be refused.
    fn only_tries(&self, thread: pid_t) -> bool {
        thread == self.program && name(thread) == OWN_NAME
    }

    /// The process of a thread, and the child of the program that it descends from, if it is not the program itself. What
    /// this process has adopted descends from nobody else any more.
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

/// The name that a process gives itself (`proc_pid_comm(5)`).
fn name(process: pid_t) -> String {
    let name = text::read(&format!("/proc/{process}/comm")).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    String::from_utf8_lossy(name).into_owned()
}

/// When a process began: the twenty-second field (`proc_pid_stat(5)`), counted behind its name, which may hold anything.
fn began(process: pid_t) -> Option<u64> {
    let stat = text::read_string(&format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
