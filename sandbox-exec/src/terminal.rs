//! Terminal of a program: the first terminal among the program's descriptors 0, 1 and 2.

use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use ipc::confinement::Tier;

use crate::system;

/// Makes the terminal the controlling terminal of this session (`TIOCSCTTY`, `ioctl_tty(2)`). Fails if the session
/// already has one, or if the terminal belongs to another session.
pub fn take_control() -> io::Result<()> {
    let terminal = own().ok_or_else(|| io::Error::other("none of descriptors 0, 1 and 2 is a terminal"))?;
    system::control_terminal(terminal)
}

/// Path of the program's terminal in the full tier.
pub(crate) const OWN_NAME: &str = "/dev/console";

/// Returns the paths by which a program may open its terminal: `/dev/tty`, which stands for the opening process's
/// controlling terminal (tty(4)), and the terminal's own path, to which `/dev/stderr` leads.
pub(crate) fn paths(tier: Tier) -> impl Iterator<Item = PathBuf> {
    let own = match tier {
        Tier::Full => Some(OWN_NAME.into()),
        Tier::Floor | Tier::FloorUnmediated => name(),
    };
    [PathBuf::from("/dev/tty")].into_iter().chain(own)
}

pub(crate) fn name() -> Option<PathBuf> {
    own().and_then(|terminal| nix::unistd::ttyname(terminal).ok())
}

fn own() -> Option<BorrowedFd<'static>> {
    system::standard_streams().into_iter().find(IsTerminal::is_terminal)
}
