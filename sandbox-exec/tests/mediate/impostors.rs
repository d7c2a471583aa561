//! Tests with sockets inside the sandbox that have the port of a host's socket, in every way that the kernel allows.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;

use crate::calls::{DATAGRAM, STREAM, bind, connect, errno, internet, listen, socket};
use crate::harness::{as_each_user, pipe};
use crate::network::{each_call, family, lets_in_only_its_own, on, own_address, try_connect};

fn set(socket: &OwnedFd, level: i32, name: i32) {
    let one = 1_i32;
    // SAFETY: the kernel reads one integer.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const one).cast(), 4) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

fn bound(style: i32, address: &str) -> OwnedFd {
    let family = if address.starts_with('[') { libc::AF_INET6 } else { libc::AF_INET };
    let socket = socket(family, style);
    if family == libc::AF_INET6 {
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
    }
    if style == STREAM {
        set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR);
    }
    bind(&socket, &internet(address)).unwrap();
    socket
}

/// Checks that a bind of an IPv6 socket to this address fails, since the port is taken.
fn taken(address: &str) {
    let socket = socket(libc::AF_INET6, STREAM);
    set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
    assert_eq!(errno(bind(&socket, &internet(address))), libc::EADDRINUSE);
}

#[test]
fn a_port_of_the_host_is_not_reached_by_one_beside_it() {
    as_each_user(|place| {
        let both = || {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = tcp.local_addr().unwrap().port();
            // Another process may have it for datagrams.
            UdpSocket::bind(("127.0.0.1", port)).map(|udp| (tcp, udp, port))
        };
        let (tcp, udp, port) = std::iter::repeat_with(both).find_map(Result::ok).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        on(place, || {
            for beside in ["[::1]", "127.0.0.2"] {
                let beside = format!("{beside}:{port}");
                let (server, _datagrams) = (bound(STREAM, &beside), bound(DATAGRAM, &beside));
                listen(&server, 1);
                for address in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]"] {
                    let address = format!("{address}:{port}");
                    assert_eq!(each_call(&address), [place.refusal(); 7], "{beside}, {address}");
                }
            }
            taken(&format!("[::]:{port}"));
            // The twin: a socket inside is reached at the same port, by its own address.
            let server = bound(STREAM, &format!("127.0.0.2:{port}"));
            listen(&server, 1);
            TcpStream::connect(("127.0.0.2", port)).unwrap();
        });
        assert!(tcp.accept().is_err() && udp.recv(&mut [0; 8]).is_err());
        place.unmediated(|| drop(TcpStream::connect(("127.0.0.1", port)).unwrap()));
        assert!(tcp.accept().is_ok());
    });
}

fn listener_at(address: IpAddr) -> (TcpListener, u16) {
    loop {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return (listener, port);
        }
    }
}

#[test]
fn an_own_address_of_the_host_is_not_reached_by_one_beside_it() {
    let Some(address) = own_address() else {
        return eprintln!("skipped: this machine has no network");
    };
    as_each_user(|place| {
        let (tcp, port) = listener_at(address);
        tcp.set_nonblocking(true).unwrap();
        on(place, || {
            taken(&format!("[::]:{port}"));
            let server = bound(STREAM, &format!("127.0.0.1:{port}"));
            listen(&server, 1);
            assert_eq!(try_connect(STREAM, &format!("{address}:{port}")), place.refusal());
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
            assert_eq!(try_connect(STREAM, &format!("127.0.0.1:{port}")), place.refusal());
            assert_eq!(try_connect(STREAM, &format!("0.0.0.0:{port}")), place.refusal());
        });
        drop(ending);
        host.join().unwrap();
    });
}

