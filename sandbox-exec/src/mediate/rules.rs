//! Where a call may lead.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;

use super::address::{Address, Meaning};
use super::caller::Caller;
use super::socket::Kind;
use super::unix::{Tree, by_descriptor};

/// What a call may reach.
#[derive(Debug)]
pub(super) struct Rules {
    tree: Tree,
}

/// Where a call leads.
#[derive(Debug)]
pub(super) struct Target {
    /// The address to act on.
    pub(super) address: Address,
    /// What the address names, which must stay open until then.
    _held: Option<OwnedFd>,
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        Self { address, _held: None }
    }
}

impl Rules {
    /// The rules of a private network namespace: all that is in it is inside, but paths lead out of it.
    pub(super) fn private(tree: Tree) -> Self {
        Self { tree }
    }

    /// Where an address leads, for a socket of this kind; `EACCES` if not there.
    pub(super) fn target(&self, caller: &Caller<'_>, kind: Kind, address: Address) -> Result<Target, Errno> {
        match kind.family {
            libc::AF_UNIX => self.unix(caller, address),
            libc::AF_INET | libc::AF_INET6 | libc::AF_NETLINK => Ok(address.into()),
            _ => Err(Errno::EACCES),
        }
    }

    fn unix(&self, caller: &Caller<'_>, address: Address) -> Result<Target, Errno> {
        match address.meaning() {
            Meaning::Path(path) => {
                let found = self.tree.open(&caller.path(path)?)?;
                Ok(Target { address: Address::of_path(&by_descriptor(&found)), _held: Some(found) })
            }
            _ => Ok(address.into()),
        }
    }
}
