use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsRawFd, RawFd};

use nix::errno::Errno;

use crate::mediate::call::caller::{duplicate, pidfd_open};
use crate::mediate::call::socket::{self, SocketKind};
use crate::mediate::kernel::open_descriptors::HoldingPlace;

/// Way by which the mediator gets access to its callers' sockets. The filter and the mediator must use the same way.
#[derive(Clone, Debug)]
pub enum Sockets {
    /// The mediator duplicates a caller's socket (`pidfd_getfd(2)`, Linux 5.6).
    Duplicated,
    /// The mediator creates all sockets, since a container's profile denies `pidfd_getfd(2)`.
    Made(HandedIn),
}

#[derive(Clone, Debug, Default)]
pub struct HandedIn {
    by_inode: HashMap<u64, SocketKind>,
    others: bool,
}

impl Sockets {
    /// Finds out which way works. Must be called in the process that will start the programs, with their descriptors.
    pub fn probe() -> Self {
        let duplicated = pidfd_open(std::process::id().cast_signed(), 0)
            .and_then(|process| duplicate(&process, process.as_raw_fd()));
        match duplicated {
            Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS) => Self::Made(HandedIn::find()),
            _ => Self::Duplicated,
        }
    }

    pub(crate) fn are_made(&self) -> bool {
        matches!(self, Self::Made(_))
    }
}

impl HandedIn {
    fn find() -> Self {
        let Ok(all) = fs::read_dir("/proc/self/fd") else {
            return Self { others: true, ..Self::default() };
        };
        let mut found = Self::default();
        for number in all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok()) {
            let place = HoldingPlace { thread: std::process::id().cast_signed(), number };
            if let Ok(inode) = place.socket() {
                match socket::kind_of_own(number) {
                    Some(kind) => drop(found.by_inode.insert(inode, kind)),
                    None => found.others = true,
                }
            }
        }
        found
    }

    pub(super) fn kind(&self, inode: u64) -> Option<SocketKind> {
        self.by_inode.get(&inode).copied()
    }

    pub(in crate::mediate) fn take_addresses(&self) -> bool {
        self.others || self.by_inode.values().any(|kind| kind.takes_addresses())
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn sockets_that_are_open_already_are_found() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let inode = nix::sys::stat::fstat(&socket).unwrap().st_ino;
        let found = HandedIn::find();
        assert!(found.take_addresses() && found.kind(inode).is_some_and(SocketKind::takes_addresses));
        assert_eq!(found.kind(0), None);
    }

    #[test]
    fn what_this_machine_allows_is_used() {
        let allowed = duplicate(&pidfd_open(std::process::id().cast_signed(), 0).unwrap(), 0).is_ok();
        assert_eq!(Sockets::probe().are_made(), !allowed);
    }
}
