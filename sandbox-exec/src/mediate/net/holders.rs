//! Sockets with a port in the network namespace (`sock_diag(7)`; `net/ipv4/inet_diag.c`, `net/ipv4/udp_diag.c`).
//!
//! Several sockets can have the same port, at different addresses, in different families or by `SO_REUSEADDR`. A cookie
//! (`SO_COOKIE`) is unique while the kernel runs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipc::place::plain;
use nix::errno::Errno;
use nix::libc::{self, c_int};

use crate::mediate::call::socket;
use crate::mediate::kernel::sock_diag::{Question, attributes};

// Listening state of a TCP socket, and all states (`enum` of `net/tcp_states.h`).
const LISTENING: u32 = 1 << 10;
const ANY_STATE: u32 = u32::MAX;
const ANY_COOKIE: [u8; 8] = [0xff; 8];
// `sizeof(struct inet_diag_msg)`, and offsets of its fields that are read here.
const ENTRY: usize = 72;
const SOURCE_PORT: usize = 4;
const DESTINATION_PORT: usize = 6;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;
const COOKIE: usize = 44;
const INODE: usize = 68;
/// Type of the attribute for `IPV6_V6ONLY`: `INET_DIAG_SKV6ONLY` (`linux/inet_diag.h`).
const V6_ONLY: u16 = 11;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) cookie: u64,
    /// Inode number; 0 if no process has the socket open.
    pub(super) inode: u32,
    address: IpAddr,
    v6_only: bool,
}

impl Holder {
    /// True if packets to the address `to` arrive at this socket, unless another socket receives them first.
    pub(super) fn receives(&self, to: IpAddr) -> bool {
        let (own, to) = (plain(self.address), plain(to));
        let all = own.is_unspecified() && (own.is_ipv4() == to.is_ipv4() || own.is_ipv6() && !self.v6_only);
        own == to || all
    }

    /// True if packets to the address `to` can arrive at this socket at all.
    pub(super) fn might_receive(&self, to: IpAddr) -> bool {
        let (own, to) = (plain(self.address), plain(to));
        own == to || own.is_unspecified() && self.is_in_family(to.is_ipv4())
    }

    /// True if the socket has its port in this family. Others get the port at all addresses only if both allow it.
    pub(super) fn is_in_family(&self, v4: bool) -> bool {
        let own = plain(self.address);
        own.is_ipv4() == v4 || own.is_unspecified() && !self.v6_only && v4
    }

    /// True if the socket's addresses and another's overlap. Both can then have the same port only if both allow it.
    pub(super) fn overlaps(&self, at: IpAddr, v6_only: bool) -> bool {
        let other = Self { address: at, v6_only, ..*self };
        let share_family =
            [true, false].into_iter().any(|v4| self.is_in_family(v4) && other.is_in_family(v4));
        share_family && (self.might_receive(at) || plain(at).is_unspecified())
    }

    fn parse(entry: &[u8]) -> Option<Self> {
        let cookie = entry.get(COOKIE..).and_then(|rest| rest.first_chunk())?;
        let address = address(entry, SOURCE)?;
        let v6_only =
            attributes(entry.get(ENTRY..)?).any(|(kind, value)| kind == V6_ONLY && value.first() == Some(&1));
        let inode = entry.get(INODE..).and_then(|rest| rest.first_chunk())?;
        Some(Self {
            cookie: u64::from_ne_bytes(*cookie),
            inode: u32::from_ne_bytes(*inode),
            address,
            v6_only,
        })
    }
}

fn address(entry: &[u8], at: usize) -> Option<IpAddr> {
    let bytes = entry.get(at..)?;
    Some(if c_int::from(*entry.first()?) == libc::AF_INET {
        Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()
    } else {
        Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()
    })
}

/// Returns the address and port of one end of a connection. `at` and `port` are their offsets in the entry.
fn end_at(entry: &[u8], at: usize, port: usize) -> Option<(IpAddr, u16)> {
    Some((plain(address(entry, at)?), u16::from_be_bytes(*entry.get(port..)?.first_chunk()?)))
}

/// Returns the sockets that a connection or a datagram to a port can reach.
pub(super) fn of_port(style: c_int, port: u16) -> Result<Vec<Holder>, Errno> {
    let is_stream = style == libc::SOCK_STREAM;
    let states = if is_stream { LISTENING } else { ANY_STATE };
    let families = if is_stream { &[None][..] } else { &[Some(libc::AF_INET), Some(libc::AF_INET6)] };
    let sockets = sockets(port, 0, None);
    let mut all = vec![];
    for &family in families {
        let question = Question { style, family, states, sockets: &sockets, all: true };
        question.ask(|entry| all.extend(Holder::parse(entry)))?;
    }
    Ok(all)
}

