//! The loopback device of a new network namespace.

#![expect(unsafe_code, reason = "an ioctl takes a union")]

use std::io;
use std::os::fd::AsRawFd;

use nix::libc::{self, c_short, c_uint};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::system::{check, ioctl_command};

/// `IFF_UP` of net/if.h, in the width of the structure's field.
const UP: c_short = 1;

/// `SIOCSIFFLAGS` (linux/sockios.h).
const UP_OR_DOWN: c_uint = 0x8914;

/// `SIOCSIFADDR`, `SIOCSIFNETMASK`.
const ADDRESS: c_uint = 0x8916;
const MASK: c_uint = 0x891c;

/// Switches the loopback device on: `127.0.0.1` and `::1` lead only to listeners in the same namespace.
///
/// The device also gets an address of the test networks (198.18.0.0/15, RFC 2544). With `127.0.0.1` alone, a
/// machine counts as one without IPv4, and `AI_ADDRCONFIG` finds no `localhost` (getaddrinfo(3)).
pub(super) fn up() -> io::Result<()> {
    set(UP_OR_DOWN, b"lo", libc::__c_anonymous_ifr_ifru { ifru_flags: UP })?;
    set(ADDRESS, b"lo:0", address([198, 18, 0, 1]))?;
    set(MASK, b"lo:0", address([255, 254, 0, 0]))
}

fn set(command: c_uint, device: &[u8], value: libc::__c_anonymous_ifr_ifru) -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: value };
    for (place, byte) in request.ifr_name.iter_mut().zip(device) {
        *place = libc::c_char::from_ne_bytes([*byte]);
    }
    // SAFETY: the request is what these calls want (`netdevice(7)`), and outlives them.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), ioctl_command(command), &raw const request) }.into())
}

/// Returns a `struct sockaddr_in` without a port.
fn address(bytes: [u8; 4]) -> libc::__c_anonymous_ifr_ifru {
    let mut sa_data = [0; 14];
    for (place, byte) in sa_data.iter_mut().skip(2).zip(bytes) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    let sa_family = libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default();
    libc::__c_anonymous_ifr_ifru { ifru_addr: libc::sockaddr { sa_family, sa_data } }
}
