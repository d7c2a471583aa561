//! Reaper of a command, a single-threaded process that its worker executes for one command.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::libc::{self, pid_t};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getppid, setsid};

use super::NOT_STARTED;
use super::execute::{Started, start};
use super::request::Request;
use super::start::Given;
use crate::descendants::{self, Bound, Waited};
use crate::descriptors;
use crate::domain::Domain;
use crate::stage::Stage;
use crate::system;

#[derive(Debug)]
pub(super) struct Failed(pub(super) Stage, pub(super) io::Error);

/// Main function of a new process that reaps one command. Ends when the command and all its descendants have ended.
pub fn reap() -> ExitCode {
    let inherited = match inherit() {
        Ok(inherited) => inherited,
        Err(failed) => return failed.0.code().into(),
    };
    let [status, request, domain, signals] = inherited;
    let (ended, code) = match watch(request, domain, signals) {
        Ok(ended) => (ended, 0),
        Err(failed) => (failed.status(), failed.0.code()),
    };
    // So few bytes are written at once or not at all (pipe(7)); a worker that has gone reads nothing.
    let _written = File::from(status).write_all(&ended.to_le_bytes());
    code.into()
}

/// Takes the descriptors that the worker passed, and makes this process non-dumpable.
fn inherit() -> Result<[OwnedFd; 4], Failed> {
    system::make_undumpable().map_err(at(Stage::Descriptors))?;
    system::set_name(c"reaper");
    let numbers = [Given::STATUS, Given::REQUEST, Given::DOMAIN, Given::SIGNALS];
    let inherited = descriptors::inherit(&numbers).map_err(at(Stage::Descriptors))?;
    inherited.try_into().map_err(|_| Failed(Stage::Descriptors, Errno::EBADF.into()))
}

fn watch(request: OwnedFd, domain: OwnedFd, signals: OwnedFd) -> Result<c_int, Failed> {
    let request = Request::receive(request).map_err(at(Stage::Usage))?;
    let domain = request.has_domain.then(|| Domain::of_ruleset(domain));
    let signals = request.has_signals.then(|| Domain::of_ruleset(signals));
    let bound = prepare(request.worker, signals.as_ref())?;
    let Started { command, failure } = start(&request, domain.as_ref())?;
    drop((domain, signals));
    let mut status = None;
    let mut note = |pid, ended| {
        if pid == command {
            status = Some(ended);
        }
    };
    let ended = wait_for_the_end(command, &mut note);
    let alive = if ended { 0 } else { command };
    descendants::end_all(bound, alive, note);
    Ok(failure.or(status).unwrap_or(libc::SIGKILL))
}

fn prepare(worker: pid_t, signals: Option<&Domain>) -> Result<Bound, Failed> {
    setsid().map_err(at(Stage::Session))?;
    system::set_subreaper().map_err(at(Stage::Session))?;
    descendants::fence().map_err(at(Stage::Session))?;
    system::set_parent_death_signal(libc::SIGTERM).map_err(at(Stage::Parent))?;
    // The worker may have died before.
    if getppid().as_raw() != worker {
        return Err(Failed(Stage::Parent, Errno::ESRCH.into()));
    }
    system::set_no_new_privs().map_err(at(Stage::Privileges))?;
    Bound::enter(signals, worker).map_err(at(Stage::Landlock))
}

impl Failed {
    pub(super) fn status(&self) -> c_int {
        let Self(stage, error) = self;
        NOT_STARTED | (error.raw_os_error().unwrap_or(0) & 0xff) << 16 | c_int::from(stage.code()) << 8
    }
}

pub(super) fn at<E: Into<io::Error>>(stage: Stage) -> impl Fn(E) -> Failed {
    move |error| Failed(stage, error.into())
}

/// Waits for the end of the command. True if it has ended; false after SIGTERM, which the worker sends, or the kernel
/// if the worker dies. SIGTERM and SIGCHLD are blocked, so that none is lost.
fn wait_for_the_end(command: pid_t, note: &mut dyn FnMut(pid_t, c_int)) -> bool {
    let awaited = SigSet::from_iter([Signal::SIGCHLD, Signal::SIGTERM]);
    loop {
        loop {
            match descendants::reap_one(false) {
                Waited::Ended(pid, status) => {
                    note(pid, status);
                    if pid == command {
                        return true;
                    }
                }
                Waited::Running => break,
                Waited::None => return true,
            }
        }
        if awaited.wait() == Ok(Signal::SIGTERM) {
            return false;
        }
    }
}
