//! The terminal that was made for a program: the first among its descriptors 0, 1 and 2.

use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use nix::libc;

use crate::system::check;

/// Makes it the controlling terminal of this session, which must have none (`TIOCSCTTY`, `ioctl_tty(2)`). It is not taken from
/// another session.
pub fn take_control() -> io::Result<()> {
    let terminal = own().ok_or_else(|| io::Error::other("none of descriptors 0, 1 and 2 is a terminal"))?;
    // SAFETY: takes an integer argument; 0 means not to steal it.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }.into())
}

/// The paths that lead to it: `/dev/tty`, which is the controlling terminal of whoever opens it (tty(4)), and its own, as long as
/// it has one in this mount namespace. `/dev/stderr` leads to the latter.
pub fn paths() -> impl Iterator<Item = PathBuf> {
    let name = own().and_then(|terminal| nix::unistd::ttyname(terminal).ok());
    [PathBuf::from("/dev/tty")].into_iter().chain(name)
}

fn own() -> Option<BorrowedFd<'static>> {
    // SAFETY: the standard streams are open for as long as the process is; what is not open is no terminal.
    let streams = (0..=2).map(|number| unsafe { BorrowedFd::borrow_raw(number) });
    streams.into_iter().find(IsTerminal::is_terminal)
}
