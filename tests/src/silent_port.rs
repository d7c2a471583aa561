use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket};

/// Local port that refuses every connection. It stays bound while this value lives, so that no server of another test
/// gets it.
#[derive(Debug)]
pub struct SilentPort {
    _bound: OwnedFd,
    port: u16,
}

impl SilentPort {
    pub fn take() -> Self {
        let bound =
            socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(bound.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("a port");
        let port = getsockname::<SockaddrIn>(bound.as_raw_fd()).expect("its address").port();
        Self { _bound: bound, port }
    }

    pub const fn number(&self) -> u16 {
        self.port
    }

    pub const fn address(&self) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), self.port)
    }
}
