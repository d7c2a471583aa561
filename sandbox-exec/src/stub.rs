//! Stub: process in the host's namespaces that waits for a program of the full tier, and exits with its status.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

use ipc::confinement::BrokerReport;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::broker::{Progress, Reports, SIGNALS, let_go_of_pipes, retire};
use crate::cgroup::Cgroup;
use crate::stage::{Failure, Stage};

#[derive(Debug)]
pub(crate) struct Stub {
    init: Pid,
    alive: bool,
    progress: Progress,
    met: OwnedFd,
    group: Option<Cgroup>,
}

impl Stub {
    pub(crate) fn new(init: Pid, progress: Progress, met: OwnedFd, group: Option<Cgroup>) -> Self {
        Self { init, alive: true, progress, met, group }
    }

    /// Waits for the end of the program and its descendants. Returns the exit status; fails if the program was not
    /// started. Keeps the socket to the gateway until the program has started, since the floor tier may need it if that
    /// fails.
    pub(crate) fn watch(
        mut self,
        gateway: &mut Option<OwnedFd>,
        reports: &mut Reports,
    ) -> Result<u8, Failure> {
        // Privileges are dropped only now: if the namespaces were refused, this process may continue as the
        // broker of the floor tier.
        let started = self.progress.started()?;
        drop(gateway.take());
        retire().map_err(broken)?;
        self.begin(started, reports)?;
        if let Some(group) = &self.group {
            group.end_left();
        }
        let status = self.wait();
        if let Some(reports) = reports {
            // The supervisor may be gone, which is then the reason for the end.
            drop(reports.send(&BrokerReport::Ended { status: status.into() }));
        }
        Ok(status)
    }

    fn begin(&self, started: BrokerReport, reports: &mut Reports) -> Result<(), Failure> {
        let_go_of_pipes(reports.is_some()).map_err(broken)?;
        let started = match started {
            BrokerReport::Started { ruleset, .. } => BrokerReport::Started { pid: self.meet()?, ruleset },
            other => other,
        };
        match reports {
            Some(reports) => reports.send(&started).map_err(|error| Stage::Report.failed(error)),
            None => Ok(()),
        }
    }

    /// Returns the program's pid as seen in this process's pid namespace.
    fn meet(&self) -> Result<u32, Failure> {
        let mut byte = [0];
        let mut data = [IoSliceMut::new(&mut byte)];
        let mut space = nix::cmsg_space!(UnixCredentials);
        let message =
            recvmsg::<()>(self.met.as_raw_fd(), &mut data, Some(&mut space), MsgFlags::MSG_DONTWAIT)
                .map_err(broken)?;
        let pid = message.cmsgs().map_err(broken)?.find_map(|control| match control {
            ControlMessageOwned::ScmCredentials(credentials) => u32::try_from(credentials.pid()).ok(),
            _ => None,
        });
        pid.ok_or_else(|| Stage::Broker.failed("the program did not say who it is"))
    }

    /// Waits for init, and returns its exit status. SIGTERM or SIGHUP to this process kills init; the status is then
    /// 128 + the signal's number.
    fn wait(&mut self) -> u8 {
        let awaited: SigSet = SIGNALS.into_iter().collect();
        loop {
            if let Some(status) = self.reap(Some(WaitPidFlag::WNOHANG)) {
                return status;
            }
            match awaited.wait() {
                Ok(Signal::SIGINT) => drop(kill(self.init, Signal::SIGINT)),
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => {
                    self.end();
                    return 128 + signal as u8;
                }
            }
        }
    }

    /// Reaps init, and returns its exit status. `None` if init still runs and `flags` forbid waiting.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an exit code has 8 bits")]
    fn reap(&mut self, flags: Option<WaitPidFlag>) -> Option<u8> {
        loop {
            let status = match waitpid(self.init, flags) {
                Err(Errno::EINTR) => continue,
                Ok(WaitStatus::Exited(_, code)) => code as u8,
                Ok(WaitStatus::Signaled(_, signal, _)) => 128 + signal as u8,
                Ok(_) => return None,
                // Init was reaped elsewhere: nothing is left to wait for.
                Err(_) => 128 + libc::SIGKILL as u8,
            };
            self.alive = false;
            return Some(status);
        }
    }

    /// Kills init, and so every process in init's pid namespace.
    fn end(&mut self) {
        if self.alive {
            let _gone = kill(self.init, Signal::SIGKILL);
            while self.alive && self.reap(None).is_none() {}
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.end();
    }
}

fn broken(error: impl Into<io::Error>) -> Failure {
    Stage::Broker.failed(error.into())
}
