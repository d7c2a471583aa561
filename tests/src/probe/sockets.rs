//! Actions with sockets.

use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use nix::libc::{self, c_int};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};

use super::{Act, Arguments, descriptor, done};

const BYTES: &[u8] = b"sent by the adversary\n";

pub(super) const ACTS: &[(&str, Act)] = &[
    ("tcp", |a| {
        let address: SocketAddr = a.number(0)?;
        TcpStream::connect_timeout(&address, Duration::from_secs(5)).map(|_| Vec::new())
    }),
    ("tcp-fast-open", fast_open),
    ("tcp-fast-open-connect", |a| {
        let socket = new(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let (on, size) = (1, u32::try_from(size_of::<c_int>()).unwrap_or(4));
        let address = internet(a)?;
        let (pointer, length) = address.pointer();
        // SAFETY: option and address are valid for their lengths.
        unsafe {
            let option = (&raw const on).cast();
            libc::setsockopt(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, option, size);
            done(libc::connect(socket, pointer, length))?;
            // Without a TCP Fast Open cookie, the kernel makes the connection when data is sent.
            done(libc::send(socket, BYTES.as_ptr().cast(), BYTES.len(), libc::MSG_NOSIGNAL) as i64)
        }
    }),
    ("mptcp", |a| connect(libc::AF_INET, libc::SOCK_STREAM, 262, &internet(a)?)),
    ("tcp-listen", |_| TcpListener::bind("127.0.0.1:0").map(|_| Vec::new())),
    ("udp", |a| {
        let address: SocketAddr = a.number(0)?;
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        UdpSocket::bind(any)?.send_to(BYTES, address).map(|_| Vec::new())
    }),
    ("udp-connected", |a| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(a.text(0)?)?;
        socket.send(BYTES).map(|_| Vec::new())
    }),
    ("udp-sendmsg", |a| send_message(new(libc::AF_INET, libc::SOCK_DGRAM, 0)?, &internet(a)?)),
    ("udp-sendmmsg", |a| send_messages(new(libc::AF_INET, libc::SOCK_DGRAM, 0)?, &internet(a)?)),
    // Acts like glibc's resolver (res_send.c): connects, and sends both questions in one call.
    ("dns", |a| {
        let (socket, address) = (new(libc::AF_INET, libc::SOCK_DGRAM, 0)?, internet(a)?);
        let (pointer, length) = address.pointer();
        // SAFETY: the address is valid for its length.
        done(unsafe { libc::connect(socket, pointer, length) })?;
        send_messages(socket, &Address { bytes: vec![] })
    }),
    ("netlink-admin", |_| netlink_admin()),
    ("socket", |a| {
        // SAFETY: integers.
        done(unsafe { libc::socket(a.number(0)?, a.number(1)?, a.number(2)?) })
    }),
    ("unix-stream", |a| connect(libc::AF_UNIX, libc::SOCK_STREAM, 0, &pathname(a, false)?)),
    ("unix-seqpacket", |a| connect(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, &pathname(a, false)?)),
    ("unix-datagram", |a| send(new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, 0, &pathname(a, false)?)),
    ("unix-datagram-sendmsg", |a| {
        send_message(new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, &pathname(a, false)?)
    }),
    ("unix-stream-path", |a| {
        // SAFETY: a C string; the descriptor stays open until this process ends.
        let opened = descriptor(unsafe { libc::open(a.path(0)?.as_ptr(), libc::O_PATH) })?;
        let address = unix(format!("/proc/self/fd/{opened}").as_bytes(), false)?;
        connect(libc::AF_UNIX, libc::SOCK_STREAM, 0, &address)
    }),
    ("unix-stream-here", |a| {
        std::env::set_current_dir(a.os(0)?)?;
        connect(libc::AF_UNIX, libc::SOCK_STREAM, 0, &unix(a.os(1)?.as_encoded_bytes(), false)?)
    }),
    ("unix-datagram-connected", |a| {
        let (socket, address) = (new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, pathname(a, false)?);
        let (pointer, length) = address.pointer();
        // SAFETY: the address is valid for its length.
        done(unsafe { libc::connect(socket, pointer, length) })?;
        // SAFETY: the bytes are valid for their length.
        done(unsafe { libc::send(socket, BYTES.as_ptr().cast(), BYTES.len(), 0) } as i64)
    }),
    ("unix-datagram-sendmmsg", |a| {
        send_messages(new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, &pathname(a, false)?)
    }),
    ("unix-pass-descriptor", |a| {
        let file = std::fs::File::open("/dev/null")?;
        let rights = [std::os::fd::AsRawFd::as_raw_fd(&file)];
        let bytes = [io::IoSlice::new(BYTES)];
        let path = UnixAddr::new(std::path::Path::new(a.os(0)?))?;
        let socket = new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?;
        sendmsg(socket, &bytes, &[ControlMessage::ScmRights(&rights)], MsgFlags::empty(), Some(&path))?;
        Ok(Vec::new())
    }),
    ("abstract-seqpacket", |a| connect(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, &pathname(a, true)?)),
    ("abstract-stream", |a| connect(libc::AF_UNIX, libc::SOCK_STREAM, 0, &pathname(a, true)?)),
    ("abstract-datagram", |a| send(new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, 0, &pathname(a, true)?)),
    // The kernel keeps abstract names for each socket type; this takes the other types.
    ("abstract-stream-beside", |a| {
        take_name(&[libc::SOCK_DGRAM, libc::SOCK_SEQPACKET], a)?;
        connect(libc::AF_UNIX, libc::SOCK_STREAM, 0, &pathname(a, true)?)
    }),
    ("abstract-datagram-beside", |a| {
        take_name(&[libc::SOCK_STREAM, libc::SOCK_SEQPACKET], a)?;
        send(new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, 0, &pathname(a, true)?)
    }),
    ("abstract-seqpacket-beside", |a| {
        take_name(&[libc::SOCK_STREAM, libc::SOCK_DGRAM], a)?;
        connect(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, &pathname(a, true)?)
    }),
    ("socketpair-sendto", |a| {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        done(unsafe { libc::socketpair(libc::AF_UNIX, a.number(1)?, 0, ends.as_mut_ptr()) })?;
        send(ends[0], 0, &pathname(a, false)?)
    }),
];

