//! Open sockets inside the sandbox that have a name in the host's network namespace. They are identified by their
//! cookies, since another socket can get the same name later.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use super::open_sockets::Alive;
use crate::mediate::call::socket;

/// Margin over twice the number of open sockets: only with more registered sockets are the closed ones removed.
const SLACK: usize = 256;

#[derive(Debug)]
pub(super) struct Own {
    alive: Alive,
    cookies: Mutex<Cookies>,
}

#[derive(Debug, Default)]
struct Cookies {
    known: HashSet<u64>,
    most: usize,
}

impl Own {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self { alive: Alive::new()?, cookies: Mutex::default() })
    }

    /// Registers a socket. A socket that gave up its port and got another may be registered already.
    pub(in crate::mediate) fn remember(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let cookie = socket::cookie(socket)?;
        let mut cookies = self.lock();
        self.alive.add_again(socket, cookie)?;
        cookies.known.insert(cookie);
        if cookies.known.len() > cookies.most
            && let Some(live) = self.alive.numbers()
        {
            cookies.known.retain(|cookie| live.contains(cookie));
            cookies.most = cookies.known.len() * 2 + SLACK;
        }
        Ok(())
    }

    /// True if the cookie belongs to a socket inside. That socket may be closed by now.
    pub(super) fn made(&self, cookie: u64) -> bool {
        self.lock().known.contains(&cookie)
    }

    fn lock(&self) -> MutexGuard<'_, Cookies> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use nix::mount::{MsFlags, mount};

    use super::*;
    use crate::tree::tests::with_own_mounts;

    fn server() -> OwnedFd {
        TcpListener::bind("127.0.0.1:0").unwrap().into()
    }

    #[test]
    fn the_closed_are_forgotten_and_others_are_not() {
        let own = Own::new().unwrap();
        let kept = server();
        for _ in 0..2 {
            own.remember(&kept).unwrap();
        }
        for _ in 0..3 * SLACK {
            own.remember(&server()).unwrap();
        }
        assert!(own.lock().known.len() <= SLACK + 3);
        assert!(own.made(socket::cookie(&kept).unwrap()));
    }

    #[test]
    fn sockets_are_kept_while_the_kernel_does_not_say_which_are_open() {
        with_own_mounts(|| {
            let own = Own::new()?;
            let [first, second] = [server(), server()];
            own.remember(&first)?;
            own.lock().most = 0;
            mount(Some("none"), "/proc", Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            own.remember(&second)?;
            assert!(own.made(socket::cookie(&first)?) && own.made(socket::cookie(&second)?));
            Ok(())
        });
    }
}
