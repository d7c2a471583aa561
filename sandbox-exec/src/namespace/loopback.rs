//! The loopback device of a new network namespace.

#![expect(unsafe_code, reason = "an ioctl takes a union")]

use std::io;
use std::os::fd::AsRawFd;

use nix::libc::{self, c_short, c_uint};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::system::{check, ioctl_command};

/// `IFF_UP` of net/if.h, as wide as the structure wants it.
const UP: c_short = 1;

/// `SIOCSIFFLAGS` (linux/sockios.h).
const UP_OR_DOWN: c_uint = 0x8914;

/// Switches it on: `127.0.0.1` and `::1` lead to whoever listens inside, and nowhere else.
pub(super) fn up() -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: a structure of integers and bytes, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the request is what this call wants (`netdevice(7)`), and outlives it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), ioctl_command(UP_OR_DOWN), &raw const request) }.into())
}