pub(super) struct Address {
    pub(super) bytes: Vec<u8>,
}

impl Address {
    fn pointer(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        (self.bytes.as_ptr().cast(), u32::try_from(self.bytes.len()).unwrap_or(0))
    }
}

/// Returns the address of a unix socket, a path or a name in the abstract namespace (`sockaddr_un`, unix(7)).
fn pathname(a: &Arguments, is_abstract: bool) -> io::Result<Address> {
    unix(a.os(0)?.as_encoded_bytes(), is_abstract)
}

/// Opens sockets of these types at an abstract name. They receive its clients until this process ends.
fn take_name(types: &[c_int], a: &Arguments) -> io::Result<()> {
    let address = pathname(a, true)?;
    let (pointer, length) = address.pointer();
    for &of_type in types {
        let socket = new(libc::AF_UNIX, of_type, 0)?;
        // SAFETY: the address is valid for its length. A datagram socket does not listen.
        unsafe {
            libc::bind(socket, pointer, length);
            libc::listen(socket, 1);
        }
    }
    Ok(())
}

fn unix(path: &[u8], is_abstract: bool) -> io::Result<Address> {
    let family = u16::try_from(libc::AF_UNIX).map_err(io::Error::other)?;
    let mut bytes = family.to_ne_bytes().to_vec();
    bytes.extend(is_abstract.then_some(0));
    bytes.extend(path);
    bytes.extend((!is_abstract).then_some(0));
    Ok(Address { bytes })
}

