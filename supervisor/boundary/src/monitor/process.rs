//! The broker: the sandbox-exec process around a confined program. Signals and waits go only through its pidfd.

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

/// Time for a broker to end all its descendants before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct BrokerProcess {
    pidfd: AsyncFd<OwnedFd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
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
    /// Returns the broker with this pidfd. Must be called within an async runtime.
    pub fn new(pidfd: OwnedFd) -> io::Result<Self> {
        Ok(Self { pidfd: system::register(pidfd, Interest::READABLE)? })
    }

    pub fn terminate(&self) {
        // An error here means that the process has already ended.
        let _ = system::signal_process(self.pidfd.as_fd(), Signal::SIGTERM);
    }

    /// Waits until the broker ends, and reaps it. Cancel safe.
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

    pub async fn end(&self) -> io::Result<Ended> {
        self.terminate();
        if let Ok(ended) = timeout(PATIENCE, self.wait()).await {
            return ended;
        }
        // The death signal (PDEATHSIG) ends the worker with its broker.
        let _ = system::signal_process(self.pidfd.as_fd(), Signal::SIGKILL);
        self.wait().await
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        self.terminate();
    }
}
