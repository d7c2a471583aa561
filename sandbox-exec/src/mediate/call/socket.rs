//! Calls on sockets, with addresses as bytes.

#![expect(
    unsafe_code,
    reason = "socket calls take addresses, options and messages by address; new descriptors get their \
              owner here"
)]

use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::libc::{self, c_int, socklen_t};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

use super::address::Address;

/// Index of the loopback device (`LOOPBACK_IFINDEX` of `net/flow.h`): the same in every network namespace.
pub(in crate::mediate) const LOOPBACK: c_int = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mediate) struct SocketKind {
    pub(in crate::mediate) family: c_int,
    pub(in crate::mediate) style: c_int,
}

impl SocketKind {
    /// Returns the family, type and protocol of a socket; fails with `ENOTSOCK` for another file.
    pub(in crate::mediate) fn of(socket: &OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            family: option(socket, libc::SOL_SOCKET, libc::SO_DOMAIN)?,
            style: option(socket, libc::SOL_SOCKET, libc::SO_TYPE)?,
        })
    }

    pub(in crate::mediate) fn is_stream(self) -> bool {
        self.style == libc::SOCK_STREAM
    }

    pub(in crate::mediate) fn takes_addresses(self) -> bool {
        !matches!(self.style, libc::SOCK_STREAM | libc::SOCK_SEQPACKET)
    }

    /// True if some addresses of this family lead to sockets outside the sandbox; others lead only to the kernel.
    pub(in crate::mediate) fn leads_out(self) -> bool {
        self.family != libc::AF_NETLINK
    }

    pub(in crate::mediate) fn is_internet(self) -> bool {
        matches!(self.family, libc::AF_INET | libc::AF_INET6)
    }
}

pub(in crate::mediate) fn kind_of_own(number: RawFd) -> Option<SocketKind> {
    // SAFETY: it was open just now; if it was closed or reused meanwhile, what is there is only asked what it
    // is.
    let open = unsafe { BorrowedFd::borrow_raw(number) };
    SocketKind::of(&open.try_clone_to_owned().ok()?).ok()
}

/// Creates a socket (`socket(2)`), close-on-exec in this process.
pub(in crate::mediate) fn make(family: c_int, style: c_int, protocol: c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: integers only.
    let socket = unsafe { libc::socket(family, style | libc::SOCK_CLOEXEC, protocol) };
    // SAFETY: the kernel has just made this descriptor, and nothing else knows of it.
    Errno::result(socket).map(|socket| unsafe { OwnedFd::from_raw_fd(socket) })
}

/// True for a connected stream socket. Only a mediated call can change that.
pub(in crate::mediate) fn is_connected_stream(socket: &OwnedFd) -> bool {
    SocketKind::of(socket).is_ok_and(|kind| !kind.takes_addresses()) && peer_name(socket).is_ok()
}

pub(in crate::mediate) fn option(socket: &OwnedFd, level: c_int, name: c_int) -> Result<c_int, Errno> {
    read_option(socket, level, name).map(c_int::from_ne_bytes)
}

fn read_option<const N: usize>(socket: &OwnedFd, level: c_int, name: c_int) -> Result<[u8; N], Errno> {
    let mut value = [0; N];
    let mut length = length(&value);
    // SAFETY: the kernel writes at most `length` bytes, which `value` has.
    let answer = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    };
    Errno::result(answer).map(|_| value)
}

fn set_option(socket: &OwnedFd, level: c_int, name: c_int, value: c_int) -> Result<(), Errno> {
    let length = length(&value.to_ne_bytes());
    // SAFETY: the kernel reads one integer.
    let answer =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    Errno::result(answer).map(drop)
}

/// True for TCP or UDP, not a similar protocol (MPTCP, SCTP, UDP-Lite, ICMP).
pub(in crate::mediate) fn is_tcp_or_udp(socket: &OwnedFd, kind: SocketKind) -> Result<bool, Errno> {
    let protocol = option(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)?;
    Ok(match kind.style {
        libc::SOCK_STREAM => protocol == libc::IPPROTO_TCP,
        libc::SOCK_DGRAM => protocol == libc::IPPROTO_UDP,
        _ => false,
    })
}

/// Returns the cookie (`SO_COOKIE`), a number that no other socket of this kernel ever has.
pub(in crate::mediate) fn cookie(socket: &OwnedFd) -> Result<u64, Errno> {
    read_option(socket, libc::SOL_SOCKET, libc::SO_COOKIE).map(u64::from_ne_bytes)
}

