//! Check that the kernel denies this process abstract unix sockets outside its Landlock scope.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;

use crate::mediate::call::address::Address;
use crate::mediate::call::socket;

/// Socket with an abstract name that stands for one of the host: it is created before this process enters a scope, so
/// Landlock counts it as outside (`sock_is_scoped` of `security/landlock/task.c`).
#[derive(Debug)]
pub(crate) struct Stranger {
    _socket: OwnedFd,
    name: Address,
}

impl Stranger {
    pub(crate) fn new() -> Result<Self, Errno> {
        let socket = socket::make(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?;
        socket::bind(&socket, &Address::unnamed())?;
        Ok(Self { name: socket::own_name(&socket)?, _socket: socket })
    }

    pub(crate) fn is_denied(&self) -> bool {
        let connected = socket::make(libc::AF_UNIX, libc::SOCK_DGRAM, 0)
            .and_then(|socket| socket::connect(&socket, &self.name));
        connected == Err(Errno::EPERM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::platform::Platform;
    use crate::system;

    #[test]
    fn a_domain_with_scopes_denies_it_to_its_thread_and_those_that_this_one_starts() {
        let Some(scopes) = Domain::of_scopes(Platform::probe()).unwrap() else {
            eprintln!("skipped: this kernel has no scopes");
            return;
        };
        let stranger = Stranger::new().unwrap();
        let enter = || {
            assert!(!stranger.is_denied());
            system::set_no_new_privs().unwrap();
            scopes.enter().unwrap();
            let own = Stranger::new().unwrap();
            let both = || [stranger.is_denied(), own.is_denied()];
            let started = std::thread::scope(|scope| scope.spawn(both).join().unwrap());
            [both(), started]
        };
        let denied = std::thread::scope(|scope| scope.spawn(enter).join().unwrap());
        assert_eq!(denied, [[true, false]; 2]);
        assert!(!stranger.is_denied(), "this thread is in no domain");
    }
}
