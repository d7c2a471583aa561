//! The kernel's end of auditing (`audit(7)`, `netlink(7)`): whether it is on, and the group to which it sends its records.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, sendto,
    setsockopt, socket, sockopt,
};

/// `AUDIT_GET` of linux/audit.h.
const GET: u16 = 1000;
/// `AUDIT_NLGRP_READLOG`, as a mask.
const READ_LOG: u32 = 1;
/// `sizeof(struct nlmsghdr)`.
const HEADER: usize = 16;
/// What may wait to be read: some thousand records. More than the machine allows is cut to that.
const WAITING: usize = 4 << 20;
/// The namespaces that a machine begins with: `PROC_PID_INIT_INO` and `PROC_USER_INIT_INO` of `linux/proc_ns.h`.
const FIRST: [(&str, u64); 2] = [("/proc/self/ns/pid", 0xEFFF_FFFC), ("/proc/self/ns/user", 0xEFFF_FFFD)];

/// Why nobody reads the records of this machine here.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum Unreadable {
    /// Their numbers of processes mean others here, and none come.
    #[error("this is a container, and they are the machine's")]
    Contained,
    /// There is no auditing.
    #[error("the kernel has no auditing ({0})")]
    Unsupported(#[source] Errno),
    /// Who reads them needs a capability.
    #[error("that takes CAP_AUDIT_READ")]
    NotPermitted,
    /// Nothing is recorded.
    #[error("the machine's auditing is off")]
    Off,
    /// Something else.
    #[error("the kernel does not answer: {0}")]
    System(#[from] Errno),
}

/// Whether the records of this machine can be read.
pub fn readable() -> Result<(), Unreadable> {
    subscribe().map(drop)
}

/// A socket that gets every record from now on.
pub(super) fn subscribe() -> Result<OwnedFd, Unreadable> {
    let is_first = |(path, number): &(&str, u64)| fs::metadata(path).is_ok_and(|meta| meta.ino() == *number);
    if !FIRST.iter().all(is_first) {
        return Err(Unreadable::Contained);
    }
    let records = netlink().map_err(Unreadable::Unsupported)?;
    let _as_much_as_may_be = setsockopt(&records, sockopt::RcvBuf, &WAITING);
    match bind(records.as_raw_fd(), &NetlinkAddr::new(0, READ_LOG)) {
        Err(Errno::EPERM) => Err(Unreadable::NotPermitted),
        bound => bound.map_err(Unreadable::from),
    }?;
    if is_on()? { Ok(records) } else { Err(Unreadable::Off) }
}

/// Whether auditing is on. Asking takes `CAP_AUDIT_CONTROL`: without it there may be records, and where there are none, none come.
fn is_on() -> Result<bool, Unreadable> {
    let asked = netlink()?;
    let length = u32::try_from(HEADER).map_err(|_| Errno::EINVAL)?;
    let flags = u16::try_from(libc::NLM_F_REQUEST).map_err(|_| Errno::EINVAL)?;
    let question = [&length.to_ne_bytes()[..], &GET.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]].concat();
    sendto(asked.as_raw_fd(), &question, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    // The kernel has answered when the question is sent (`netlink_unicast_kernel`), or asked a thread of its own to.
    let mut buffer = [0; 512];
    wait_for(&asked)?;
    let Some((kind, content)) = receive(&asked, &mut buffer)? else { return Err(Errno::EAGAIN.into()) };
    let field = |at: usize| content.get(at..).and_then(|rest| rest.first_chunk()).copied();
    match i32::from(kind) {
        // `struct audit_status`: a mask, then whether it is on.
        kind if kind == i32::from(GET) => Ok(field(4).map(u32::from_ne_bytes).is_some_and(|on| on != 0)),
        libc::NLMSG_ERROR => match field(0).map(i32::from_ne_bytes).map(|errno| Errno::from_raw(-errno)) {
            Some(Errno::EPERM) => Ok(true),
            other => Err(other.unwrap_or(Errno::EIO).into()),
        },
        _ => Err(Errno::EIO.into()),
    }
}

/// Half a second, which an answer has never taken.
fn wait_for(socket: &OwnedFd) -> Result<(), Errno> {
    poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::from(500_u16)).map(drop)
}

fn netlink() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkAudit)
}

/// The next message, its kind and its content, if there is one that the kernel itself has sent.
pub(super) fn receive<'a>(socket: &OwnedFd, buffer: &'a mut [u8]) -> nix::Result<Option<(u16, &'a [u8])>> {
    let (length, from) = recvfrom::<NetlinkAddr>(socket.as_raw_fd(), buffer)?;
    let message = buffer.get(..length).filter(|_| from.is_some_and(|from| from.pid() == 0));
    // One record is one datagram; older kernels leave the header out of its length.
    let kind = message.and_then(|message| message.get(4..)?.first_chunk()).copied().map(u16::from_ne_bytes);
    let content = message.and_then(|message| message.get(HEADER..));
    Ok(kind.zip(content))
}
