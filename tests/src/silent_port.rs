//! A port of loopback at which nobody listens.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket};

/// A port that refuses every connection. It is bound for as long as this lives: a port that was only free a moment ago may
/// belong to the server of another test by now.
#[derive(Debug)]
pub struct SilentPort {
    _bound: OwnedFd,
    port: u16,
}

impl SilentPort {
    /// Takes a port of 127.0.0.1.
    pub fn take() -> Self {
        let bound =
            socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(bound.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("a port");
        let port = getsockname::<SockaddrIn>(bound.as_raw_fd()).expect("its address").port();
        Self { _bound: bound, port }
    }

    /// The number of the port.
    pub const fn number(&self) -> u16 {
        self.port
    }

    /// The address.
    pub const fn address(&self) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), self.port)
    }
}
