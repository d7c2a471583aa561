//! Finds out if a process receives at a unix socket, without a connection that the process would notice.
//!
//! At a leftover socket file nobody receives, so a denied call to it would have failed anyway and is not reported. The
//! kernel lists unix sockets of one network namespace with inodes and abstract names (`unix_diag`, `sock_diag(7)`).

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::stat::{major, minor};

use crate::mediate::kernel::sock_diag::{Kernel, attributes};

/// Attributes that the kernel has to list: `UDIAG_SHOW_NAME`, `UDIAG_SHOW_VFS`, `UDIAG_SHOW_PEER`.
const SHOW: u32 = 1 | 2 | 4;
// Types of attributes: `UNIX_DIAG_NAME`, `UNIX_DIAG_VFS`, `UNIX_DIAG_PEER`.
const NAME: u16 = 0;
const VFS: u16 = 1;
const PEER: u16 = 2;
// States: `TCP_ESTABLISHED`, `TCP_CLOSE`, `TCP_LISTEN` (`net/tcp_states.h`), which unix sockets use as well.
const CONNECTED: u8 = 1;
const UNCONNECTED: u8 = 7;
const LISTENING: u8 = 10;
// `sizeof(struct unix_diag_msg)`, and the offset of the cookie.
const ENTRY: usize = 16;
const COOKIE: usize = 8;

#[derive(Debug)]
pub(crate) struct Listeners(Mutex<Option<Kernel>>);

struct File<'a> {
    inode: u32,
    device: u32,
    name: &'a [u8],
}

impl Listeners {
    pub(crate) fn here() -> Self {
        Self(Mutex::new(Kernel::new().ok()))
    }

    /// True if a socket at this path accepts connections or receives datagrams; `None` if that is unknown.
    pub(in crate::mediate) fn answers(&self, path: &Path) -> Option<bool> {
        let meta = fs::symlink_metadata(path).ok()?;
        let file = File::new(meta.st_dev(), meta.st_ino(), path);
        let mut kernel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A netlink socket whose request failed is not used again: the rest of its answer would be taken for
        // the next one.
        let mut asked = kernel.take()?;
        let mut found = false;
        asked.list(&question(), |entry| found |= file.is_bound_to(entry)).ok()?;
        *kernel = Some(asked);
        Some(found)
    }
}

impl<'a> File<'a> {
    #[expect(clippy::cast_possible_truncation, reason = "the kernel tells so many bits of them")]
    fn new(device: u64, inode: u64, path: &'a Path) -> Self {
        // `MKDEV` of `linux/kdev_t.h`, which differs from the device number of stat(2).
        let device = (major(device) << 20 | minor(device)) as u32;
        Self { inode: inode as u32, device, name: path.as_os_str().as_encoded_bytes() }
    }

    /// True if an entry (`struct unix_diag_msg`, and attributes) is of a socket that is bound to this file, and that
    /// accepts connections or receives datagrams from anybody. On overlayfs and btrfs, stat(2) returns other inode or
    /// device numbers than the entry has, so an equal bound path suffices.
    fn is_bound_to(&self, entry: &[u8]) -> bool {
        let [_, style, state, ..] = *entry else { return false };
        let attributes = || attributes(entry.get(ENTRY..).unwrap_or_default());
        let takes = match c_int::from(style) {
            // A datagram socket with a peer hears its peer alone; the state does not tell it from a socket
            // that others are connected to.
            libc::SOCK_DGRAM => !attributes().any(|(kind, _)| kind == PEER),
            _ => state == LISTENING,
        };
        takes
            && attributes().any(|(kind, value)| match kind {
                VFS => numbers(value) == Some([self.inode, self.device]),
                NAME => value.strip_suffix(b"\0").unwrap_or(value) == self.name,
                _ => false,
            })
    }
}

/// Returns the cookies of the sockets of a type at an abstract name that accept connections, or receive datagrams from
/// anybody. In the kernel, each type has abstract names of its own (`unix_abstract_hash` of `net/unix/af_unix.c`).
pub(in crate::mediate) fn of_name(style: c_int, name: &[u8]) -> Result<Vec<u64>, Errno> {
    let mut found = vec![];
    Kernel::new()?.list(&question(), |entry| found.extend(cookie_at(entry, style, name)))?;
    Ok(found)
}

/// Returns the cookie of an entry if its socket has this type and abstract name, and accepts connections or receives
/// datagrams. An accepted socket has its listener's name and does neither.
fn cookie_at(entry: &[u8], style: c_int, name: &[u8]) -> Option<u64> {
    let [_, of_type, state, ..] = *entry else { return None };
    let answers = style == libc::SOCK_DGRAM || state == LISTENING;
    let is_named = attributes(entry.get(ENTRY..)?)
        .any(|(kind, value)| kind == NAME && value.strip_prefix(b"\0") == Some(name));
    let cookie = u64::from_ne_bytes(*entry.get(COOKIE..)?.first_chunk()?);
    (c_int::from(of_type) == style && answers && is_named).then_some(cookie)
}

