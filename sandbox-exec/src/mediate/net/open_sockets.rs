//! Sockets that are open in some process inside the sandbox.
//!
//! Duplicates in this process would keep the sockets' ports taken. An epoll instance keeps no socket open: the kernel
//! removes a socket from it when its last descriptor is closed, and lists the others (`/proc/PID/fdinfo`,
//! `proc_pid_fdinfo(5)`).

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

/// Open sockets, each with a number by which this process identifies it.
#[derive(Debug)]
pub(in crate::mediate) struct Alive(Epoll);

impl Alive {
    pub(in crate::mediate) fn new() -> Result<Self, Errno> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Self)
    }

    /// Registers a socket by a number. No other socket may have the number.
    pub(in crate::mediate) fn add(&self, socket: &OwnedFd, number: u64) -> Result<(), Errno> {
        self.0.add(socket, EpollEvent::new(EpollFlags::empty(), number))
    }

    /// Registers a socket by a number, unless it is already registered by that number.
    pub(super) fn add_again(&self, socket: &OwnedFd, number: u64) -> Result<(), Errno> {
        match self.add(socket, number) {
            Err(Errno::EEXIST) => Ok(()),
            added => added,
        }
    }

    /// Returns the numbers of the sockets that are open in a process or in an undelivered message. `None` if the kernel
    /// does not list them, for example because this process has too many descriptors.
    pub(in crate::mediate) fn numbers(&self) -> Option<HashSet<u64>> {
        let path = format!("/proc/self/fdinfo/{}", self.0.0.as_raw_fd());
        fs::read_to_string(path).ok().map(|text| text.lines().filter_map(number).collect())
    }
}

/// Parses the hexadecimal number in a line `tfd: N events: E data: NUMBER …`; `None` for other lines.
fn number(line: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace().skip_while(|&word| word != "data:");
    words.nth(1).and_then(|number| u64::from_str_radix(number, 16).ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

    use super::*;
    use crate::tests::comes_true;

    #[test]
    fn a_socket_is_open_also_while_it_is_only_in_a_message() {
        let alive = Alive::new().unwrap();
        let (left, right) = UnixStream::pair().unwrap();
        let passed: OwnedFd = UnixStream::pair().unwrap().0.into();
        alive.add(&passed, 7).unwrap();
        let rights = [passed.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&rights)];
        let data = [std::io::IoSlice::new(b"x")];
        sendmsg::<()>(left.as_raw_fd(), &data, &message, MsgFlags::empty(), None).unwrap();
        drop(passed);
        assert_eq!(alive.numbers(), Some(HashSet::from([7])));
        drop((left, right));
        comes_true(|| alive.numbers() == Some(HashSet::new()));
    }
}