#[test]
fn a_listener_that_was_connected_to_and_has_left_its_port_leads_nobody_to_the_hosts() {
    as_each_user(|place| {
        let (mut left, mut leave) = pipe();
        let (mut taken, mut taking) = pipe();
        let host = std::thread::spawn(move || {
            let mut port = [0; 2];
            let mut listeners = vec![];
            while left.read_exact(&mut port).is_ok() {
                // A socket that was made here is dropped up to a second later.
                let listener = || TcpListener::bind(("127.0.0.1", u16::from_ne_bytes(port))).ok();
                listeners.push(std::iter::repeat_with(listener).flatten().next().unwrap());
                taking.write_all(b"x").unwrap();
            }
            for listener in &listeners {
                listener.set_nonblocking(true).unwrap();
                assert!(listener.accept().is_err());
            }
            listeners.len()
        });
        on(place, || {
            let mut leaves = |how: &dyn Fn(OwnedFd) -> Option<OwnedFd>, again: bool| {
                let server = TcpListener::bind("127.0.0.1:0").unwrap();
                let address = server.local_addr().unwrap();
                for _ in 0..3 {
                    TcpStream::connect(address).unwrap();
                    server.accept().unwrap();
                }
                let stays = how(server.into());
                leave.write_all(&address.port().to_ne_bytes()).unwrap();
                taken.read_exact(&mut [0]).unwrap();
                if let (true, Some(server)) = (again, &stays) {
                    listen(server, 1);
                    let elsewhere = TcpListener::from(server.try_clone().unwrap()).local_addr().unwrap();
                    assert_ne!(elsewhere.port(), address.port());
                }
                assert_eq!(try_connect(STREAM, &address.to_string()), place.refusal());
            };
            let no_more = |server: OwnedFd| {
                // SAFETY: integers.
                assert_eq!(unsafe { libc::shutdown(server.as_raw_fd(), libc::SHUT_RD) }, 0);
                Some(server)
            };
            leaves(&|_| None, false);
            leaves(&no_more, false);
            leaves(&no_more, true);
            drop(leave);
        });
        assert_eq!(host.join().unwrap(), 3);
    });
}

/// Tests that no process outside gets the port to which a socket inside is connected, after the receiver has closed.
/// Messages on the connected socket are not mediated, and would reach whoever has the port.
#[test]
fn the_port_that_a_datagram_socket_is_connected_to_passes_to_nobody_else() {
    as_each_user(|place| {
        let (mut asked, mut ask) = pipe();
        let (mut answered, mut answer) = pipe();
        let host = std::thread::spawn(move || {
            let mut port = [0; 2];
            let mut taken = vec![];
            while asked.read_exact(&mut port).is_ok() {
                let ways = ["127.0.0.1", "0.0.0.0", "[::]"].map(|host| {
                    let socket = socket(family(host), DATAGRAM);
                    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR);
                    bind(&socket, &internet(&format!("{host}:{}", u16::from_ne_bytes(port)))).is_ok()
                });
                taken.push(ways);
                answer.write_all(b"x").unwrap();
            }
            taken
        });
        on(place, || {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let mut host_tries = || {
                ask.write_all(&address.port().to_ne_bytes()).unwrap();
                answered.read_exact(&mut [0]).unwrap();
            };
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(address).unwrap();
            assert_eq!(client.send(b"hello").unwrap(), 5);
            assert_eq!(server.recv(&mut [0; 8]).unwrap(), 5);
            host_tries();
            drop(server);
            host_tries();
            // Nobody receives, which the first datagram finds out.
            assert_eq!(client.send(b"x").unwrap(), 1);
            // A receiver that was made here is dropped up to a second later.
            while place.makes_sockets() && client.send(b"x").is_ok() {}
            if !place.makes_sockets() {
                assert_eq!(errno(client.send(b"x")), libc::ECONNREFUSED);
            }
            // A server from inside may have it again, and the client is still connected to it.
            let server = UdpSocket::bind(address).unwrap();
            host_tries();
            client.send(b"again").unwrap();
            assert_eq!(server.recv(&mut [0; 8]).unwrap(), 5);
            drop((client, server));
            // Until the last sender was seen to be gone.
            while UdpSocket::bind(address).is_err() {}
            drop(ask);
        });
        assert_eq!(host.join().unwrap(), [[false; 3]; 3]);
    });
}

#[test]
fn a_port_that_no_sender_is_connected_to_is_anybodys() {
    as_each_user(|place| {
        let (mut asked, mut ask) = pipe();
        let made = place.makes_sockets();
        let host = std::thread::spawn(move || {
            let mut port = [0; 2];
            asked.read_exact(&mut port).unwrap();
            let bind = || UdpSocket::bind(("127.0.0.1", u16::from_ne_bytes(port))).is_ok();
            // A socket that was made here is dropped up to a second later.
            while made && !bind() {}
            made || bind()
        });
        on(place, || {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            drop(server);
            ask.write_all(&address.port().to_ne_bytes()).unwrap();
        });
        assert!(host.join().unwrap());
    });
}

