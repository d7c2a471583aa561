//! Terminal that was made for a program: the first among its descriptors 0, 1 and 2.

use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use ipc::confinement::Tier;

use crate::system;

/// Makes it the controlling terminal of this session, which must have none (`TIOCSCTTY`, `ioctl_tty(2)`). It
/// is not taken from another session.
pub fn take_control() -> io::Result<()> {
    let terminal = own().ok_or_else(|| io::Error::other("none of descriptors 0, 1 and 2 is a terminal"))?;
    system::control_terminal(terminal)
}

/// Own path of the terminal in the full tier's tree.
pub(crate) const OWN_NAME: &str = "/dev/console";

/// Returns the paths that lead to the terminal: `/dev/tty`, which is the controlling terminal of the process
/// that opens it (tty(4)), and its own path, if it has one. `/dev/stderr` leads to the latter.
pub(crate) fn paths(tier: Tier) -> impl Iterator<Item = PathBuf> {
    let own = match tier {
        Tier::Full => Some(OWN_NAME.into()),
        Tier::Floor | Tier::FloorUnmediated => name(),
    };
    [PathBuf::from("/dev/tty")].into_iter().chain(own)
}

/// Returns its own path in this mount namespace, if it has one.
pub(crate) fn name() -> Option<PathBuf> {
    own().and_then(|terminal| nix::unistd::ttyname(terminal).ok())
}

fn own() -> Option<BorrowedFd<'static>> {
    system::standard_streams().into_iter().find(IsTerminal::is_terminal)
}
