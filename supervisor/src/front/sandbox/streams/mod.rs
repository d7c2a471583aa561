//! The standard streams of `bailiwick sandbox` that are no terminals. The command gets our pipes in their place.
//!
//! A descriptor keeps the rights of the process that opened it. A socket from outside the sandbox leads outside, even
//! from a private network. A file on a host mount can have its mode changed (fchmod(2)) where the command's own view is
//! read-only. A directory gives access to everything below it. A pipe leads only to its other end. So:
//!
//! | the user gives | the command has |
//! | --- | --- |
//! | a terminal | its own ([`super::terminal`]) |
//! | an anonymous pipe to read from | that pipe |
//! | a directory to read from | nothing: it is not started |
//! | anything else to read from: a file, a socket, a named pipe, a device | a pipe that we fill |
//! | anything but a terminal to write to | a pipe that we empty; one for output and errors with the same destination |
//!
//! An anonymous pipe is passed on unchanged. If we filled another pipe from it, we would take data that the command
//! does not read: in `producer | while read line; do bailiwick sandbox -- …; done`, all the lines. For a file we set
//! the position back to where the command stopped reading.
//!
//! As without pipes of ours, the command is signalled when nobody reads its output, and waits while a reader is slow.

mod inlet;
mod outlet;
mod pipe;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use ipc::confinement::Identity;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;

use self::inlet::Inlet;
pub(super) use self::outlet::Tail;
use self::outlet::{Outlet, SandboxPassed, UnreadOutput};

/// Maximum number of bytes that are passed on at once: the capacity of a pipe (pipe(7)).
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct CommandStreams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

#[derive(Debug, Default)]
pub(super) struct OnTerminal {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

#[derive(Debug)]
pub(super) struct SandboxPassage {
    input: Option<Inlet>,
    output: Option<Outlet>,
    errors: Errors,
}

#[derive(Debug)]
enum Errors {
    Terminal,
    Output,
    Own(Outlet),
}

#[derive(Debug, Default)]
pub(super) struct AllPassed {
    /// Last part of standard error; `None` if standard error was the command's terminal.
    pub(super) errors: Option<Tail>,
    /// The first error of passing on output; `None` without an error. An output that nobody reads is no error.
    pub(super) failure: Option<io::Error>,
}

impl SandboxPassage {
    /// Prepares the streams of a command and our ends of their pipes. The pipes belong to `owner`.
    pub(super) fn prepare(own: OnTerminal, owner: Option<Identity>) -> io::Result<(CommandStreams, Self)> {
        let (stdin, input) = match own.stdin {
            Some(own) => (own, None),
            None => Inlet::open(io::stdin().as_fd().try_clone_to_owned()?, owner)?,
        };
        let (user_output, user_errors) =
            (io::stdout().as_fd().try_clone_to_owned()?, io::stderr().as_fd().try_clone_to_owned()?);
        let together = own.stdout.is_none() && is_same(&user_output, &user_errors)?;
        let (stdout, output) = match own.stdout {
            Some(own) => (own, None),
            None => Outlet::open(user_output, UnreadOutput::Ends, owner)
                .map(|(own, outlet)| (own, Some(outlet)))?,
        };
        let (stderr, errors) = match own.stderr {
            Some(own) => (own, Errors::Terminal),
            // Both streams share a pipe, so that the order of writes is kept.
            None if together => (stdout.try_clone()?, Errors::Output),
            None => Outlet::open(user_errors, UnreadOutput::IsLost, owner)
                .map(|(own, outlet)| (own, Errors::Own(outlet)))?,
        };
        Ok((CommandStreams { stdin, stdout, stderr }, Self { input, output, errors }))
    }

    /// Waits until all output is passed on. Unread input stays for the next reader. The command must have ended.
    pub(super) async fn finish(self) -> AllPassed {
        if let Some(input) = self.input {
            input.finish().await;
        }
        let SandboxPassed { tail, failure } = match self.output {
            Some(output) => output.finish().await,
            None => SandboxPassed::default(),
        };
        let errors = match self.errors {
            Errors::Terminal => None,
            Errors::Output => Some(tail),
            Errors::Own(errors) => Some(errors.finish().await.tail),
        };
        AllPassed { errors, failure }
    }
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> io::Result<bool> {
    let (one, other) = (fstat(one)?, fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

/// Waits until the source is readable or the sink has no reader. Returns false in the second case.
fn wait_for(source: &impl AsFd, sink: &impl AsFd) -> io::Result<bool> {
    loop {
        let mut either = [
            PollFd::new(source.as_fd(), PollFlags::POLLIN),
            // POLLERR and POLLHUP are always reported. They mean that the other end is closed (poll(2)).
            PollFd::new(sink.as_fd(), PollFlags::empty()),
        ];
        match poll(&mut either, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let [_, sink] = either.map(|polled| polled.any().unwrap_or(false));
        return Ok(!sink);
    }
}
