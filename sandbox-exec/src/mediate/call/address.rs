use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::memory::Memory;

/// Maximum size of an address in bytes (`sizeof(struct sockaddr_storage)`).
const MAX: usize = 128;
// Offset of the name in a `sockaddr_un`, and maximum size of the whole, in bytes.
const NAME: usize = 2;
const MAX_UNIX: usize = NAME + 108;

/// Socket address of a call, copied from the caller. The kernel gets exactly the bytes that were judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mediate) struct Address(Vec<u8>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mediate) enum Meaning<'a> {
    /// Address without a family (`AF_UNSPEC`): `connect` dissolves an association, `sendto` uses the socket's family.
    Unspecified,
    Path(&'a Path),
    Abstract(&'a [u8]),
    Unnamed,
    Internet(SocketAddr),
    /// Address that the kernel denies anyway, or whose family has no addresses outside the sandbox.
    Other,
}

impl Address {
    pub(in crate::mediate) fn read(memory: Memory, start: u64, length: u64) -> Result<Self, Errno> {
        let length = integer(length);
        // move_addr_to_kernel of net/socket.c.
        let length = usize::try_from(length).ok().filter(|&length| length <= MAX).ok_or(Errno::EINVAL)?;
        if length == 0 { Ok(Self(vec![])) } else { memory.read_vec(start, length).map(Self) }
    }

    pub(in crate::mediate) fn of_path(path: impl AsRef<OsStr>) -> Self {
        let mut bytes = family_bytes(libc::AF_UNIX).to_vec();
        bytes.extend(path.as_ref().as_bytes());
        bytes.push(0);
        Self(bytes)
    }

    pub(in crate::mediate) fn unnamed() -> Self {
        Self(family_bytes(libc::AF_UNIX).to_vec())
    }

    pub(in crate::mediate) fn of_internet(address: SocketAddr) -> Self {
        let port = address.port().to_be_bytes();
        let bytes = match address.ip() {
            IpAddr::V4(ip) => [&family_bytes(libc::AF_INET), &port[..], &ip.octets(), &[0; 8]].concat(),
            IpAddr::V6(ip) => {
                [&family_bytes(libc::AF_INET6), &port[..], &[0; 4], &ip.octets(), &[0; 4]].concat()
            }
        };
        Self(bytes)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    pub(in crate::mediate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn family(&self) -> c_int {
        self.0.first_chunk().map_or(libc::AF_UNSPEC, |&family| u16::from_ne_bytes(family).into())
    }

    pub(in crate::mediate) fn in_family(mut self, family: c_int) -> Self {
        if let Some(first) = self.0.first_chunk_mut() {
            *first = family_bytes(family);
        }
        self
    }

    /// Returns the port; 0 for an address without one.
    pub(in crate::mediate) fn port(&self) -> u16 {
        if let Meaning::Internet(address) = self.meaning() { address.port() } else { 0 }
    }

    /// Interprets the address like the kernel, which denies an address that is too short for its family.
    pub(in crate::mediate) fn meaning(&self) -> Meaning<'_> {
        match self.family() {
            libc::AF_UNSPEC => Meaning::Unspecified,
            libc::AF_UNIX => unix(&self.0),
            libc::AF_INET => v4(&self.0).map_or(Meaning::Other, Meaning::Internet),
            libc::AF_INET6 => v6(&self.0).map_or(Meaning::Other, Meaning::Internet),
            _ => Meaning::Other,
        }
    }
}

/// Interprets a `sockaddr_un` like `unix_mkname` of the kernel: a path ends at a null byte, an abstract name does not.
fn unix(bytes: &[u8]) -> Meaning<'_> {
    match bytes.get(NAME..).unwrap_or_default() {
        [] => Meaning::Unnamed,
        _ if bytes.len() > MAX_UNIX => Meaning::Other,
        [0, name @ ..] => Meaning::Abstract(name),
        name => {
            let path = name.split(|&byte| byte == 0).next().unwrap_or(name);
            Meaning::Path(Path::new(OsStr::from_bytes(path)))
        }
    }
}

fn v4(bytes: &[u8]) -> Option<SocketAddr> {
    let address: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
    Some(SocketAddrV4::new(Ipv4Addr::from(address), port(bytes)?).into())
}

/// Parses a `struct sockaddr_in6`; `None` if it is too short. The kernel accepts it without the scope (RFC 2133).
fn v6(bytes: &[u8]) -> Option<SocketAddr> {
    let address: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
    let scope =
        bytes.get(24..).and_then(|rest| rest.first_chunk()).map_or(0, |&scope| u32::from_ne_bytes(scope));
    Some(SocketAddrV6::new(Ipv6Addr::from(address), port(bytes)?, 0, scope).into())
}

fn port(bytes: &[u8]) -> Option<u16> {
    bytes.get(2..)?.first_chunk().map(|&port| u16::from_be_bytes(port))
}

fn family_bytes(family: c_int) -> [u8; 2] {
    u16::try_from(family).unwrap_or_default().to_ne_bytes()
}

/// Returns an argument as an `int`. The kernel reads many arguments like that, and ignores the register's upper half.
#[expect(clippy::cast_possible_truncation, reason = "that is what the kernel does")]
pub(in crate::mediate) fn integer(argument: u64) -> c_int {
    (argument as u32).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(family: c_int, rest: &[u8]) -> Address {
        Address([&family_bytes(family), rest].concat())
    }

    #[test]
    fn paths_end_at_the_first_null_byte_and_abstract_names_do_not() {
        assert_eq!(address(libc::AF_UNIX, b"/a\0b").meaning(), Meaning::Path(Path::new("/a")));
        assert_eq!(address(libc::AF_UNIX, b"a").meaning(), Meaning::Path(Path::new("a")));
        assert_eq!(address(libc::AF_UNIX, b"\0a\0b").meaning(), Meaning::Abstract(b"a\0b"));
        assert_eq!(address(libc::AF_UNIX, b"").meaning(), Meaning::Unnamed);
        assert_eq!(
            address(libc::AF_UNIX, &[b'a'; 108]).meaning(),
            Meaning::Path(Path::new(&"a".repeat(108)))
        );
        assert_eq!(address(libc::AF_UNIX, &[b'a'; 109]).meaning(), Meaning::Other);
    }

    #[test]
    fn internet_addresses_need_all_their_bytes() {
        let v4 = address(libc::AF_INET, &[0, 80, 127, 0, 0, 1]);
        assert_eq!(v4.meaning(), Meaning::Internet("127.0.0.1:80".parse().unwrap()));
        assert_eq!(address(libc::AF_INET, &[0, 80, 127, 0, 0]).meaning(), Meaning::Other);
        let v6 = [&[0, 80, 0, 0, 0, 0][..], &Ipv6Addr::LOCALHOST.octets()].concat();
        assert_eq!(address(libc::AF_INET6, &v6).meaning(), Meaning::Internet("[::1]:80".parse().unwrap()));
        assert_eq!(address(libc::AF_INET6, &v6[..21]).meaning(), Meaning::Other);
        assert_eq!(Address(vec![]).meaning(), Meaning::Unspecified);
        assert_eq!(v4.in_family(libc::AF_UNSPEC).meaning(), Meaning::Unspecified);
    }
}
