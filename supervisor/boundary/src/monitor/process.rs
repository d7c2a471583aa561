//! The broker as a child of ours: signalled and reaped through its process descriptor alone.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use protocol::event::WorkerEnd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use crate::system;

/// How long a broker may take to end everything below it before it is killed itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running broker.
#[derive(Debug)]
pub struct BrokerProcess {
    pidfd: AsyncFd<OwnedFd>,
}

/// How a broker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

impl From<Ended> for WorkerEnd {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Exited(code) if code > 128 => Self::Signalled { signal: code - 128 },
            Ended::Exited(code) => Self::Exited { code },
            Ended::Signalled(signal) => Self::BrokerSignalled { signal },
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WorkerEnd::from(*self).fmt(f)
    }
}

impl BrokerProcess {
    /// Takes over a child that was just spawned. Must be called within the runtime.
    pub fn new(pidfd: OwnedFd) -> io::Result<Self> {
        Ok(Self { pidfd: system::register(pidfd, Interest::READABLE)? })
    }

    /// Asks the broker to end everything below it, and itself.
    pub fn terminate(&self) {
        // An error here means that the process is gone already: nothing is left to be ended.
        let _ = system::signal_process(self.pidfd.as_fd(), Signal::SIGTERM);
    }

    /// Waits for the broker's end and reaps it. Cancel safe.
    pub async fn wait(&self) -> io::Result<Ended> {
        loop {
            let mut guard = self.pidfd.readable().await?;
            match waitid(Id::PIDFd(self.pidfd.as_fd()), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG)? {
                WaitStatus::Exited(_, code) => return Ok(Ended::Exited(code)),
                WaitStatus::Signaled(_, signal, _) => return Ok(Ended::Signalled(signal as i32)),
                _ => guard.clear_ready(),
            }
        }
    }

    /// Ends the broker and everything below it, and reaps it: first by asking, then by force.
    pub async fn end(&self) -> io::Result<Ended> {
        self.terminate();
        if let Ok(ended) = timeout(PATIENCE, self.wait()).await {
            return ended;
        }
        // The worker follows its broker by PDEATHSIG.
        let _ = system::signal_process(self.pidfd.as_fd(), Signal::SIGKILL);
        self.wait().await
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        self.terminate();
    }
}