/// Returns the cookie of the socket's network namespace (`SO_NETNS_COOKIE`, Linux 5.14; asm-generic/socket.h).
pub(in crate::mediate) fn network(socket: &OwnedFd) -> Result<u64, Errno> {
    const SO_NETNS_COOKIE: c_int = 71;
    read_option(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE).map(u64::from_ne_bytes)
}

pub(in crate::mediate) fn datagram(family: c_int) -> Result<OwnedFd, Errno> {
    make(family, libc::SOCK_DGRAM, 0)
}

/// Sets `SO_REUSEADDR`; returns the old setting.
pub(in crate::mediate) fn allow_reuse(socket: &OwnedFd, reuse: bool) -> Result<bool, Errno> {
    let before = option(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR)? != 0;
    set_option(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, reuse.into())?;
    Ok(before)
}

pub(in crate::mediate) fn netlink(protocol: c_int) -> Result<OwnedFd, Errno> {
    make(libc::AF_NETLINK, libc::SOCK_RAW, protocol)
}

/// True if the socket is in blocking mode. `O_NONBLOCK` is never changed here, since the caller would see that.
pub(in crate::mediate) fn is_blocking(socket: &OwnedFd) -> Result<bool, Errno> {
    // SAFETY: reads flags.
    let flags = Errno::result(unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_GETFL) })?;
    Ok(flags & libc::O_NONBLOCK == 0)
}

pub(in crate::mediate) fn is_readable(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// True if calls on the socket have a time-out (`SO_SNDTIMEO`, `SO_RCVTIMEO`); they are not restarted then (signal(7)).
pub(in crate::mediate) fn has_timeout(socket: &OwnedFd, name: c_int) -> bool {
    let value = read_option::<{ size_of::<libc::timeval>() }>(socket, libc::SOL_SOCKET, name);
    value.is_ok_and(|value| value.iter().any(|&byte| byte != 0))
}

pub(in crate::mediate) fn connect(socket: &OwnedFd, address: &Address) -> Result<(), Errno> {
    let bytes = address.bytes();
    // SAFETY: the kernel reads `bytes.len()` bytes.
    let answer = unsafe { libc::connect(socket.as_raw_fd(), bytes.as_ptr().cast(), length(bytes)) };
    Errno::result(answer).map(drop)
}

/// Undoes `connect(2)`, so that nobody can use the connection. Later calls on the socket fail.
pub(in crate::mediate) fn disconnect(socket: &OwnedFd) {
    // SAFETY: integers only.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
    release_port(socket);
}

/// Dissolves an association. Releases a port that the kernel chose (`__udp_disconnect`, `tcp_disconnect`).
pub(in crate::mediate) fn release_port(socket: &OwnedFd) {
    let _released = connect(socket, &Address::from_bytes(&[0; 16]));
}

/// Attaches a filter to a socket (`SO_ATTACH_FILTER`, socket(7)). `ENOBUFS` if no memory is left for the filter.
pub(in crate::mediate) fn filter(socket: &OwnedFd, instructions: &[libc::sock_filter]) -> Result<(), Errno> {
    let count = libc::c_ushort::try_from(instructions.len()).map_err(|_| Errno::ENOBUFS)?;
    let program = libc::sock_fprog { len: count, filter: instructions.as_ptr().cast_mut() };
    let length = length(&[0; size_of::<libc::sock_fprog>()]);
    // SAFETY: the kernel copies `count` instructions and keeps no pointer.
    let answer = unsafe {
        let program = (&raw const program).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program, length)
    };
    match Errno::result(answer) {
        Err(Errno::ENOMEM) => Err(Errno::ENOBUFS),
        attached => attached.map(drop),
    }
}

/// True if `SO_REUSEPORT` is set, or unknown.
pub(in crate::mediate) fn shares_port(socket: &OwnedFd) -> bool {
    option(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT) != Ok(0)
}

/// True if `SO_REUSEADDR` is set, or unknown.
pub(in crate::mediate) fn shares_address(socket: &OwnedFd) -> bool {
    option(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR) != Ok(0)
}

pub(in crate::mediate) fn keep_to_v6(socket: &OwnedFd) -> Result<(), Errno> {
    set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)
}

pub(in crate::mediate) fn keeps_to_v6(socket: &OwnedFd) -> bool {
    option(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) == Ok(1)
}

/// Limits a connection attempt to one retry, which comes after a second (`tcp(7)`).
pub(in crate::mediate) fn ask_once_more(socket: &OwnedFd) -> Result<(), Errno> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_SYNCNT, 1)
}

