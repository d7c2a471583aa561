//! Tests that no program inside the sandbox shares a port with a socket of the host; programs inside share their own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::libc::{self, c_int};

use crate::calls::{DATAGRAM, STREAM, bind, errno, internet, listen, socket};
use crate::harness::{Place, as_each_user, pipe};
use crate::network::{family, on};

const ASKED: usize = 20;

fn set_option(socket: &OwnedFd, level: c_int, name: c_int, value: u32) {
    // SAFETY: the kernel reads an integer.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

fn set(socket: &OwnedFd, name: c_int) {
    set_option(socket, libc::SOL_SOCKET, name, 1);
}

/// Returns a socket that sets the option by which ports are shared, and the errno of its `bind`.
fn sharing(style: c_int, option: c_int, at: &str) -> (OwnedFd, i32) {
    let sharing = socket(family(at), style);
    set(&sharing, option);
    let bound = errno(bind(&sharing, &internet(at)));
    (sharing, bound)
}

/// Returns a bound socket of the host, owned by the test's user: `SO_REUSEPORT` compares owners.
fn service(place: &Place, style: c_int, option: c_int, at: &str) -> OwnedFd {
    let (service, bound) = sharing(style, option, at);
    assert_eq!(bound, 0, "{at}");
    if let Some(user) = place.user() {
        nix::unistd::fchown(&service, Some(user.into()), Some(user.into())).unwrap();
    }
    service
}

/// Process outside that sends requests to a service when asked to, and reports how many were answered.
struct Asking {
    ask: File,
    got: File,
}

impl Asking {
    fn new(mut asking: impl FnMut() -> usize + Send + 'static) -> Self {
        let ((mut asked, ask), (got, mut tell)) = (pipe(), pipe());
        std::thread::spawn(move || {
            while asked.read_exact(&mut [0]).is_ok() {
                let count = u8::try_from(asking()).unwrap();
                // The requester may have failed.
                drop(tell.write_all(&[count]));
            }
        });
        Self { ask, got }
    }

    fn ask(&self) -> usize {
        (&self.ask).write_all(b"x").unwrap();
        let mut count = [0];
        (&self.got).read_exact(&mut count).unwrap();
        count[0].into()
    }
}

fn datagrams(service: OwnedFd) -> Asking {
    let service = UdpSocket::from(service);
    service.set_nonblocking(true).unwrap();
    let to = near(service.local_addr().unwrap());
    Asking::new(move || {
        let count = |_: &usize| {
            let client = UdpSocket::bind((if to.is_ipv4() { "127.0.0.1" } else { "::1" }, 0)).unwrap();
            client.send_to(b"secret", to).unwrap();
            service.recv(&mut [0; 8]).is_ok()
        };
        (0..ASKED).filter(count).count()
    })
}

fn connections(service: OwnedFd) -> Asking {
    listen(&service, 64);
    let service = TcpListener::from(service);
    service.set_nonblocking(true).unwrap();
    let to = near(service.local_addr().unwrap());
    Asking::new(move || {
        // Kept until all were counted: the queue of each is decided by then.
        let clients: Vec<_> =
            (0..ASKED).map(|_| TcpStream::connect_timeout(&to, Duration::from_secs(5))).collect();
        let got = std::iter::from_fn(|| service.accept().ok()).count();
        drop(clients);
        got
    })
}

fn port(bound: &OwnedFd) -> u16 {
    UdpSocket::from(bound.try_clone().unwrap()).local_addr().unwrap().port()
}

fn near(mut at: SocketAddr) -> SocketAddr {
    if at.ip().is_unspecified() {
        at.set_ip(if at.is_ipv4() { [127, 0, 0, 1].into() } else { [0, 0, 0, 0, 0, 0, 0, 1].into() });
    }
    at
}

/// Addresses of a host's service, each with one for a socket inside that would get all or some of its packets.
const AIMS: [(&str, &str); 5] = [
    ("127.0.0.1", "127.0.0.1"),
    ("0.0.0.0", "127.0.0.1"),
    ("0.0.0.0", "[::ffff:127.0.0.1]"),
    ("[::]", "[::1]"),
    ("[::1]", "[::1]"),
];

fn steal(style: c_int, option: c_int, asking: impl Fn(OwnedFd) -> Asking) {
    as_each_user(|place| {
        for (at, aim) in AIMS {
            let service = service(place, style, option, &format!("{at}:0"));
            let port = port(&service);
            let asking = asking(service);
            let aim = format!("{aim}:{port}");
            let attempt = || {
                let (thief, bound) = sharing(style, option, &aim);
                if bound == 0 && style == STREAM {
                    listen(&thief, 64);
                }
                (bound, asking.ask())
            };
            place.unmediated(|| {
                let (bound, got) = attempt();
                assert!(bound == 0 && got < ASKED, "the twin: {aim}, {at}: {bound}, {got}");
            });
            on(place, || assert_eq!(attempt(), (libc::EADDRINUSE, ASKED), "{aim}, {at}"));
        }
    });
}

#[test]
fn services_of_the_host_keep_their_datagrams_from_whoever_reuses_their_address() {
    steal(DATAGRAM, libc::SO_REUSEADDR, datagrams);
}

#[test]
fn services_of_the_host_keep_their_datagrams_from_whoever_shares_their_port() {
    steal(DATAGRAM, libc::SO_REUSEPORT, datagrams);
}

#[test]
fn services_of_the_host_keep_their_connections() {
    steal(STREAM, libc::SO_REUSEPORT, connections);
}

/// Tests a bind to an address without a family (`AF_UNSPEC`), which the kernel treats as all IPv4 addresses
/// (`inet_bind`). It must not take a port of the host.
#[test]
fn an_address_without_a_family_takes_no_port_of_the_host() {
    as_each_user(|place| {
        let service = service(place, DATAGRAM, libc::SO_REUSEADDR, "127.0.0.1:0");
        let port = port(&service);
        let attempt = || {
            let thief = socket(libc::AF_INET, DATAGRAM);
            set(&thief, libc::SO_REUSEADDR);
            let mut address = internet(&format!("0.0.0.0:{port}"));
            address[..2].fill(0);
            errno(bind(&thief, &address))
        };
        place.unmediated(|| assert_eq!(attempt(), 0));
        on(place, || assert_eq!(attempt(), libc::EADDRINUSE));
    });
}

/// Tests that a socket inside gives up a port which the kernel chose although a socket of the host has it. The kernel
/// does that if the program permits no other port (`IP_LOCAL_PORT_RANGE`, ip(7)).
#[test]
fn a_port_of_the_host_that_the_kernel_chooses_is_given_up() {
    const IP_LOCAL_PORT_RANGE: c_int = 51;
    as_each_user(|place| {
        let service = service(place, DATAGRAM, libc::SO_REUSEADDR, "127.0.0.1:0");
        let chosen = u32::from(port(&service));
        let attempt = || {
            let thief = socket(libc::AF_INET, DATAGRAM);
            set(&thief, libc::SO_REUSEADDR);
            set_option(&thief, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, chosen << 16 | chosen);
            (errno(bind(&thief, &internet("127.0.0.1:0"))), port(&thief), thief)
        };
        place.unmediated(|| {
            let (bound, chosen, _) = attempt();
            assert_eq!((bound, chosen), (0, port(&service)));
        });
        on(place, || {
            let (bound, chosen, thief) = attempt();
            assert_eq!((bound, chosen), (libc::EADDRINUSE, 0));
            set_option(&thief, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, 0);
            assert_eq!(errno(bind(&thief, &internet("127.0.0.1:0"))), 0, "another port is free");
        });
    });
}

/// Tests that a program may use a port which the host has at another address: if the addresses do not overlap, the
/// kernel delivers packets to the right socket.
#[test]
fn a_port_of_the_host_is_free_where_the_host_has_another_address() {
    as_each_user(|place| {
        for (at, other) in [("127.0.0.2", "127.0.0.1"), ("127.0.0.1", "[::1]"), ("[::1]", "127.0.0.1")] {
            // Another process on this machine may have the same port at the other address.
            let (port, listening, services) = std::iter::repeat_with(|| {
                let service = UdpSocket::bind(format!("{at}:0")).unwrap();
                let listener = TcpListener::bind(format!("{at}:0")).unwrap();
                let ports = (service.local_addr().unwrap().port(), listener.local_addr().unwrap().port());
                (ports.0, ports.1, (service, listener))
            })
            .find(|(port, listening, _)| {
                UdpSocket::bind(format!("{other}:{port}")).is_ok()
                    && TcpListener::bind(format!("{other}:{listening}")).is_ok()
            })
            .unwrap();
            on(place, || {
                UdpSocket::bind(format!("{other}:{port}")).unwrap();
                TcpListener::bind(format!("{other}:{listening}")).unwrap();
            });
            drop(services);
        }
    });
}

#[test]
fn programs_inside_share_ports_among_themselves() {
    as_each_user(|place| {
        on(place, || {
            for (style, option) in
                [(DATAGRAM, libc::SO_REUSEADDR), (DATAGRAM, libc::SO_REUSEPORT), (STREAM, libc::SO_REUSEPORT)]
            {
                for at in ["127.0.0.1", "0.0.0.0", "[::1]", "[::]"] {
                    let (first, bound) = sharing(style, option, &format!("{at}:0"));
                    assert_eq!(bound, 0, "{at}");
                    let again = format!("{at}:{}", port(&first));
                    let workers: Vec<_> = (0..4)
                        .map(|_| {
                            let again = again.clone();
                            std::thread::spawn(move || {
                                let (worker, bound) = sharing(style, option, &again);
                                if style == STREAM {
                                    listen(&worker, 8);
                                }
                                (worker, bound)
                            })
                        })
                        .collect();
                    let all: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
                    assert!(all.iter().all(|(_, bound)| *bound == 0), "{again} {style} {option} {all:?}");
                }
            }
        });
    });
}

/// Tests that a server can bind its port again at once, although connections of the ended server remain (`TIME_WAIT`).
#[test]
fn a_server_has_its_port_again_at_once() {
    as_each_user(|place| {
        on(place, || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let at = server.local_addr().unwrap();
            let client = TcpStream::connect(at).unwrap();
            // The server's end closes first, and lingers.
            drop(server.accept().unwrap());
            drop((client, server));
            TcpListener::bind(at).unwrap();
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            let at = udp.local_addr().unwrap();
            drop(udp);
            UdpSocket::bind(at).unwrap();
        });
    });
}
