//! Acts with sockets.

use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use nix::libc::{self, c_int};

use super::{Act, Arguments, descriptor, done};

const BYTES: &[u8] = b"sent by the adversary\n";

pub(super) const ACTS: &[(&str, Act)] = &[
    ("tcp", |a| {
        let address: SocketAddr = a.number(0)?;
        TcpStream::connect_timeout(&address, Duration::from_secs(5)).map(|_| Vec::new())
    }),
    ("tcp-fast-open", fast_open),
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
    ("abstract-stream", |a| connect(libc::AF_UNIX, libc::SOCK_STREAM, 0, &pathname(a, true)?)),
    ("abstract-datagram", |a| send(new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, 0, &pathname(a, true)?)),
    ("socketpair-sendto", |a| {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        done(unsafe { libc::socketpair(libc::AF_UNIX, a.number(1)?, 0, ends.as_mut_ptr()) })?;
        send(ends[0], 0, &pathname(a, false)?)
    }),
];

/// An address as the kernel wants it.
struct Address {
    bytes: Vec<u8>,
}

impl Address {
    fn pointer(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        (self.bytes.as_ptr().cast(), u32::try_from(self.bytes.len()).unwrap_or(0))
    }
}

/// `sockaddr_un`: a path, or a name in the abstract namespace; unix(7).
fn pathname(a: &Arguments, is_abstract: bool) -> io::Result<Address> {
    let family = u16::try_from(libc::AF_UNIX).map_err(io::Error::other)?;
    let mut bytes = family.to_ne_bytes().to_vec();
    bytes.extend(is_abstract.then_some(0));
    bytes.extend(a.os(0)?.as_encoded_bytes());
    bytes.extend((!is_abstract).then_some(0));
    Ok(Address { bytes })
}

/// `sockaddr_in`; ip(7).
fn internet(a: &Arguments) -> io::Result<Address> {
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
    let mut part = libc::iovec { iov_base: BYTES.as_ptr().cast_mut().cast(), iov_len: BYTES.len() };
    // SAFETY: a message header of zeros is an empty one.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    let (pointer, length) = address.pointer();
    message.msg_name = pointer.cast_mut().cast();
    message.msg_namelen = length;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    // SAFETY: everything that the header names outlives the call, which only reads it.
    done(unsafe { libc::sendmsg(socket, &raw const message, 0) } as i64)
}