/// Binds a socket to the loopback device (`SO_BINDTOIFINDEX`, asm-generic/socket.h). Without a capability that works
/// once per socket, since Linux 5.7. `EACCES` if the socket is bound to another device.
pub(in crate::mediate) fn keep_on_loopback(socket: &OwnedFd) -> Result<(), Errno> {
    const SO_BINDTOIFINDEX: c_int = 62;
    if option(socket, libc::SOL_SOCKET, SO_BINDTOIFINDEX)? == LOOPBACK {
        return Ok(());
    }
    match set_option(socket, libc::SOL_SOCKET, SO_BINDTOIFINDEX, LOOPBACK) {
        Err(Errno::EPERM) => Err(Errno::EACCES),
        tied => tied,
    }
}

/// `sendmsg(2)`: sends data and control data to an address, if there is one.
pub(in crate::mediate) fn send(
    socket: &OwnedFd,
    address: Option<&Address>,
    data: &[u8],
    control: &[u8],
    flags: c_int,
) -> Result<usize, Errno> {
    let mut data = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: a structure of integers and pointers, which may be null.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    if let Some(address) = address {
        message.msg_name = address.bytes().as_ptr().cast_mut().cast();
        message.msg_namelen = length(address.bytes());
    }
    (message.msg_iov, message.msg_iovlen) = (&raw mut data, 1);
    if !control.is_empty() {
        message.msg_control = control.as_ptr().cast_mut().cast();
        message.msg_controllen = control.len() as _;
    }
    // As the kernel takes it: musl's own function has no room for as many descriptors as a message can have.
    // What pads the lengths there is zero.
    // SAFETY: the kernel only reads what the header points to, all of which outlives the call.
    let sent = unsafe { libc::syscall(libc::SYS_sendmsg, socket.as_raw_fd(), &raw const message, flags) };
    Errno::result(sent).map(|sent| usize::try_from(sent).unwrap_or(0))
}

pub(in crate::mediate) fn accept(socket: &OwnedFd, flags: c_int) -> Result<(OwnedFd, Address), Errno> {
    let flags = flags | libc::SOCK_CLOEXEC;
    name(|storage, length| {
        // SAFETY: the kernel writes at most `length` bytes to `storage`.
        Errno::result(unsafe { libc::accept4(socket.as_raw_fd(), storage, length, flags) })
    })
    // SAFETY: the kernel has just made this descriptor, and nothing else knows of it.
    .map(|(accepted, peer)| (unsafe { OwnedFd::from_raw_fd(accepted) }, peer))
}

pub(in crate::mediate) fn bind(socket: &OwnedFd, address: &Address) -> Result<(), Errno> {
    let bytes = address.bytes();
    // SAFETY: the kernel reads `bytes.len()` bytes.
    let answer = unsafe { libc::bind(socket.as_raw_fd(), bytes.as_ptr().cast(), length(bytes)) };
    Errno::result(answer).map(drop)
}

pub(in crate::mediate) fn own_name(socket: &OwnedFd) -> Result<Address, Errno> {
    name(|storage, length| {
        // SAFETY: the kernel writes at most `length` bytes to `storage`.
        Errno::result(unsafe { libc::getsockname(socket.as_raw_fd(), storage, length) })
    })
    .map(|(_, address)| address)
}

pub(in crate::mediate) fn port(socket: &OwnedFd) -> Result<u16, Errno> {
    own_name(socket).map(|own| own.port())
}

/// True for an end of a pair or a connection, even if the other end is closed (`SO_PEERCRED` of unix(7)).
pub(in crate::mediate) fn has_met_a_peer(socket: &OwnedFd) -> bool {
    getsockopt(socket, PeerCredentials).is_ok_and(|peer| peer.pid() != 0 || peer.uid() != libc::uid_t::MAX)
}

pub(super) fn peer_name(socket: &OwnedFd) -> Result<Address, Errno> {
    name(|storage, length| {
        // SAFETY: the kernel writes at most `length` bytes to `storage`.
        Errno::result(unsafe { libc::getpeername(socket.as_raw_fd(), storage, length) })
    })
    .map(|(_, address)| address)
}

fn name(
    call: impl FnOnce(*mut libc::sockaddr, *mut socklen_t) -> Result<c_int, Errno>,
) -> Result<(c_int, Address), Errno> {
    let mut bytes = [0_u8; size_of::<libc::sockaddr_storage>()];
    let mut length = length(&bytes);
    let answer = call(bytes.as_mut_ptr().cast(), ptr::from_mut(&mut length))?;
    let length = usize::try_from(length).map_or(bytes.len(), |length| length.min(bytes.len()));
    Ok((answer, Address::from_bytes(&bytes[..length])))
}

fn length(bytes: &[u8]) -> socklen_t {
    socklen_t::try_from(bytes.len()).unwrap_or(socklen_t::MAX)
}
