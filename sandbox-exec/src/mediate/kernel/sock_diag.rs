//! Queries to the kernel about the sockets of the network namespace (`sock_diag(7)`).

use std::fs::File;
use std::io::{Read, Write};

use nix::errno::Errno;
use nix::libc::{self, c_int};

use crate::mediate::call::socket;

// Types of queries: by family, and the older one for TCP of all families (`linux/inet_diag.h`).
const BY_FAMILY: u16 = 20;
const OF_TCP: u16 = 18;
/// Size of `struct nlmsghdr` in bytes.
const HEADER: usize = 16;
/// Size of the buffer in bytes, larger than any datagram of an answer (`netlink_dump` of `net/netlink/af_netlink.c`).
const BUFFER: usize = 64 << 10;

pub(in crate::mediate) struct Question<'a> {
    pub(in crate::mediate) style: c_int,
    /// Address family; `None` for both families of internet sockets.
    pub(in crate::mediate) family: Option<c_int>,
    /// Socket states to match, as a set of bits.
    pub(in crate::mediate) states: u32,
    /// Addresses and ports to match (`struct inet_diag_sockid`).
    pub(in crate::mediate) sockets: &'a [u8],
    /// True to list all matching sockets; false to find the one that would get a packet.
    pub(in crate::mediate) all: bool,
}

impl Question<'_> {
    /// Sends the query, and passes each entry (`struct inet_diag_msg`) of the answer to `each`.
    pub(in crate::mediate) fn ask(&self, mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
        Kernel::new()?.ask(&self.message()?, self.all, &mut each)
    }

    fn message(&self) -> Result<Vec<u8>, Errno> {
        let protocol = if self.style == libc::SOCK_STREAM { libc::IPPROTO_TCP } else { libc::IPPROTO_UDP };
        let byte = |value: c_int| u8::try_from(value).map_err(|_| Errno::EINVAL);
        let states = self.states.to_ne_bytes();
        let (kind, body) = match self.family {
            Some(family) => {
                (BY_FAMILY, [&[byte(family)?, byte(protocol)?, 0, 0], &states[..], self.sockets].concat())
            }
            None => (OF_TCP, [&[0; 4], self.sockets, &states, &[0; 4]].concat()),
        };
        request(kind, self.all, &body)
    }
}

/// Builds a message: a `struct nlmsghdr`, and the request for `all` entries or for one.
fn request(kind: u16, all: bool, body: &[u8]) -> Result<Vec<u8>, Errno> {
    let flags = libc::NLM_F_REQUEST | if all { libc::NLM_F_DUMP } else { 0 };
    let flags = u16::try_from(flags).map_err(|_| Errno::EINVAL)?;
    let length = u32::try_from(HEADER + body.len()).map_err(|_| Errno::EINVAL)?;
    Ok([&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8], body].concat())
}

#[derive(Debug)]
pub(in crate::mediate) struct Kernel {
    socket: File,
    buffer: Vec<u8>,
}

impl Kernel {
    pub(in crate::mediate) fn new() -> Result<Self, Errno> {
        Ok(Self { socket: socket::netlink(libc::NETLINK_SOCK_DIAG)?.into(), buffer: vec![0; BUFFER] })
    }

    /// Lists sockets: passes each entry that matches the request `body` (`struct …_diag_req`) to `each`.
    pub(in crate::mediate) fn list(&mut self, body: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
        self.ask(&request(BY_FAMILY, true, body)?, true, &mut each)
    }

    fn ask(&mut self, message: &[u8], all: bool, each: &mut impl FnMut(&[u8])) -> Result<(), Errno> {
        self.socket.write_all(message).map_err(broken)?;
        while self.answer(each)? && all {}
        Ok(())
    }

    /// Reads one datagram of the answer. True if more follow.
    fn answer(&mut self, each: &mut impl FnMut(&[u8])) -> Result<bool, Errno> {
        let length = self.socket.read(&mut self.buffer).map_err(broken)?;
        let mut rest = self.buffer.get(..length).unwrap_or_default();
        while let Some((kind, content, next)) = message(rest) {
            match c_int::from(kind) {
                libc::NLMSG_DONE => return errno(content).map_or(Ok(false), Err),
                _ if kind == BY_FAMILY || kind == OF_TCP => each(content),
                _ => return Err(errno(content).unwrap_or(Errno::EIO)),
            }
            rest = next;
        }
        if length == 0 { Err(Errno::EIO) } else { Ok(true) }
    }
}

/// Splits off the first message of an answer; returns its type, its content and the rest. `None` if it is incomplete.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let content = bytes.get(HEADER..length)?;
    Some((kind, content, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Returns the attributes (`struct nlattr`) after the fixed part of an entry, as types and values.
pub(in crate::mediate) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns the error at the end of an answer, a negative number, if there is one (`struct nlmsgerr`;
/// `netlink_dump_done` of `net/netlink/af_netlink.c`).
fn errno(content: &[u8]) -> Option<Errno> {
    let number = c_int::from_ne_bytes(*content.first_chunk()?);
    (number < 0).then(|| Errno::from_raw(number.saturating_neg()))
}

fn broken(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the kernel answers `ENOENT` for an unknown family, protocol, or socket (`sock_diag_rcv_msg`,
    /// `inet_diag_lock_handler`).
    #[test]
    fn the_kernel_says_what_it_does_not_list() {
        let list = |family: c_int, protocol: u8| {
            let body =
                [&[u8::try_from(family).unwrap(), protocol, 0, 0], &u32::MAX.to_ne_bytes()[..], &[0; 48]];
            Kernel::new().unwrap().list(&body.concat(), |_| {})
        };
        assert_eq!(list(libc::AF_INET, 6), Ok(()));
        // No protocol has this number.
        assert_eq!(list(libc::AF_INET, 200), Err(Errno::ENOENT));
        assert_eq!(list(libc::AF_BLUETOOTH, 0), Err(Errno::ENOENT));
        assert_eq!(errno(&(-libc::ENOMEM).to_ne_bytes()), Some(Errno::ENOMEM));
        assert_eq!([errno(&[0; 4]), errno(&[])], [None, None]);
    }
}
