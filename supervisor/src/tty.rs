//! Terminals, as every room that has to do with one needs them.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) use crate::system::window_size as size;
use crate::system::with_default_action;

/// Stops this process and the others of its job, as ^Z does; returns when it is continued. Where nobody could continue it
/// (an orphaned process group), nothing stops. Must be called on the main thread.
pub(crate) fn stop_job() -> nix::Result<()> {
    // The kernel prefers the main thread for a signal to its process, and delivers it before this returns (kill(2)).
    with_default_action(Signal::SIGTSTP, || kill(Pid::from_raw(0), Signal::SIGTSTP))?
}

/// Writes everything, or tells how much is left and why. The descriptor may be shared with others, who may have made it
/// non-blocking.
pub(crate) fn write_all(sink: &mut (impl Write + AsFd), mut piece: &[u8]) -> Result<(), (usize, io::Error)> {
    while !piece.is_empty() {
        match sink.write(piece) {
            Ok(written) => piece = &piece[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut ready = [PollFd::new(sink.as_fd(), PollFlags::POLLOUT)];
                poll(&mut ready, PollTimeout::NONE).map_err(|errno| (piece.len(), errno.into()))?;
            }
            Err(error) => return Err((piece.len(), error)),
        }
    }
    Ok(())
}