/// Returns the cookie of the TCP socket at the end `local` of a connection.
///
/// When a socket is closed, the kernel replaces it by a time-wait entry, and for a moment a look-up finds neither
/// (`inet_twsk_hashdance_schedule` of `net/ipv4/inet_timewait_sock.c`). So if nothing is found, the kernel's list of
/// all sockets, which is slower, is searched: it waits for the replacement.
pub(super) fn of_connection(local: SocketAddr, remote: SocketAddr) -> Option<u64> {
    [false, true, false].into_iter().find_map(|all| at_this_end(local, remote, all))
}

fn at_this_end(local: SocketAddr, remote: SocketAddr, all: bool) -> Option<u64> {
    let (own, other) = (plain(local.ip()), plain(remote.ip()));
    // A socket of IPv6 can be at an end that has an IPv4 address; the kernel lists it under IPv6 alone.
    let family = (!all).then_some(if own.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 });
    let wanted = sockets(local.port(), remote.port(), Some((own, other)));
    let style = libc::SOCK_STREAM;
    let question = Question { style, family, states: ANY_STATE, sockets: &wanted, all };
    let mut found = None;
    let asked = question.ask(|entry| {
        // Without such a connection the kernel may answer with a listener of the port; and a list filters by
        // ports alone.
        let is_at = |address, port, end: SocketAddr| {
            end_at(entry, address, port) == Some((plain(end.ip()), end.port()))
        };
        if is_at(SOURCE, SOURCE_PORT, local) && is_at(DESTINATION, DESTINATION_PORT, remote) {
            found = Holder::parse(entry).map(|holder| holder.cookie);
        }
    });
    asked.ok().and(found)
}

