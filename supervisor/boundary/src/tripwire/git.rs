//! Git, asked where it can do no harm: a repository may be hostile, so that git reads it confined, and nobody believes it more than
//! can be checked.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};

use crate::system;

/// The longest that a broker may take to end what it holds.
const FAREWELL: Duration = Duration::from_secs(2);

/// Starts commands that may read, and do nothing else.
pub trait ConfinedGit: fmt::Debug + Send + Sync {
    /// Starts a command in a directory.
    fn start(&self, directory: &Path, command: &[&OsStr]) -> io::Result<GitQuestion>;
}

/// A confined command that answers. It is ended when this is dropped.
#[derive(Debug)]
pub struct GitQuestion {
    ends: Option<(File, File)>,
    broker: OwnedFd,
    /// Nobody reads what the broker reports, but it would end without a reader.
    _status: OwnedFd,
    /// The time by which everything has to be said.
    deadline: Instant,
}

impl GitQuestion {
    /// A command by our ends of its standard input and output, and the process and the reports of the broker that holds it.
    pub fn new([stdin, stdout]: [OwnedFd; 2], [broker, status]: [OwnedFd; 2], patience: Duration) -> Self {
        let ends = Some((stdin.into(), stdout.into()));
        Self { ends, broker, _status: status, deadline: Instant::now() + patience }
    }

    /// Writes at most as much as a pipe of one page takes while nothing is in it.
    pub(super) fn say(&mut self, text: &[u8]) -> io::Result<()> {
        self.ends.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.0.write_all(text)
    }

    /// Reads what there is, once there is something; 0 at the end.
    pub(super) fn hear(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (_, stdout) = self.ends.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        if !is_readable(stdout, self.deadline.saturating_duration_since(Instant::now()))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stdout.read(buffer)
    }

    /// Everything that it prints, of at most this many bytes.
    pub(super) fn everything(mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match self.hear(&mut buffer)? {
                0 => return Ok(text),
                read if text.len() + read > most => return Err(io::ErrorKind::FileTooLarge.into()),
                read => text.extend_from_slice(&buffer[..read]),
            }
        }
    }
}

impl Drop for GitQuestion {
    fn drop(&mut self) {
        drop(self.ends.take());
        // It may have ended by itself.
        let _ = system::signal_process(self.broker.as_fd(), Signal::SIGTERM);
        if !is_readable(&self.broker, FAREWELL).unwrap_or(false) {
            let _ = system::signal_process(self.broker.as_fd(), Signal::SIGKILL);
        }
        let _ = waitid(Id::PIDFd(self.broker.as_fd()), WaitPidFlag::WEXITED);
    }
}

/// Waits until something can be read, or a process has ended; false when the time is up.
fn is_readable(descriptor: &impl AsFd, patience: Duration) -> io::Result<bool> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let mut polled = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            // A signal that has nothing to do with it.
            Err(Errno::EINTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}
