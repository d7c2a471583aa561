//! The victim's sockets.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept, bind, listen, socket};

pub(super) struct Sockets {
    tcp4: TcpListener,
    tcp6: TcpListener,
    /// Listener at another loopback address than 127.0.0.1.
    tcp127: TcpListener,
    udp: UdpSocket,
    udp6: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    packets: OwnedFd,
    abstract_stream: UnixListener,
    abstract_datagram: UnixDatagram,
    abstract_packets: OwnedFd,
}

impl Sockets {
    pub(super) fn new(outside: &Path, name: &str) -> Self {
        let abstract_name = |suffix| SocketAddr::from_abstract_name(format!("{name}{suffix}")).unwrap();
        let abstract_packets = UnixAddr::new_abstract(format!("{name}-p").as_bytes()).unwrap();
        let sockets = Self {
            tcp4: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").unwrap(),
            tcp127: TcpListener::bind("127.7.7.7:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            udp6: UdpSocket::bind("[::1]:0").unwrap(),
            stream: UnixListener::bind(outside.join("stream")).unwrap(),
            datagram: UnixDatagram::bind(outside.join("datagram")).unwrap(),
            packets: packets(&UnixAddr::new(&outside.join("packets")).unwrap()),
            abstract_stream: UnixListener::bind_addr(&abstract_name("")).unwrap(),
            abstract_datagram: UnixDatagram::bind_addr(&abstract_name("-d")).unwrap(),
            abstract_packets: packets(&abstract_packets),
        };
        for name in ["stream", "datagram", "packets"] {
            fs::set_permissions(outside.join(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        for listener in [&sockets.tcp4, &sockets.tcp6, &sockets.tcp127] {
            listener.set_nonblocking(true).unwrap();
        }
        sockets.udp.set_nonblocking(true).unwrap();
        sockets.udp6.set_nonblocking(true).unwrap();
        sockets.stream.set_nonblocking(true).unwrap();
        sockets.datagram.set_nonblocking(true).unwrap();
        sockets.abstract_stream.set_nonblocking(true).unwrap();
        sockets.abstract_datagram.set_nonblocking(true).unwrap();
        sockets
    }

    /// Returns the placeholders in attacks for the sockets' addresses, each with the address.
    pub(super) fn names(&self) -> Vec<(&'static str, String)> {
        let (tcp4, tcp6) = (self.tcp4.local_addr().unwrap(), self.tcp6.local_addr().unwrap());
        let (udp, udp6) = (self.udp.local_addr().unwrap(), self.udp6.local_addr().unwrap());
        vec![
            ("{tcp4}", tcp4.to_string()),
            ("{port}", tcp4.port().to_string()),
            ("{tcp6}", tcp6.to_string()),
            ("{port6}", tcp6.port().to_string()),
            ("{tcp127}", self.tcp127.local_addr().unwrap().to_string()),
            ("{udp}", udp.to_string()),
            ("{udpport}", udp.port().to_string()),
            ("{udp6}", udp6.to_string()),
        ]
    }

    /// Returns a message about the first socket that somebody has reached. `None` if nobody has reached any.
    pub(super) fn received(&self) -> Option<&'static str> {
        let mut bytes = [0; 64];
        [
            ("TCP over IPv4 was reached", self.tcp4.accept().is_ok()),
            ("TCP over IPv6 was reached", self.tcp6.accept().is_ok()),
            ("TCP at another loopback address was reached", self.tcp127.accept().is_ok()),
            ("UDP was reached", self.udp.recv(&mut bytes).is_ok()),
            ("UDP over IPv6 was reached", self.udp6.recv(&mut bytes).is_ok()),
            ("a unix stream socket was reached", self.stream.accept().is_ok()),
            ("a unix datagram socket was reached", self.datagram.recv(&mut bytes).is_ok()),
            ("a unix packet socket was reached", accept(self.packets.as_raw_fd()).is_ok()),
            ("an abstract stream socket was reached", self.abstract_stream.accept().is_ok()),
            ("an abstract datagram socket was reached", self.abstract_datagram.recv(&mut bytes).is_ok()),
            ("an abstract packet socket was reached", accept(self.abstract_packets.as_raw_fd()).is_ok()),
        ]
        .into_iter()
        .find_map(|(what, reached)| reached.then_some(what))
    }
}

fn packets(address: &UnixAddr) -> OwnedFd {
    let packets = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_NONBLOCK, None).unwrap();
    bind(packets.as_raw_fd(), address).unwrap();
    listen(&packets, Backlog::new(8).unwrap()).unwrap();
    packets
}
