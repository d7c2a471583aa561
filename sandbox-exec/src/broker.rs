//! Broker of a confined program: it reaps processes, forwards signals, ends the descendants, and reports.
//!
//! It executes no code of the program, reads nothing from it, and keeps none of its pipes open, so that their readers
//! see the end of file. It is outside of the program's Landlock domain.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use ipc::confinement::BrokerReport;
use ipc::pipe::{FrameReader, Outgoing};
use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout};

use crate::cgroup::Cgroup;
use crate::descendants::{self, Bound, Waited};
use crate::domain::Opened;
use crate::mediate::{Listeners, Mediator, Refusals};
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;

/// Signals that the broker waits for. They are blocked before the fork, so that none is lost.
pub(crate) const SIGNALS: [Signal; 4] = [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

pub type Reports = Option<Outgoing<File, BrokerReport>>;

#[derive(Debug)]
pub(crate) struct Broker {
    program: Pid,
    bound: Bound,
    progress: Progress,
    _mediator: Option<Mediator>,
    /// Files that were opened for Landlock rules; closed after the start.
    opened: Opened,
    /// Control group of the program; dropped last.
    group: Option<Cgroup>,
}

#[derive(Debug)]
pub(crate) struct Progress(FrameReader<File, BrokerReport>);

enum End {
    Program(u8),
    Signal(Signal),
}

impl Broker {
    pub(crate) fn new(program: Pid, bound: Bound, progress: Progress, mediator: Option<Mediator>) -> Self {
        Self { program, bound, progress, _mediator: mediator, opened: Opened::default(), group: None }
    }

    pub(crate) fn with(self, opened: Opened, group: Option<Cgroup>) -> Self {
        Self { opened, group, ..self }
    }

    /// Waits for the end of the program, ends its descendants, and returns the program's exit status. If a signal ends
    /// the broker, the status is 128 + the signal's number. Fails if the program was not started.
    pub(crate) fn watch(mut self, reports: &mut Reports) -> Result<u8, Failure> {
        let program = self.program.as_raw();
        if let Err(failure) = self.begin(reports) {
            self.abandon();
            return Err(failure);
        }
        // Closed late: the program is under way, and nobody waits for this.
        drop(std::mem::take(&mut self.opened));
        if let Some(group) = &self.group {
            group.end_left();
        }
        let status = match self.wait() {
            End::Program(status) => {
                descendants::end_all(self.bound, 0, |_, _| {});
                status
            }
            End::Signal(signal) => {
                descendants::end_all(self.bound, program, |_, _| {});
                128 + signal as u8
            }
        };
        if let Some(reports) = reports {
            // The supervisor may be gone, which is then the reason for the end.
            drop(reports.send(&BrokerReport::Ended { status: status.into() }));
        }
        Ok(status)
    }

    pub(crate) fn abandon(self) {
        descendants::end_all(self.bound, self.program.as_raw(), |_, _| {});
    }

    /// Waits until the child executes the program, and then closes the broker's copies of the program's pipes.
    fn begin(&mut self, reports: &mut Reports) -> Result<(), Failure> {
        let started = self.progress.started()?;
        let_go_of_pipes(reports.is_some()).map_err(broken)?;
        system::make_undumpable().map_err(broken)?;
        if let Some(reports) = reports {
            reports.send(&started).map_err(|error| Stage::Report.failed(error))?;
        }
        Ok(())
    }

    fn wait(&self) -> End {
        let awaited: SigSet = SIGNALS.into_iter().collect();
        loop {
            if let Some(status) = self.reap() {
                return End::Program(status);
            }
            match awaited.wait() {
                // The program leads its own process group.
                Ok(Signal::SIGINT) => drop(killpg(self.program, Signal::SIGINT)),
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => return End::Signal(signal),
            }
        }
    }

    /// Reaps all ended processes. Returns the program's exit status if the program is one of them.
    fn reap(&self) -> Option<u8> {
        let mut status = None;
        while let Waited::Ended(pid, wait_status) = descendants::reap_one(false) {
            if pid == self.program.as_raw() {
                status = Some(exit_code(wait_status));
            }
        }
        status
    }
}

impl Progress {
    pub(crate) fn new(reports: FrameReader<File, BrokerReport>) -> Self {
        Self(reports)
    }

    /// Waits until the child closes the pipe of reports (by `exec` or its end). Returns the last report, else fails.
    pub(crate) fn started(&mut self) -> Result<BrokerReport, Failure> {
        let mut last = None;
        self.wait_for_progress()?;
        while let Some(report) = self.0.receive().map_err(|error| Stage::Broker.failed(error))? {
            last = Some(report);
        }
        match last {
            Some(started @ BrokerReport::Started { .. }) => Ok(started),
            Some(BrokerReport::Failed { code, detail, refusal, .. }) => {
                let stage = Stage::from_code(code).unwrap_or(Stage::Start);
                Err(Failure { stage, detail, refusal })
            }
            _ => Err(Stage::Start.failed("the child ended before it was confined")),
        }
    }

    /// Waits until the child reports or ends. Fails if this process gets SIGTERM or SIGHUP.
    fn wait_for_progress(&self) -> Result<(), Failure> {
        let ending: SigSet = [Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        let signals = SignalFd::new(&ending).map_err(|errno| Stage::Broker.failed(errno))?;
        let mut ready =
            [PollFd::new(self.0.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut ready, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(Stage::Broker.failed(errno)),
                Ok(_) if ready[0].any() == Some(true) => return Ok(()),
                Ok(_) => return Err(Stage::Start.failed("ended by a signal")),
            }
        }
    }
}

/// Returns the reporter of denied calls. Without `reports` it drops all denials, and `listeners` is not called.
pub(crate) fn refusals(
    program: Pid,
    reports: &Reports,
    listeners: impl FnOnce() -> Listeners,
) -> Result<Refusals, Failure> {
    let pipe = reports.as_ref().map(|reports| reports.as_fd().try_clone_to_owned()).transpose();
    let telling = pipe.map_err(broken)?.map(|pipe| (pipe, listeners()));
    Ok(Refusals::told(program.as_raw(), telling))
}

/// Drops capabilities and makes this process non-dumpable.
pub(crate) fn retire() -> io::Result<()> {
    system::set_no_new_privs()?;
    privilege::drop_capabilities().map_err(io::Error::other)?;
    system::make_undumpable()
}

/// Replaces standard input and output by `/dev/null`; also standard error if `reported`.
pub(crate) fn let_go_of_pipes(reported: bool) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    if reported {
        dup2_stderr(&null)?;
    }
    Ok(())
}

fn broken(error: impl Into<io::Error>) -> Failure {
    Stage::Broker.failed(error.into())
}

/// Returns the exit status of an ended process; 128 + the signal's number if a signal ended it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "codes have 8 bits and signals 7"
)]
pub(crate) fn exit_code(status: c_int) -> u8 {
    if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status) as u8
    } else {
        libc::WEXITSTATUS(status) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_becomes_128_and_its_number() {
        assert_eq!(exit_code(3 << 8), 3);
        assert_eq!(exit_code(libc::SIGKILL), 137);
    }
}
