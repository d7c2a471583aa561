//! The terminal that was made for a program: the first among its descriptors 0, 1 and 2.

use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use ipc::confinement::Tier;
use nix::libc;

use crate::system::check;

/// Makes it the controlling terminal of this session, which must have none (`TIOCSCTTY`, `ioctl_tty(2)`). It is not taken from
/// another session.
pub fn take_control() -> io::Result<()> {
    let terminal = own().ok_or_else(|| io::Error::other("none of descriptors 0, 1 and 2 is a terminal"))?;
    // SAFETY: takes an integer argument; 0 means not to steal it.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }.into())
}

/// Its own path in the full tier's tree.
pub(crate) const OWN_NAME: &str = "/dev/console";

/// The paths that lead to it: `/dev/tty`, which is the controlling terminal of whoever opens it (tty(4)), and its own, if it has
/// one. `/dev/stderr` leads to the latter.
pub(crate) fn paths(tier: Tier) -> impl Iterator<Item = PathBuf> {
    let own = match tier {
        Tier::Full => Some(OWN_NAME.into()),
        Tier::Floor | Tier::FloorUnmediated => name(),
    };
    [PathBuf::from("/dev/tty")].into_iter().chain(own)
}

/// Its own path in this mount namespace, if it has one.
pub(crate) fn name() -> Option<PathBuf> {
    own().and_then(|terminal| nix::unistd::ttyname(terminal).ok())
}

fn own() -> Option<BorrowedFd<'static>> {
    // SAFETY: the standard streams are open for as long as the process is; what is not open is no terminal.
    let streams = (0..=2).map(|number| unsafe { BorrowedFd::borrow_raw(number) });
    streams.into_iter().find(IsTerminal::is_terminal)
}