/// Returns an internet address (`sockaddr_in`, ip(7)).
pub(super) fn internet(a: &Arguments) -> io::Result<Address> {
    let SocketAddr::V4(address) = a.number(0)? else { return Err(io::Error::other("IPv4 only")) };
    let family = u16::try_from(libc::AF_INET).map_err(io::Error::other)?;
    let mut bytes = family.to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    bytes.extend(address.ip().octets());
    bytes.extend([0; 8]);
    Ok(Address { bytes })
}

fn new(family: c_int, kind: c_int, protocol: c_int) -> io::Result<c_int> {
    // SAFETY: integers.
    descriptor(unsafe { libc::socket(family, kind, protocol) })
}

fn connect(family: c_int, kind: c_int, protocol: c_int, address: &Address) -> io::Result<Vec<u8>> {
    let socket = new(family, kind, protocol)?;
    let (pointer, length) = address.pointer();
    // SAFETY: the address is valid for its length.
    done(unsafe { libc::connect(socket, pointer, length) })
}

fn send(socket: c_int, flags: c_int, address: &Address) -> io::Result<Vec<u8>> {
    let (pointer, length) = address.pointer();
    // SAFETY: bytes and address are valid for their lengths.
    let sent = unsafe { libc::sendto(socket, BYTES.as_ptr().cast(), BYTES.len(), flags, pointer, length) };
    done(sent as i64)
}

fn fast_open(a: &Arguments) -> io::Result<Vec<u8>> {
    send(new(libc::AF_INET, libc::SOCK_STREAM, 0)?, libc::MSG_FASTOPEN, &internet(a)?)
}

fn send_message(socket: c_int, address: &Address) -> io::Result<Vec<u8>> {
    with_message(address, |message| {
        // SAFETY: everything that the header names outlives the call, which only reads it.
        done(unsafe { libc::sendmsg(socket, message, 0) } as i64)
    })
}

fn send_messages(socket: c_int, address: &Address) -> io::Result<Vec<u8>> {
    with_message(address, |message| {
        // SAFETY: a copy of a valid header, twice; the call writes nothing but the lengths in them.
        unsafe {
            let message = libc::mmsghdr { msg_hdr: *message, msg_len: 0 };
            let mut messages = [message, message];
            done(libc::sendmmsg(socket, messages.as_mut_ptr(), 2, 0))
        }
    })
}

fn with_message(
    address: &Address,
    send: impl FnOnce(&libc::msghdr) -> io::Result<Vec<u8>>,
) -> io::Result<Vec<u8>> {
    let mut part = libc::iovec { iov_base: BYTES.as_ptr().cast_mut().cast(), iov_len: BYTES.len() };
    // SAFETY: a message header of zeros is an empty one.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    let (pointer, length) = address.pointer();
    message.msg_name = pointer.cast_mut().cast();
    message.msg_namelen = length;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    send(&message)
}

/// Asks the kernel to change a network interface that does not exist. Without the privilege, the kernel denies the
/// request before it looks for the interface.
fn netlink_admin() -> io::Result<Vec<u8>> {
    let socket = new(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    // `nlmsghdr` (length, RTM_SETLINK below REQUEST | ACK, sequence, port) and `ifinfomsg` with index 99999.
    let request: [u32; 8] = [32, 0x5_0013, 1, 0, 0, 99_999, 0, 0];
    let mut reply = [0_u32; 16];
    // SAFETY: both are valid for their lengths.
    unsafe {
        done(libc::send(socket, request.as_ptr().cast(), 32, 0) as i64)?;
        done(libc::recv(socket, reply.as_mut_ptr().cast(), 64, 0) as i64)?;
    }
    // `nlmsgerr`: the error follows the header.
    let error = reply[4].cast_signed();
    if error == 0 { Ok(Vec::new()) } else { Err(io::Error::from_raw_os_error(-error)) }
}