#[test]
fn connected_datagram_sockets_inside_go_both_ways_and_receive_from_nobody_else() {
    as_each_user(|place| {
        on(place, || {
            for host in ["127.0.0.1", "[::1]"] {
                let new = || UdpSocket::bind(format!("{host}:0"));
                let Ok(server) = new() else {
                    eprintln!("skipped: not on this machine: {host}");
                    continue;
                };
                let clients: Vec<UdpSocket> = (0..20).map(|_| new().unwrap()).collect();
                for client in &clients {
                    client.connect(server.local_addr().unwrap()).unwrap();
                    client.send(b"ask").unwrap();
                    let (_, from) = server.recv_from(&mut [0; 8]).unwrap();
                    assert_eq!(from, client.local_addr().unwrap());
                    // The one that answers has the client's port reserved in turn, and is not heard: the
                    // client hears the server.
                    let other = new().unwrap();
                    other.connect(from).unwrap();
                    other.send(b"evil").unwrap();
                    server.send_to(b"answer", from).unwrap();
                    let mut bytes = [0; 8];
                    assert_eq!(client.recv(&mut bytes).unwrap(), 6);
                    assert_eq!(&bytes[..6], b"answer");
                }
            }
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

fn sharing(port: u16) -> TcpListener {
    let socket = socket(libc::AF_INET, STREAM);
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR);
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT);
    bind(&socket, &internet(&format!("127.0.0.1:{port}"))).unwrap();
    listen(&socket, 64);
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true).unwrap();
    listener
}

/// Number of connections to a port that two listeners share; the kernel gives each connection to one of them.
const CONNECTIONS: usize = 40;

fn connect_often(port: u16) {
    for _ in 0..CONNECTIONS {
        drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
    }
}

#[test]
fn a_listener_that_lets_one_outside_have_its_port_too_is_not_reached_any_more() {
    as_each_user(|place| {
        if place.makes_sockets() {
            // Each is looked up among all sockets of its port: as where nothing is shared.
            return;
        }
        let (mut told, mut tell) = pipe();
        let (mut heard, mut hear) = pipe();
        let (mut tried, mut trying) = pipe();
        let stranger = place.beside(|| {
            let mut port = [0; 2];
            told.read_exact(&mut port).unwrap();
            let port = u16::from_ne_bytes(port);
            let listener = sharing(port);
            hear.write_all(b"x").unwrap();
            tried.read_exact(&mut [0]).unwrap();
            assert!(listener.accept().is_err(), "nobody was led there");
            let _beside = sharing(port);
            connect_often(port);
            assert!(listener.accept().is_ok(), "as some are without a mediator");
        });
        on(place, || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            TcpStream::connect(address).unwrap();
            server.accept().unwrap();
            let server = OwnedFd::from(server);
            set(&server, libc::SOL_SOCKET, libc::SO_REUSEPORT);
            tell.write_all(&address.port().to_ne_bytes()).unwrap();
            heard.read_exact(&mut [0]).unwrap();
            let refused = || {
                for _ in 0..CONNECTIONS {
                    assert_eq!(try_connect(STREAM, &address.to_string()), place.refusal());
                }
            };
            refused();
            // Some kernels prefer the newest socket, which is not from inside.
            let last = socket(libc::AF_INET, STREAM);
            set(&last, libc::SOL_SOCKET, libc::SO_REUSEPORT);
            assert_eq!(errno(bind(&last, &internet(&address.to_string()))), libc::EADDRINUSE);
        });
        trying.write_all(b"x").unwrap();
        stranger.finish();
    });
}

#[test]
fn a_port_that_is_shared_inside_is_reached() {
    as_each_user(|place| {
        on(place, || {
            let one = sharing(0);
            let port = one.local_addr().unwrap().port();
            let _other = sharing(port);
            connect_often(port);
        });
    });
}
