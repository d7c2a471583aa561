//! Sockets from inside that have the port of one of the host's, in every way that the kernel lets both have it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;

use crate::calls::{DATAGRAM, STREAM, bind, connect, errno, internet, listen, send_to, socket};
use crate::harness::{as_each_user, pipe};
use crate::network::{each_call, lets_in_only_its_own, on, own_address, try_connect};

fn set(socket: &OwnedFd, level: i32, name: i32) {
    let one = 1_i32;
    // SAFETY: the kernel reads one integer.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const one).cast(), 4) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

/// A bound socket; with IPv6 of IPv6 alone.
fn bound(style: i32, address: &str) -> OwnedFd {
    let family = if address.starts_with('[') { libc::AF_INET6 } else { libc::AF_INET };
    let socket = socket(family, style);
    if family == libc::AF_INET6 {
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
    }
    bind(&socket, &internet(address)).unwrap();
    socket
}

#[test]
fn a_port_of_the_host_is_not_reached_by_one_beside_it() {
    as_each_user(|place| {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        on(place, || {
            for beside in ["[::]", "[::1]", "127.0.0.2"] {
                let beside = format!("{beside}:{port}");
                let (server, _datagrams) = (bound(STREAM, &beside), bound(DATAGRAM, &beside));
                listen(&server, 1);
                for address in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]"] {
                    let address = format!("{address}:{port}");
                    assert_eq!(each_call(&address), [libc::EACCES; 7], "{beside}, {address}");
                }
            }
            // The twin: what is from inside is reached at the same port, by its own address.
            let server = bound(STREAM, &format!("127.0.0.2:{port}"));
            listen(&server, 1);
            TcpStream::connect(("127.0.0.2", port)).unwrap();
        });
        assert!(tcp.accept().is_err() && udp.recv(&mut [0; 8]).is_err());
        place.unmediated(|| drop(TcpStream::connect(("127.0.0.1", port)).unwrap()));
        assert!(tcp.accept().is_ok());
    });
}

#[test]
fn an_own_address_of_the_host_is_not_reached_by_one_beside_it() {
    let Some(address) = own_address() else {
        return eprintln!("skipped: this machine has no network");
    };
    as_each_user(|place| {
        let tcp = TcpListener::bind((address, 0)).unwrap();
        tcp.set_nonblocking(true).unwrap();
        let port = tcp.local_addr().unwrap().port();
        on(place, || {
            for beside in ["[::]", "127.0.0.1"] {
                let server = bound(STREAM, &format!("{beside}:{port}"));
                listen(&server, 1);
                assert_eq!(try_connect(STREAM, &format!("{address}:{port}")), libc::EACCES, "{beside}");
            }
        });
        assert!(tcp.accept().is_err());
    });
}

#[test]
fn whoever_is_at_no_address_at_all_is_found_at_loopback() {
    as_each_user(|place| {
        on(place, || {
            for (own, unspecified) in
                [("127.0.0.1", "0.0.0.0"), ("[::1]", "[::]"), ("127.0.0.1", "[::ffff:0.0.0.0]")]
            {
                let server = TcpListener::bind(format!("{own}:0")).unwrap();
                let port = server.local_addr().unwrap().port();
                TcpStream::connect(format!("{unspecified}:{port}")).unwrap();
                server.accept().unwrap();
            }
        });
    });
}

#[test]
fn a_port_that_was_reserved_inside_and_taken_by_the_host_is_the_hosts() {
    as_each_user(|place| {
        let (mut reserved, mut reserving) = pipe();
        let (mut taken, mut taking) = pipe();
        let (mut over, ending) = pipe();
        let host = std::thread::spawn(move || {
            let mut port = [0; 2];
            reserved.read_exact(&mut port).unwrap();
            // The library sets SO_REUSEADDR.
            let listener = TcpListener::bind(("127.0.0.1", u16::from_ne_bytes(port))).unwrap();
            taking.write_all(b"x").unwrap();
            assert_eq!(over.read(&mut [0]).unwrap(), 0);
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err());
        });
        on(place, || {
            let squatter = socket(libc::AF_INET, STREAM);
            set(&squatter, libc::SOL_SOCKET, libc::SO_REUSEADDR);
            bind(&squatter, &internet("0.0.0.0:0")).unwrap();
            let port = TcpListener::from(squatter.try_clone().unwrap()).local_addr().unwrap().port();
            reserving.write_all(&port.to_ne_bytes()).unwrap();
            taken.read_exact(&mut [0]).unwrap();
            assert_eq!(try_connect(STREAM, &format!("127.0.0.1:{port}")), libc::EACCES);
            assert_eq!(try_connect(STREAM, &format!("0.0.0.0:{port}")), libc::EACCES);
        });
        drop(ending);
        host.join().unwrap();
    });
}

/// What is sent on a connected datagram socket is not mediated, and its peer's port can be the host's by then.
#[test]
fn datagrams_on_this_machine_need_an_address_each() {
    as_each_user(|place| {
        on(place, || {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = internet(&server.local_addr().unwrap().to_string());
            let client = socket(libc::AF_INET, DATAGRAM);
            assert_eq!(errno(connect(&client, &to)), libc::EACCES);
            send_to(&client, b"hello", &to, 0).unwrap();
            assert_eq!(server.recv(&mut [0; 8]).unwrap(), 5);
            drop(server);
            assert_eq!(errno(send_to(&client, b"x", &to, 0)), libc::EACCES);
        });
    });
}

#[test]
fn a_stranger_with_the_port_of_a_socket_from_inside_is_not_let_in() {
    as_each_user(|place| {
        let (mut told, mut tell) = pipe();
        let (closed, mut closing) = pipe();
        let stranger = std::thread::spawn(move || {
            let mut ports = [0; 4];
            told.read_exact(&mut ports).unwrap();
            let [own, server] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_ne_bytes);
            let client = bound(STREAM, &format!("127.0.0.1:{own}"));
            connect(&client, &internet(&format!("127.0.0.1:{server}"))).unwrap();
            let mut client = TcpStream::from(client);
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            drop(client.write_all(b"evil"));
            assert!(client.read(&mut [0]).unwrap_or(0) == 0);
            closing.write_all(b"x").unwrap();
            told
        });
        on(place, || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let impostor = bound(STREAM, "[::]:0");
            let own = TcpListener::from(impostor.try_clone().unwrap()).local_addr().unwrap().port();
            tell.write_all(&[own.to_ne_bytes(), address.port().to_ne_bytes()].concat()).unwrap();
            lets_in_only_its_own(&server, closed);
        });
        drop(stranger.join().unwrap());
    });
}
