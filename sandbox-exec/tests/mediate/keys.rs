use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering};

use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::Uid;

use crate::calls::{
    DATAGRAM, STREAM, bind, connect, errno, internet, listen, send_message, send_messages, send_to, socket,
    try_socket_of, unix,
};
use crate::harness::as_each_user;
use crate::machine::raise_loopback;
use crate::network::{each_call, family, on};

/// Local addresses in the forms that the kernel treats differently.
const ADDRESSES: [&str; 4] = ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::]"];

fn server(style: i32, address: &str) -> std::io::Result<OwnedFd> {
    let server = socket(family(address), style | libc::SOCK_NONBLOCK);
    bind(&server, &internet(address))?;
    if style == STREAM {
        listen(&server, 64);
    }
    Ok(server)
}

fn reached(style: i32, server: &OwnedFd) -> usize {
    let server = server.try_clone().unwrap();
    if style == STREAM {
        let server = TcpListener::from(server);
        std::iter::from_fn(|| server.accept().ok()).count()
    } else {
        let server = UdpSocket::from(server);
        std::iter::from_fn(|| server.recv(&mut [0; 8]).ok()).count()
    }
}

#[test]
fn a_port_taken_inside_in_another_family_or_protocol_opens_none_of_the_hosts() {
    as_each_user(|place| {
        let all = || ADDRESSES.into_iter().flat_map(|at| [STREAM, DATAGRAM].map(|style| (at, style)));
        for (at, style) in all().take(4) {
            let victim = server(style, &format!("{at}:0")).unwrap();
            let port = UdpSocket::from(victim.try_clone().unwrap()).local_addr().unwrap().port();
            let to = format!("{at}:{port}");
            on(place, || {
                let own = all().filter_map(|(at, style)| server(style, &format!("{at}:{port}")).ok());
                let own: Vec<_> = own.collect();
                assert!(!own.is_empty());
                drop(each_call(&to));
                drop(each_call(&to.replace("127.0.0.1", "[::ffff:127.0.0.1]").replace("[[", "[")));
            });
            assert_eq!(reached(style, &victim), 0, "{to} {style}");
            place.unmediated(|| drop(each_call(&to)));
            assert!(reached(style, &victim) > 0, "{to} {style}");
        }
    });
}

fn each_datagram(socket: &OwnedFd, to: &[u8]) -> [i32; 4] {
    [
        errno(connect(socket, to)),
        errno(send_to(socket, b"x", to, 0)),
        errno(send_message(socket, b"x", to, &[], 0)),
        errno(send_messages(socket, &[b"x"], to)),
    ]
}

/// Tests that a port which the sandbox has in UDP allows no sends to the same port in another protocol, UDP-Lite (RFC
/// 3828). No program inside can create a UDP-Lite socket, but one may be handed in.
#[test]
fn a_port_taken_inside_opens_none_of_another_protocol() {
    as_each_user(|place| {
        let made = || try_socket_of(libc::AF_INET, DATAGRAM | libc::SOCK_NONBLOCK, libc::IPPROTO_UDPLITE);
        let Ok((victim, client)) = made().and_then(|victim| Ok((victim, made()?))) else {
            eprintln!("skipped: this kernel has no UDP-Lite");
            return;
        };
        bind(&victim, &internet("127.0.0.1:0")).unwrap();
        let address = UdpSocket::from(victim.try_clone().unwrap()).local_addr().unwrap();
        let to = internet(&address.to_string());
        on(place, || {
            let _own = UdpSocket::bind(address).unwrap();
            assert_eq!(each_datagram(&client, &to), [libc::EACCES; 4]);
        });
        assert_eq!(reached(DATAGRAM, &victim), 0);
        place.unmediated(|| assert_eq!(each_datagram(&client, &to), [0; 4]));
        assert!(reached(DATAGRAM, &victim) > 0);
    });
}

fn elsewhere<T: Send>(make: impl FnOnce() -> T + Send) -> T {
    let act = || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        raise_loopback();
        make()
    };
    std::thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// Returns a port that the kernel gives to no other socket, since sockets in two network namespaces need the same port.
fn unused_port() -> u16 {
    static ASKED: AtomicU16 = AtomicU16::new(0);
    let pid = u16::try_from(std::process::id() % 10_000).unwrap();
    20_000 + pid + ASKED.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn a_name_taken_inside_opens_none_of_another_namespace() {
    if !Uid::effective().is_root() {
        eprintln!("skipped: another network namespace (needs root)");
        return;
    }
    as_each_user(|place| {
        let name = unix(format!("\0keys-{}", place.path("").display()));
        let address = SocketAddr::from(([127, 0, 0, 1], unused_port()));
        let to = internet(&address.to_string());
        let unix_server = || {
            let server = socket(libc::AF_UNIX, DATAGRAM | libc::SOCK_NONBLOCK);
            bind(&server, &name).unwrap();
            server
        };
        let (tcp, udp, by_name, clients) = elsewhere(|| {
            let clients = [STREAM, DATAGRAM].map(|style| socket(libc::AF_INET, style));
            let at = address.to_string();
            let [tcp, udp] = [STREAM, DATAGRAM].map(|style| server(style, &at).unwrap());
            (tcp, udp, unix_server(), (clients, socket(libc::AF_UNIX, DATAGRAM)))
        });
        let ([stream, datagrams], unix_client) = clients;
        on(place, || {
            let _own =
                (TcpListener::bind(address).unwrap(), UdpSocket::bind(address).unwrap(), unix_server());
            assert_eq!(errno(connect(&stream, &to)), libc::EACCES);
            assert_eq!(each_datagram(&datagrams, &to), [libc::EACCES; 4]);
            assert_eq!(each_datagram(&unix_client, &name), [libc::EACCES; 4]);
            TcpStream::connect(address).unwrap();
        });
        let reached = || {
            let by_name = UdpSocket::from(by_name.try_clone().unwrap()).recv(&mut [0]).is_ok();
            [reached(STREAM, &tcp) > 0, reached(DATAGRAM, &udp) > 0, by_name]
        };
        assert_eq!(reached(), [false; 3]);
        place.unmediated(|| {
            assert_eq!(errno(connect(&stream, &to)), 0);
            assert_eq!(each_datagram(&datagrams, &to), [0; 4]);
            assert_eq!(each_datagram(&unix_client, &name), [0; 4]);
        });
        assert_eq!(reached(), [true; 3]);
    });
}
