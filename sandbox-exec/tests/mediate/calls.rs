use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::libc::{self, c_int};

pub(crate) const STREAM: c_int = libc::SOCK_STREAM;
pub(crate) const DATAGRAM: c_int = libc::SOCK_DGRAM;
pub(crate) const SEQPACKET: c_int = libc::SOCK_SEQPACKET;

pub(crate) fn errno<T>(result: io::Result<T>) -> c_int {
    result.map_or_else(|error| error.raw_os_error().unwrap(), |_| 0)
}

pub(crate) fn socket(family: c_int, style: c_int) -> OwnedFd {
    try_socket(family, style).unwrap()
}

pub(crate) fn try_socket(family: c_int, style: c_int) -> io::Result<OwnedFd> {
    try_socket_of(family, style, 0)
}

pub(crate) fn try_socket_of(family: c_int, style: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: integers.
    let socket = check(unsafe { libc::socket(family, style | libc::SOCK_CLOEXEC, protocol) } as isize)?;
    // SAFETY: the descriptor is new.
    Ok(unsafe { OwnedFd::from_raw_fd(c_int::try_from(socket).unwrap()) })
}

pub(crate) fn unix(path: impl AsRef<Path>) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut address = u16::try_from(libc::AF_UNIX).unwrap().to_ne_bytes().to_vec();
    address.extend(path.as_ref().as_os_str().as_bytes());
    address
}

pub(crate) fn internet(address: &str) -> Vec<u8> {
    let address: std::net::SocketAddr = address.parse().unwrap();
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut bytes = u16::try_from(family).unwrap().to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match address.ip() {
        std::net::IpAddr::V4(ip) => bytes.extend([&ip.octets()[..], &[0; 8]].concat()),
        std::net::IpAddr::V6(ip) => bytes.extend([&[0; 4], &ip.octets()[..], &[0; 4]].concat()),
    }
    bytes
}

fn check(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap()
}

pub(crate) fn connect(socket: &OwnedFd, address: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads the address.
    check(unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length(address)) } as isize)
}

pub(crate) fn bind(socket: &OwnedFd, address: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads the address.
    check(unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), length(address)) } as isize)
}

pub(crate) fn listen(socket: &OwnedFd, backlog: c_int) {
    // SAFETY: integers.
    assert_eq!(unsafe { libc::listen(socket.as_raw_fd(), backlog) }, 0);
}

pub(crate) fn send_to(socket: &OwnedFd, data: &[u8], address: &[u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the kernel reads data and address.
    check(unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            data.as_ptr().cast(),
            data.len(),
            flags,
            address.as_ptr().cast(),
            length(address),
        )
    })
}

pub(crate) fn header(parts: &mut [libc::iovec], address: &[u8], control: &[u8]) -> libc::msghdr {
    // SAFETY: integers and pointers, which may be null.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (parts.as_mut_ptr(), parts.len() as _);
    if !address.is_empty() {
        (header.msg_name, header.msg_namelen) = (address.as_ptr().cast_mut().cast(), length(address));
    }
    if !control.is_empty() {
        (header.msg_control, header.msg_controllen) =
            (control.as_ptr().cast_mut().cast(), control.len() as _);
    }
    header
}

pub(crate) fn part(data: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() }
}

pub(crate) fn send_message(
    socket: &OwnedFd,
    data: &[u8],
    address: &[u8],
    control: &[u8],
    flags: c_int,
) -> io::Result<usize> {
    let mut parts = [part(data)];
    let header = header(&mut parts, address, control);
    // SAFETY: the kernel reads what the header points to.
    check(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, flags) })
}

/// Sends messages with one `sendmmsg` call. Returns the number of sent messages, and the length of each.
pub(crate) fn send_messages(
    socket: &OwnedFd,
    data: &[&[u8]],
    address: &[u8],
) -> io::Result<(usize, Vec<u32>)> {
    let mut parts: Vec<_> = data.iter().map(|data| [part(data)]).collect();
    let mut headers: Vec<_> = parts
        .iter_mut()
        .map(|parts| libc::mmsghdr { msg_hdr: header(parts, address, &[]), msg_len: u32::MAX })
        .collect();
    // SAFETY: the kernel reads what the headers point to, and writes their lengths.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), u32::try_from(headers.len()).unwrap(), 0)
    };
    check(sent as isize).map(|sent| (sent, headers.iter().map(|header| header.msg_len).collect()))
}

pub(crate) fn control(level: c_int, kind: c_int, content: &[u8]) -> Vec<u8> {
    let mut item = (16 + content.len()).to_ne_bytes().to_vec();
    item.extend(level.to_ne_bytes());
    item.extend(kind.to_ne_bytes());
    item.extend(content);
    item.resize(item.len().next_multiple_of(8), 0);
    item
}
