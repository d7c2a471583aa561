//! The names that sockets from inside have on the host's network, for as long as these sockets live.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use super::alive::Alive;

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
    alive: Alive,
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
        Ok(Self { alive: Alive::new()?, names: Mutex::default() })
    }

    /// Remembers a socket by its name.
    pub(super) fn remember(&self, socket: &OwnedFd, name: Name) -> Result<(), Errno> {
        let mut names = self.lock();
        names.last += 1;
        let number = names.last;
        match self.alive.add(socket, number) {
            // An internet socket that gave up a port, and has another now.
            Err(Errno::EEXIST) if matches!(name, Name::Socket(_)) => return Ok(()),
            added => added?,
        }
        names.by_number.insert(number, name);
        if names.by_number.len() > names.most
            && let Some(live) = self.alive.numbers()
        {
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
        self.alive.numbers().is_some_and(|live| answering.iter().any(|number| live.contains(number)))
    }

    /// Whether the internet socket of this cookie is from inside; if it is closed, unless it is forgotten.
    pub(super) fn made(&self, cookie: u64) -> bool {
        self.lock().by_number.values().any(|name| *name == Name::Socket(cookie))
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use nix::mount::{MsFlags, mount};

    use super::*;
    use crate::mediate::socket;
    use crate::tests::comes_true;
    use crate::tree::tests::with_own_mounts;

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
        comes_true(|| !own.has(&name()));
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

    #[test]
    fn names_are_kept_while_the_kernel_does_not_say_whose_sockets_are_open() {
        with_own_mounts(|| {
            let own = Own::new()?;
            let [first, second]: [OwnedFd; 2] =
                std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap().into());
            let cookie = socket::cookie(&first)?;
            own.remember(&first, Name::Socket(cookie))?;
            own.lock().most = 0;
            mount(Some("none"), "/proc", Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            own.remember(&second, name())?;
            assert!(own.made(cookie));
            assert!(!own.has(&name()), "nothing shows that it is open");
            Ok(())
        });
    }
}