fn question() -> Vec<u8> {
    let states: u32 = 1 << CONNECTED | 1 << UNCONNECTED | 1 << LISTENING;
    let family = u8::try_from(libc::AF_UNIX).unwrap_or_default();
    let [states, inode, show] = [states, 0, SHOW].map(u32::to_ne_bytes);
    [&[family, 0, 0, 0], &states[..], &inode, &show, &[0; 8]].concat()
}

/// Parses the inode and device of a `struct unix_diag_vfs`; `None` if it is too short.
fn numbers(value: &[u8]) -> Option<[u32; 2]> {
    let number = |at: usize| Some(u32::from_ne_bytes(*value.get(at..)?.first_chunk()?));
    Some([number(0)?, number(4)?])
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};

    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::tests::comes_true;

    #[test]
    fn whoever_would_answer_is_found_and_sees_nobody() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let [stream, datagram, bound, connected] = ["a", "b", "c", "d"].map(|name| base.join(name));
        let listeners = Listeners::here();
        let listener = UnixListener::bind(&stream).unwrap();
        listener.set_nonblocking(true).unwrap();
        let receiver = UnixDatagram::bind(&datagram).unwrap();
        // Bound, and not listening yet: connecting fails.
        let flags = SockFlag::SOCK_CLOEXEC;
        let mute = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
        bind(mute.as_raw_fd(), &UnixAddr::new(&bound).unwrap()).unwrap();
        let peer = UnixDatagram::bind(&connected).unwrap();
        peer.connect(&datagram).unwrap();
        assert_eq!(listeners.answers(&stream), Some(true));
        assert_eq!(listeners.answers(&datagram), Some(true));
        assert_eq!(listeners.answers(&bound), Some(false));
        assert!(UnixStream::connect(&bound).is_err(), "as the kernel has it");
        assert_eq!(listeners.answers(&connected), Some(false), "it hears its peer alone");
        assert!(UnixDatagram::unbound().unwrap().connect(&connected).is_err(), "as the kernel has it");
        assert!(listener.accept().is_err(), "nobody has come");
        listen(&mute, Backlog::new(1).unwrap()).unwrap();
        assert_eq!(listeners.answers(&bound), Some(true));
        drop((listener, receiver));
        comes_true(|| listeners.answers(&stream) == Some(false));
        comes_true(|| listeners.answers(&datagram) == Some(false));
        assert_eq!(listeners.answers(&base.join("none")), None);
    }

    #[test]
    fn the_inode_tells_whatever_the_name_was_when_it_was_bound() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let _listener = UnixListener::bind(base.join("before")).unwrap();
        fs::rename(base.join("before"), base.join("after")).unwrap();
        assert_eq!(Listeners::here().answers(&base.join("after")), Some(true));
        // Another file has the name by now: the name alone does not prove that nobody answers, so the answer
        // is yes.
        let _other = UnixListener::bind(base.join("before")).unwrap();
        assert_eq!(Listeners::here().answers(&base.join("before")), Some(true));
    }

    #[test]
    fn damaged_entries_are_of_nobody() {
        let file = File { inode: 1, device: 2, name: b"/a" };
        for length in 0..40 {
            assert!(!file.is_bound_to(&vec![0xff; length]));
            assert!(!file.is_bound_to(&vec![1; length]));
            assert_eq!(cookie_at(&vec![1; length], 1, b"a"), None);
        }
    }

    #[test]
    fn an_abstract_name_is_one_for_each_type() {
        let name = format!("listeners-{}", std::process::id());
        let cookies = |style| of_name(style, name.as_bytes()).unwrap();
        let made = [(SockType::Stream, libc::SOCK_STREAM), (SockType::Datagram, libc::SOCK_DGRAM)];
        let [stream, datagram] = made.map(|(kind, style)| {
            let made = socket(AddressFamily::Unix, kind, SockFlag::SOCK_CLOEXEC, None).unwrap();
            assert!(cookies(style).is_empty());
            bind(made.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).unwrap()).unwrap();
            made
        });
        let cookie = |socket| vec![crate::mediate::call::socket::cookie(socket).unwrap()];
        assert_eq!(cookies(libc::SOCK_DGRAM), cookie(&datagram));
        assert!(cookies(libc::SOCK_STREAM).is_empty(), "it does not listen");
        listen(&stream, Backlog::new(1).unwrap()).unwrap();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let client = UnixStream::connect_addr(&address).unwrap();
        let accepted = UnixListener::from(stream.try_clone().unwrap()).accept().unwrap();
        assert_eq!(cookies(libc::SOCK_STREAM), cookie(&stream), "the accepted one has the name too");
        assert!(cookies(libc::SOCK_SEQPACKET).is_empty());
        drop((client, accepted));
    }
}
