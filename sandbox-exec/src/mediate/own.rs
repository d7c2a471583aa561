//! The names that sockets from inside have on the host's network, for as long as these sockets live.
//!
//! To hold a duplicate of each would keep its port taken and its queue listening after its last close. An epoll instance
//! holds nothing: the kernel drops a socket from it when its last duplicate is closed, in whichever process, and lists what
//! is left (`/proc/PID/fdinfo`, `proc_pid_fdinfo(5)`).

use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

/// How many names may be dead before they are looked for.
const SLACK: usize = 256;

/// What a socket is known by on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// An internet socket: its cookie, since its port may be another's too.
    Socket(u64),
    /// An abstract unix socket: nobody else can have its name.
    Abstract(Vec<u8>),
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
        let answering: Vec<_> =
            names.by_number.iter().filter(|&(_, name)| name == wanted).map(|(&number, _)| number).collect();
        if answering.is_empty() {
            return false;
        }
        let live = self.live();
        answering.iter().any(|number| live.contains(number))
    }

    /// Whether the internet socket of this cookie is from inside; if it is closed, unless it is forgotten.
    pub(super) fn made(&self, cookie: u64) -> bool {
        self.lock().by_number.values().any(|name| *name == Name::Socket(cookie))
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

    use super::*;

    fn name() -> Name {
        Name::Abstract(b"name".to_vec())
    }

    #[test]
    fn a_name_lives_as_long_as_the_last_duplicate() {
        let own = Own::new().unwrap();
        let socket: OwnedFd = TcpListener::bind("127.0.0.1:0").unwrap().into();
        let (duplicate, another) = (socket.try_clone().unwrap(), socket.try_clone().unwrap());
        own.remember(&duplicate, name()).unwrap();
        drop(duplicate);
        drop(socket);
        assert!(own.has(&name()));
        drop(another);
        assert!(!own.has(&name()));
    }

    #[test]
    fn the_dead_are_forgotten() {
        let own = Own::new().unwrap();
        for _ in 0..3 * SLACK {
            let socket: OwnedFd = TcpListener::bind("127.0.0.1:0").unwrap().into();
            own.remember(&socket, name()).unwrap();
        }
        assert!(own.lock().by_number.len() <= SLACK + 1);
    }
}
