//! Functions for terminals that several modules need.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) use boundary::system::window_size as size;
use boundary::system::with_default_action;

/// Returns the width of a terminal in columns; `None` if it is unknown. A new pseudo-terminal reports 0.
pub(crate) fn columns(terminal: &impl AsFd) -> Option<usize> {
    let columns = usize::from(size(terminal.as_fd())?.ws_col);
    (columns > 0).then_some(columns)
}

/// Stops this process and the others of its job, as ^Z does, and returns when it is continued. Does nothing in an
/// orphaned process group, because no shell could continue it. Must be called on the main thread.
pub(crate) fn stop_job() -> nix::Result<()> {
    // The kernel prefers the main thread for this signal and delivers it before the call returns (kill(2)).
    with_default_action(Signal::SIGTSTP, || kill(Pid::from_raw(0), Signal::SIGTSTP))?
}

/// Writes all bytes. An error comes with the number of bytes that were not written. The descriptor may be non-blocking,
/// because processes with which it is shared may make it so.
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
