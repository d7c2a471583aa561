//! The standard streams of `bailiwick sandbox` that are no terminals: the command gets pipes of ours in their place.
//!
//! A descriptor carries the place that it was opened in. A socket from the host connects to the host from within a private
//! network; a file that lies on the host's mount has its modes changed (fchmod(2)) where the command's own view of it is
//! read-only; a directory leads to everything below it. A pipe leads to its other end and nowhere else. So:
//!
//! | the user gives | the command has |
//! | --- | --- |
//! | a terminal | its own ([`super::terminal`]) |
//! | an anonymous pipe to read from | that pipe |
//! | a directory to read from | nothing: it is not started |
//! | anything else to read from: a file, a socket, a named pipe, a device | a pipe that we fill |
//! | anything but a terminal to write to | a pipe that we empty; one, where output and errors go to the same place |
//!
//! An anonymous pipe is passed on as it is, because whoever fills another from it would take what the command leaves: in
//! `producer | while read line; do bailiwick sandbox -- …; done`, all the lines. A file's position, by contrast, is put back to
//! where the command stopped reading.
//!
//! What writes to a pipe is told when nobody reads any more, and waits while nobody does, as it would without us.

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

/// How much is passed on at once: what a pipe holds (pipe(7)).
const PIECE: usize = 64 << 10;

/// The standard streams of the command.
#[derive(Debug)]
pub(super) struct CommandStreams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Those that are a terminal of the command's own.
#[derive(Debug, Default)]
pub(super) struct OnTerminal {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// Passes on what the others carry.
#[derive(Debug)]
pub(super) struct SandboxPassage {
    input: Option<Inlet>,
    output: Option<Outlet>,
    errors: Errors,
}

/// Where standard error goes.
#[derive(Debug)]
enum Errors {
    /// The command's terminal.
    Terminal,
    /// The same place as standard output.
    Output,
    Own(Outlet),
}

/// What was passed on.
#[derive(Debug, Default)]
pub(super) struct AllPassed {
    /// The end of standard error, unless that went to the command's terminal.
    pub(super) errors: Option<Tail>,
    /// Why not all of standard output was, other than that nobody reads it.
    pub(super) failure: Option<io::Error>,
}

impl SandboxPassage {
    /// Makes the streams that are not on a terminal, for `owner` where that is not us.
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
            // In the order in which it was written.
            None if together => (stdout.try_clone()?, Errors::Output),
            None => Outlet::open(user_errors, UnreadOutput::IsLost, owner)
                .map(|(own, outlet)| (own, Errors::Own(outlet)))?,
        };
        Ok((CommandStreams { stdin, stdout, stderr }, Self { input, output, errors }))
    }

    /// Waits until all that the command wrote is passed on, and leaves its input to whoever reads it next. To be called when
    /// the command is gone.
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

/// Waits until there is something to read, or to learn that it ended; or until nobody reads the sink any more: false.
fn wait_for(source: &impl AsFd, sink: &impl AsFd) -> io::Result<bool> {
    loop {
        let mut either = [
            PollFd::new(source.as_fd(), PollFlags::POLLIN),
            // What is not asked for is told (POLLERR, POLLHUP): nobody is at the other end (poll(2)).
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
