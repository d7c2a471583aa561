use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use ipc::confinement::Tier;
use nix::libc;

use crate::calls::{
    DATAGRAM, STREAM, connect, errno, internet, send_message, send_messages, send_to, socket, unix,
};
use crate::harness::{Place, as_each_user};

const NO_ADDRESS: [u8; 16] = [0; 16];

fn each_datagram(socket: &OwnedFd, to: &[u8]) -> [i32; 4] {
    [
        errno(connect(socket, to)),
        errno(send_to(socket, b"x", to, 0)),
        errno(send_message(socket, b"x", to, &[], 0)),
        errno(send_messages(socket, &[b"x"], to)),
    ]
}

#[test]
fn internet_sockets_lead_to_nobody_but_their_peers() {
    as_each_user(|place| {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let peer = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let stream = internet(&tcp.local_addr().unwrap().to_string());
        let datagram = internet(&udp.local_addr().unwrap().to_string());
        let connected = TcpStream::connect(peer.local_addr().unwrap()).unwrap();
        let mut accepted = peer.accept().unwrap().0;
        let connected: OwnedFd = connected.into();
        let (fresh, datagrams) = (socket(libc::AF_INET, STREAM), socket(libc::AF_INET, DATAGRAM));
        place.mediated(|| {
            // On the host's network a peer can be dissolved, and the socket have none.
            if place.tier() == Tier::Full {
                assert_eq!(errno(connect(&connected, &NO_ADDRESS)), libc::EACCES);
            }
            assert_eq!(errno(connect(&fresh, &stream)), place.refusal_of_handed_in());
            assert_eq!(
                errno(send_to(&fresh, b"x", &stream, libc::MSG_FASTOPEN)),
                place.refusal_of_handed_in()
            );
            assert_eq!(each_datagram(&datagrams, &datagram), [place.refusal_of_handed_in(); 4]);
            // Its normal use still works.
            TcpStream::from(connected.try_clone().unwrap()).write_all(b"hello").unwrap();
            assert_eq!(send_message(&connected, b"!", &[], &[], 0).unwrap(), 1);
        });
        assert!(tcp.accept().is_err() && udp.recv(&mut [0; 8]).is_err());
        let mut bytes = [0; 6];
        accepted.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello!");
        place.unmediated(|| {
            assert_eq!(errno(connect(&connected, &NO_ADDRESS)), 0);
            assert_eq!(errno(connect(&connected, &stream)), 0);
            assert_eq!(each_datagram(&datagrams, &datagram), [0; 4]);
        });
        assert!(tcp.accept().is_ok() && udp.recv(&mut [0; 8]).is_ok());
    });
}

#[test]
fn unix_sockets_lead_to_no_name_of_the_host() {
    as_each_user(|place: &Place| {
        let name = format!("handed-in-{}", place.path("").display());
        let victim = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        victim.set_nonblocking(true).unwrap();
        let to = unix(format!("\0{name}"));
        let socket: OwnedFd = UnixDatagram::unbound().unwrap().into();
        place.mediated(|| assert_eq!(each_datagram(&socket, &to), [place.refusal_of_handed_in(); 4]));
        assert!(victim.recv(&mut [0; 8]).is_err());
        place.unmediated(|| assert_eq!(each_datagram(&socket, &to), [0; 4]));
        assert!(victim.recv(&mut [0; 8]).is_ok());
    });
}
