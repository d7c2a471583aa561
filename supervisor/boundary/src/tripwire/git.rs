//! Runs git in a sandbox, since a repository may be hostile. Only such output is used as can be verified.

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

const FAREWELL: Duration = Duration::from_secs(2);

/// Starts git's commands in a sandbox that only permits reading.
pub trait ConfinedGit: fmt::Debug + Send + Sync {
    fn start(&self, directory: &Path, command: &[&OsStr]) -> io::Result<GitQuestion>;
}

/// A running confined command. Dropping this value ends it.
#[derive(Debug)]
pub struct GitQuestion {
    ends: Option<(File, File)>,
    broker: OwnedFd,
    /// Read end of the sandbox's status pipe. Closing it ends the sandbox.
    _status: OwnedFd,
    deadline: Instant,
}

impl GitQuestion {
    pub fn new([stdin, stdout]: [OwnedFd; 2], [broker, status]: [OwnedFd; 2], patience: Duration) -> Self {
        let ends = Some((stdin.into(), stdout.into()));
        Self { ends, broker, _status: status, deadline: Instant::now() + patience }
    }

    /// Writes text to the command. Blocks if the text is longer than a memory page and the command does not read it.
    pub(super) fn say(&mut self, text: &[u8]) -> io::Result<()> {
        self.ends.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.0.write_all(text)
    }

    /// Reads output into `buffer`. Returns the number of bytes, or 0 at the end. Fails at the deadline.
    pub(super) fn hear(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (_, stdout) = self.ends.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        if !is_readable(stdout, self.deadline.saturating_duration_since(Instant::now()))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stdout.read(buffer)
    }

    /// Reads all output. Fails if there are more than `most` bytes.
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
        // The command may have ended by itself.
        let _ = system::signal_process(self.broker.as_fd(), Signal::SIGTERM);
        if !is_readable(&self.broker, FAREWELL).unwrap_or(false) {
            let _ = system::signal_process(self.broker.as_fd(), Signal::SIGKILL);
        }
        let _ = waitid(Id::PIDFd(self.broker.as_fd()), WaitPidFlag::WEXITED);
    }
}

/// Waits until a descriptor is readable. Returns false if it is not readable after the time `patience`.
fn is_readable(descriptor: &impl AsFd, patience: Duration) -> io::Result<bool> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let mut polled = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            // A signal interrupted the wait.
            Err(Errno::EINTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}
