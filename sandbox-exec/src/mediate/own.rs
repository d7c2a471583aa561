//! The names that sockets from inside have on the host's network, for as long as these sockets live.
//!
//! To hold a duplicate of each would keep its port taken and its queue listening after its last close. An epoll instance
//! holds nothing: the kernel drops a socket from it when its last duplicate is closed, in whichever process, and lists what
//! is left (`/proc/PID/fdinfo`, `proc_pid_fdinfo(5)`).

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc::c_int;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::internet::plain;

/// How many names may be dead before they are looked for.
const SLACK: usize = 256;

/// A name on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A port of an address (unspecified: of all), of a type of socket.
    Port(c_int, IpAddr, u16),
    /// An abstract unix socket.
    Abstract(Vec<u8>),
}

impl Name {
    /// Whether who looks for `wanted` finds this socket.
    fn answers(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::Port(style, own, port), Self::Port(wanted_style, address, wanted_port)) => {
                let address = plain(*address);
                let any = own.is_unspecified() && (address.is_ipv4() || own.is_ipv6());
                // A socket of all IPv6 addresses is one of all IPv4 addresses too, unless it said otherwise.
                let dual = *own == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                // 0.0.0.0 and :: lead to loopback.
                let anywhere = address.is_unspecified() && own.is_loopback();
                (style, port) == (wanted_style, wanted_port)
                    && (any || dual || anywhere || plain(*own) == address)
            }
            (own, wanted) => own == wanted,
        }
    }
}

/// The names of all sockets from inside.
#[derive(Debug)]
pub(super) struct Own {
    epoll: Epoll,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    by_number: HashMap<u64, Name>,
    last: u64,
    /// How many may be kept before the dead ones are dropped.
    most: usize,
}

impl Own {
    /// Of none.
    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, names: Mutex::default() })
    }

    /// Remembers a socket by its name.
    pub(super) fn remember(&self, socket: &OwnedFd, name: Name) -> Result<(), Errno> {
        let mut names = self.lock();
        names.last += 1;
        let number = names.last;
        self.epoll.add(socket, EpollEvent::new(EpollFlags::empty(), number))?;
        names.by_number.insert(number, name);
        if names.by_number.len() > names.most {
            let live = self.live();
            names.by_number.retain(|number, _| live.contains(number));
            names.most = names.by_number.len() * 2 + SLACK;
        }
        Ok(())
    }

    /// Whether a live socket from inside has this name.
    pub(super) fn has(&self, wanted: &Name) -> bool {
        let names = self.lock();
        let answering: Vec<_> = names
            .by_number
            .iter()
            .filter(|(_, name)| name.answers(wanted))
            .map(|(&number, _)| number)
            .collect();
        if answering.is_empty() {
            return false;
        }
        let live = self.live();
        answering.iter().any(|number| live.contains(number))
    }

    /// The numbers of the sockets that are open somewhere. None when the kernel does not say: then nothing is allowed.
    fn live(&self) -> Vec<u64> {
        let path = format!("/proc/self/fdinfo/{}", self.epoll.0.as_raw_fd());
        fs::read_to_string(path).map(|text| text.lines().filter_map(number).collect()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `tfd: N events: E data: NUMBER …`, in hexadecimal.
fn number(line: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace().skip_while(|&word| word != "data:");
    words.nth(1).and_then(|number| u64::from_str_radix(number, 16).ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use nix::libc;

    use super::*;

    fn port(address: &str, port: u16) -> Name {
        Name::Port(libc::SOCK_STREAM, address.parse().unwrap(), port)
    }

    #[test]
    fn a_name_lives_as_long_as_the_last_duplicate() {
        let own = Own::new().unwrap();
        let socket: OwnedFd = TcpListener::bind("127.0.0.1:0").unwrap().into();
        let (duplicate, another) = (socket.try_clone().unwrap(), socket.try_clone().unwrap());
        own.remember(&duplicate, port("127.0.0.1", 7)).unwrap();
        drop(duplicate);
        drop(socket);
        assert!(own.has(&port("127.0.0.1", 7)));
        drop(another);
        assert!(!own.has(&port("127.0.0.1", 7)));
    }

    #[test]
    fn the_dead_are_forgotten() {
        let own = Own::new().unwrap();
        for _ in 0..3 * SLACK {
            let socket: OwnedFd = TcpListener::bind("127.0.0.1:0").unwrap().into();
            own.remember(&socket, port("127.0.0.1", 7)).unwrap();
        }
        assert!(own.lock().by_number.len() <= SLACK + 1);
    }

    #[test]
    fn a_port_of_one_address_is_not_that_of_another() {
        let answers = |own: &str, wanted: &str| port(own, 7).answers(&port(wanted, 7));
        assert!(answers("127.0.0.1", "127.0.0.1") && answers("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(
            answers("0.0.0.0", "::ffff:127.0.0.1")
                && answers("0.0.0.0", "127.0.0.1")
                && answers("::", "127.0.0.1")
                && answers("::", "::1")
        );
        assert!(answers("127.0.0.1", "0.0.0.0") && answers("::1", "::"));
        assert!(
            !answers("127.0.0.1", "192.0.2.1") && !answers("0.0.0.0", "::1") && !answers("127.0.0.1", "::1")
        );
        assert!(!port("0.0.0.0", 7).answers(&port("127.0.0.1", 8)));
        let datagram = Name::Port(libc::SOCK_DGRAM, "127.0.0.1".parse().unwrap(), 7);
        assert!(!port("127.0.0.1", 7).answers(&datagram));
    }
}
