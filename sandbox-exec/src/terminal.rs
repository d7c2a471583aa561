//! Terminal that was made for a program: the first among its descriptors 0, 1 and 2.

use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use ipc::confinement::Tier;

use crate::system;

/// Makes the terminal of the standard streams this session's controlling terminal, if the session has none
/// (`TIOCSCTTY`, `ioctl_tty(2)`). Does not take a terminal from another session.
pub fn take_control() -> io::Result<()> {
    let terminal = own().ok_or_else(|| io::Error::other("none of descriptors 0, 1 and 2 is a terminal"))?;
    system::control_terminal(terminal)
}

/// Terminal's path in the full tier's tree.
pub(crate) const OWN_NAME: &str = "/dev/console";

/// Returns the terminal's paths: `/dev/tty`, the controlling terminal of its opener (tty(4)), and its own, to
/// which `/dev/stderr` leads.
pub(crate) fn paths(tier: Tier) -> impl Iterator<Item = PathBuf> {
    let own = match tier {
        Tier::Full => Some(OWN_NAME.into()),
        Tier::Floor | Tier::FloorUnmediated => name(),
    };
    [PathBuf::from("/dev/tty")].into_iter().chain(own)
}

/// Returns the terminal's own path in this mount namespace.
pub(crate) fn name() -> Option<PathBuf> {
    own().and_then(|terminal| nix::unistd::ttyname(terminal).ok())
}

fn own() -> Option<BorrowedFd<'static>> {
    system::standard_streams().into_iter().find(IsTerminal::is_terminal)
}