/// Builds a `struct inet_diag_sockid`. If `ends` are given, both are on this machine and so on the loopback device.
fn sockets(source_port: u16, destination_port: u16, ends: Option<(IpAddr, IpAddr)>) -> Vec<u8> {
    let address = |address: Option<IpAddr>| match address {
        Some(IpAddr::V6(v6)) => v6.octets(),
        Some(IpAddr::V4(v4)) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.octets());
            bytes
        }
        None => [0; 16],
    };
    let (source, destination) = ends.unzip();
    let device = if ends.is_some() { socket::LOOPBACK } else { 0 };
    [
        &source_port.to_be_bytes()[..],
        &destination_port.to_be_bytes(),
        &address(source),
        &address(destination),
        &device.to_ne_bytes(),
        &ANY_COOKIE,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::tests::comes_true;

    fn holder(address: &str, v6_only: bool) -> Holder {
        Holder { cookie: 1, inode: 1, address: address.parse().unwrap(), v6_only }
    }

    fn inode_of(socket: &OwnedFd) -> u32 {
        u32::try_from(nix::sys::stat::fstat(socket).unwrap().st_ino).unwrap()
    }

    fn cookie(socket: impl Into<OwnedFd>) -> u64 {
        socket::cookie(&socket.into()).unwrap()
    }

    #[test]
    fn who_receives_what_goes_to_an_address() {
        let receives = |own: &str, v6_only, to: &str| holder(own, v6_only).receives(to.parse().unwrap());
        assert!(
            receives("127.0.0.1", false, "127.0.0.1") && receives("127.0.0.1", false, "::ffff:127.0.0.1")
        );
        assert!(receives("0.0.0.0", false, "127.0.0.1") && receives("::", false, "127.0.0.1"));
        assert!(receives("::", true, "::1") && !receives("::", true, "127.0.0.1"));
        assert!(!receives("127.0.0.1", false, "127.0.0.2") && !receives("0.0.0.0", false, "::1"));
        let might = |own: &str, v6_only, to: &str| holder(own, v6_only).might_receive(to.parse().unwrap());
        assert!(
            might("::", false, "127.0.0.1")
                && might("::", true, "::1")
                && might("0.0.0.0", false, "127.0.0.1")
        );
        assert!(
            !might("::", true, "127.0.0.1") && !might("0.0.0.0", false, "::1"),
            "a server of the other family"
        );
        assert!(!holder("127.0.0.2", false).might_receive("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn whose_ports_overlap() {
        let overlaps =
            |own: &str, v6_only, at: &str| holder(own, v6_only).overlaps(at.parse().unwrap(), false);
        for (own, at) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "0.0.0.0"),
            ("127.0.0.1", "::"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("0.0.0.0", "::"),
            ("::", "127.0.0.1"),
            ("::", "::1"),
            ("::1", "::"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("::ffff:0.0.0.0", "127.0.0.1"),
        ] {
            assert!(overlaps(own, false, at), "{own} {at}");
        }
        for (own, at) in
            [("127.0.0.1", "127.0.0.2"), ("0.0.0.0", "::1"), ("::1", "0.0.0.0"), ("::1", "127.0.0.1")]
        {
            assert!(!overlaps(own, false, at), "{own} {at}");
        }
        assert!(!overlaps("::", true, "127.0.0.1") && !overlaps("::", true, "0.0.0.0"));
        assert!(overlaps("::", true, "::"));
        let of_v6 = |own: &str| holder(own, false).overlaps("::".parse().unwrap(), true);
        assert!(of_v6("::1") && of_v6("::") && !of_v6("127.0.0.1") && !of_v6("0.0.0.0"));
    }

    #[test]
    fn who_has_a_port_in_a_family() {
        let families = |own, v6_only| [true, false].map(|v4| holder(own, v6_only).is_in_family(v4));
        assert_eq!(families("127.0.0.1", false), [true, false]);
        assert_eq!(families("::ffff:127.0.0.1", false), [true, false]);
        assert_eq!(
            [families("::", false), families("::", true), families("::1", false)],
            [[true, true], [false, true], [false, true]]
        );
    }

    #[test]
    fn the_sockets_of_a_port_are_listed_and_those_that_only_reserve_it_are_not() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let all = of_port(libc::SOCK_STREAM, port).unwrap();
        let (address, server) = ("127.0.0.1".parse().unwrap(), OwnedFd::from(server));
        let inode = inode_of(&server);
        assert_eq!(all, [Holder { cookie: cookie(server), inode, address, v6_only: false }]);
        comes_true(|| of_port(libc::SOCK_STREAM, port) == Ok(vec![]));
        let udp = UdpSocket::bind("[::]:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        let all = of_port(libc::SOCK_DGRAM, port).unwrap();
        let (address, udp) = (Ipv6Addr::UNSPECIFIED.into(), OwnedFd::from(udp));
        let inode = inode_of(&udp);
        assert_eq!(all, [Holder { cookie: cookie(udp), inode, address, v6_only: false }]);
    }

    #[test]
    fn the_ends_of_a_connection_are_told_apart() {
        for (own, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "::ffff:127.0.0.1")] {
            let server = TcpListener::bind(own).unwrap();
            let port = server.local_addr().unwrap().port();
            let client = TcpStream::connect((to, port)).unwrap();
            let (accepted, peer) = server.accept().unwrap();
            let own = accepted.local_addr().unwrap();
            let (server_end, client_end) =
                (cookie(accepted.try_clone().unwrap()), cookie(client.try_clone().unwrap()));
            let other = SocketAddr::new(own.ip(), 1);
            let another = SocketAddr::new("127.0.0.2".parse().unwrap(), peer.port());
            for all in [false, true] {
                assert_eq!(at_this_end(own, peer, all), Some(server_end), "{to} {all}");
                assert_eq!(at_this_end(peer, own, all), Some(client_end), "{to} {all}");
                for nobody in [other, another] {
                    assert_eq!(at_this_end(own, nobody, all), None, "not the listener: {to} {all}");
                }
            }
            drop(client);
            assert_eq!(of_connection(peer, own), Some(client_end), "{to}: also when it is closed");
            assert_eq!(of_connection(own, peer), Some(server_end), "{to}");
            assert_eq!(of_connection(own, other), None, "{to}");
        }
    }

    /// When a socket closes, for less than a microsecond the kernel finds neither the socket nor its time-wait entry by
    /// address. The connection must be found nevertheless.
    #[test]
    fn a_connection_is_found_while_it_closes() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = server.local_addr().unwrap();
        let (give, given) = std::sync::mpsc::channel::<TcpStream>();
        let closed = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&closed);
        let thread = std::thread::spawn(move || {
            for client in given {
                drop(client);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        for before in 0..5000 {
            let client = TcpStream::connect(own).unwrap();
            let (_accepted, peer) = server.accept().unwrap();
            give.send(client).unwrap();
            while closed.load(Ordering::Relaxed) == before {
                assert!(of_connection(peer, own).is_some());
            }
        }
        drop(give);
        thread.join().unwrap();
    }
}
