//! Terminals, as every room that has to do with one needs them.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) use boundary::system::window_size as size;
use boundary::system::with_default_action;

/// The columns of a terminal that knows its size: a fresh pseudo-terminal says 0.
pub(crate) fn columns(terminal: &impl AsFd) -> Option<usize> {
    let columns = usize::from(size(terminal.as_fd())?.ws_col);
    (columns > 0).then_some(columns)
}

/// Stops this process and the others of its job, as ^Z does; returns when it is continued. Where nobody could continue it
/// (an orphaned process group), nothing stops. Must be called on the main thread.
pub(crate) fn stop_job() -> nix::Result<()> {
    // The kernel prefers the main thread for a signal to its process, and delivers it before this returns (kill(2)).
    with_default_action(Signal::SIGTSTP, || kill(Pid::from_raw(0), Signal::SIGTSTP))?
}

/// Writes everything, or returns the number of remaining bytes and the error. The descriptor may be shared
/// with others, who may have made it non-blocking.
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

#[cfg(test)]
mod tests {
    use nix::pty::{Winsize, openpty};

    use super::*;
    use boundary::system::set_window_size;

    #[test]
    fn a_terminal_of_no_size_has_no_known_columns() {
        let pty = openpty(None, None).unwrap();
        assert_eq!(columns(&pty.slave), None);
        set_window_size(&pty.slave, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 });
        assert_eq!(columns(&pty.slave), Some(80));
        assert_eq!(columns(&tempfile::tempfile().unwrap()), None);
    }
}
