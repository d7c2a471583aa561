//! Processes that have a socket open (`proc_pid_fd(5)`).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::iter::once;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::libc::pid_t;

use crate::mediate::call::caller::{self, pidfd_open};
use crate::mediate::call::socket;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mediate) struct HoldingPlace {
    pub(in crate::mediate) thread: pid_t,
    pub(in crate::mediate) number: RawFd,
}

impl HoldingPlace {
    /// Returns the inode of a socket. `ENOTSOCK` for other files, `EBADF` for a closed descriptor.
    pub(in crate::mediate) fn socket(self) -> Result<u64, Errno> {
        let link = fs::read_link(format!("/proc/{}/fd/{}", self.thread, self.number));
        let link = link.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
            // The thread is gone, or has no such descriptor.
            Some(Errno::ENOENT | Errno::ESRCH) | None => Errno::EBADF,
            // The process hides itself (prctl(2), PR_SET_DUMPABLE).
            Some(Errno::EACCES) => Errno::EPERM,
            Some(other) => other,
        })?;
        inode(&link).ok_or(Errno::ENOTSOCK)
    }

    fn duplicate(self) -> Result<OwnedFd, Errno> {
        caller::duplicate(&pidfd_open(self.thread, 0)?, self.number)
    }
}

/// Finds the wanted sockets in the processes that this one may inspect, and returns a descriptor of each. May miss a
/// socket that is passed on meanwhile, or that only a thread with its own table has.
pub(in crate::mediate) fn find(wanted: &HashSet<u64>) -> HashMap<u64, HoldingPlace> {
    let own = std::process::id().cast_signed();
    let mut found = HashMap::new();
    for process in numbers("/proc").filter(|&process| process != own) {
        if found.len() == wanted.len() {
            break;
        }
        find_in(process, wanted, &mut found);
    }
    found
}

fn find_in(thread: pid_t, wanted: &HashSet<u64>, found: &mut HashMap<u64, HoldingPlace>) {
    for number in numbers(&format!("/proc/{thread}/fd")) {
        let place = HoldingPlace { thread, number };
        if let Some(inode) = place.socket().ok().filter(|inode| wanted.contains(inode)) {
            found.insert(inode, place);
        }
    }
}

/// Duplicates the socket with this inode and cookie, from thread `first` or any process that this one may inspect.
pub(in crate::mediate) fn duplicate(inode: u32, cookie: u64, first: pid_t) -> Option<OwnedFd> {
    once(first).chain(numbers("/proc")).find_map(|process| {
        let places =
            numbers(&format!("/proc/{process}/fd")).map(|number| HoldingPlace { thread: process, number });
        let mut named = places.filter(|place| place.socket() == Ok(inode.into()));
        // The descriptor may be another socket by now.
        let is_it = |found: &OwnedFd| socket::cookie(found) == Ok(cookie);
        named.find_map(|place| place.duplicate().ok().filter(is_it))
    })
}

pub(in crate::mediate) fn numbers(directory: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(super) fn inode(link: &Path) -> Option<u64> {
    let name = link.as_os_str().as_bytes().strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(name).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::tests::comes_true;

    fn own(number: RawFd) -> HoldingPlace {
        HoldingPlace { thread: nix::unistd::gettid().as_raw(), number }
    }

    #[test]
    fn a_descriptor_leads_to_its_socket_and_nothing_else_does() {
        let (socket, file) = (UdpSocket::bind("127.0.0.1:0").unwrap(), File::open("/dev/null").unwrap());
        let inode = own(socket.as_raw_fd()).socket().unwrap();
        assert_eq!(nix::sys::stat::fstat(&socket).unwrap().st_ino, inode);
        assert_eq!(own(file.as_raw_fd()).socket(), Err(Errno::ENOTSOCK));
        assert_eq!(own(-1).socket(), Err(Errno::EBADF));
        assert_eq!(HoldingPlace { thread: pid_t::MAX, number: 0 }.socket(), Err(Errno::EBADF));
    }

    #[test]
    fn a_file_whose_name_is_that_of_a_socket_is_none() {
        assert_eq!(inode(Path::new("socket:[12]")), Some(12));
        assert_eq!(inode(Path::new("/tmp/socket:[12]")), None);
        assert_eq!(inode(Path::new("socket:[12] (deleted)")), None);
        assert_eq!(inode(Path::new("socket:[+-]")), None);
    }

    #[test]
    fn what_this_process_alone_has_nobody_has() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let wanted = HashSet::from([own(socket.as_raw_fd()).socket().unwrap()]);
        comes_true(|| find(&wanted).is_empty());
    }
}
