//! Handover of the listener for mediated calls from the program's process to the broker.
//!
//! The filter traps calls that send descriptors, so the listener cannot be sent over a socket. Instead the child starts
//! with the broker's own table of descriptors, attaches the filter, and then takes a copy of the table. The listener
//! remains in the broker's.

#![expect(
    unsafe_code,
    reason = "the listener's number is told by the child that put it into this process's table"
)]

use std::io;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::Pid;

use crate::mediate::Filter;
use crate::system;

/// Message that there is no filter. A listener's number is sent plus [`FIRST`], since the channel cannot carry zero.
const NONE: u64 = 1;
const FIRST: u64 = NONE + 1;

/// Channel that carries the descriptor number of the listener.
///
/// Not a pipe: after a write to one, the scheduler would run the reader at once, while the writer should go on.
#[derive(Debug)]
pub(crate) struct Handover(EventFd);

impl Handover {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?))
    }

    /// Attaches the filter, leaves the broker's table of descriptors, and sends the listener's number. Needs
    /// `no_new_privs`. The calling process must have closed no descriptor since the fork, which shares the table.
    pub(crate) fn give(&self, filter: Option<&Filter>) -> io::Result<()> {
        // Its number stays open in the broker's table; here it closes on exec.
        let listener =
            filter.map(Filter::attach).transpose().map(|listener| listener.map(IntoRawFd::into_raw_fd));
        // Even after a failure: from now on this process closes only its own descriptors.
        system::leave_descriptors()?;
        let told = listener?.map_or(NONE, |number| FIRST + u64::from(number.cast_unsigned()));
        Ok(self.0.write(told).map(drop)?)
    }

    /// Waits for the listener; `None` without a filter, or if the program has ended. Close nothing before this.
    pub(crate) fn take(self, program: Pid) -> io::Result<Option<OwnedFd>> {
        // Adding to the shared table is harmless. SIGCHLD does not serve: it can be from another child, of
        // the image that this process had before exec.
        let process = system::open_process(program.as_raw())?;
        let mut ready =
            [PollFd::new(self.0.as_fd(), PollFlags::POLLIN), PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut ready, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) if ready[0].any() == Some(true) => break,
                Ok(_) => return Ok(None),
            }
        }
        let number =
            self.0.read()?.checked_sub(FIRST).map(RawFd::try_from).transpose().map_err(io::Error::other)?;
        // SAFETY: the child put it into this table, and nothing else knows of it.
        Ok(number.map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
    }
}
