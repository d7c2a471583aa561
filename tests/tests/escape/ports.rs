//! Tests ports that the host's services share (`SO_REUSEADDR`, `SO_REUSEPORT`): a service must get all its messages.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use ipc::confinement::Tier;
use nix::libc::{self, EADDRINUSE};
use nix::sys::socket::sockopt::{ReuseAddr, ReusePort};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, accept, listen, setsockopt, socket};
use nix::unistd::{Gid, Uid, fchown};
use tests::{User, World};

use crate::everywhere;

/// Number of messages that are sent to a service.
const ASKED: usize = 20;

/// Program that binds the port of a service by a socket option, and takes its messages. For connections it attaches a
/// BPF program that steers all of them to it.
const THIEF: &str = "import ctypes, select, socket, struct, sys\n\
    kind, option, port = (int(word) for word in sys.argv[1:])\n\
    s = socket.socket(socket.AF_INET, kind)\n\
    s.setsockopt(socket.SOL_SOCKET, option, 1)\n\
    try:\n\
    \x20   s.bind(('127.0.0.1', port))\n\
    \x20   if kind == socket.SOCK_STREAM:\n\
    \x20       s.listen(64)\n\
    \x20       steer = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 1))\n\
    \x20       s.setsockopt(socket.SOL_SOCKET, 51, struct.pack('HL', 1, ctypes.addressof(steer)))\n\
    \x20   print(0, flush=True)\n\
    except OSError as error: print(error.errno, flush=True); input(); sys.exit()\n\
    input()\n\
    while select.select([s], [], [], 0)[0]:\n\
    \x20   if kind == socket.SOCK_STREAM: print('took', s.accept()[0].recv(6, socket.MSG_DONTWAIT))\n\
    \x20   else: print('took', s.recv(6))\n";

/// Service of a user that shares its port.
struct Service {
    socket: OwnedFd,
    kind: SockType,
    port: u16,
}

impl Service {
    fn new(user: User, kind: SockType, shares_port: bool) -> Self {
        let socket = socket(AddressFamily::Inet, kind, SockFlag::SOCK_NONBLOCK, None).unwrap();
        if shares_port {
            setsockopt(&socket, ReusePort, &true).unwrap();
        } else {
            setsockopt(&socket, ReuseAddr, &true).unwrap();
        }
        let (uid, gid) = (Uid::from_raw(user.uid()), Gid::from_raw(user.gid()));
        // SO_REUSEPORT shares a port only between sockets of one user, so root gives the socket to the user.
        if Uid::effective().is_root() {
            fchown(&socket, Some(uid), Some(gid)).unwrap();
        }
        bind_to_loopback(&socket);
        if kind == SockType::Stream {
            listen(&socket, Backlog::new(64).unwrap()).unwrap();
        }
        let port = UdpSocket::from(socket.try_clone().unwrap()).local_addr().unwrap().port();
        Self { socket, kind, port }
    }

    /// Sends [`ASKED`] messages, and returns the number of them that the service receives.
    fn hears(&self) -> usize {
        if self.kind == SockType::Stream { self.hears_connections() } else { self.hears_datagrams() }
    }

    fn hears_datagrams(&self) -> usize {
        let service = UdpSocket::from(self.socket.try_clone().unwrap());
        let is_heard = |_: &usize| {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.send_to(b"secret", ("127.0.0.1", self.port)).unwrap();
            service.recv(&mut [0; 6]).is_ok()
        };
        (0..ASKED).filter(is_heard).count()
    }

    fn hears_connections(&self) -> usize {
        let connect = |_| {
            let mut client = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
            // The thief may have closed the connection.
            let _ = client.write_all(b"secret");
            client
        };
        let clients: Vec<_> = (0..ASKED).map(connect).collect();
        let accept = || accept(self.socket.as_raw_fd());
        let heard = std::iter::from_fn(|| accept().ok()).count();
        drop(clients);
        heard
    }
}

fn bind_to_loopback(socket: &OwnedFd) {
    // SAFETY: a structure of integers.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = u16::try_from(libc::AF_INET).unwrap();
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    let length = u32::try_from(size_of_val(&address)).unwrap();
    // SAFETY: the kernel reads the address.
    let answer = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

/// Runs the thief. Returns its error number, the number of messages to the service, and those that the thief took.
fn steal(command: &mut Command, service: &Service, option: i32) -> (i32, usize, Vec<String>) {
    let words = [service.kind as i32, option, service.port.into()].map(|word| word.to_string());
    command.args(["-c", THIEF]).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answer = lines.next().unwrap().parse().unwrap();
    let heard = service.hears();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let took = lines.collect();
    child.wait().unwrap();
    (answer, heard, took)
}

const CASES: [(SockType, i32); 3] = [
    (SockType::Datagram, libc::SO_REUSEADDR),
    (SockType::Datagram, libc::SO_REUSEPORT),
    (SockType::Stream, libc::SO_REUSEPORT),
];

#[test]
fn a_service_of_the_host_that_shares_its_port_hears_all_its_clients() {
    for (kind, option) in CASES {
        for user in User::all() {
            let world = World::new(user);
            let service = Service::new(user, kind, option == libc::SO_REUSEPORT);
            let (answer, heard, took) = steal(&mut world.command("python3"), &service, option);
            assert!(answer == 0 && heard < ASKED && !took.is_empty(), "{kind:?} {option} {user:?}: {heard}");
        }
        for (tier, user) in everywhere() {
            let nets: &[&str] = if tier == Tier::Full { &["on"] } else { &["on", "off"] };
            for net in nets {
                let world = World::new(user);
                let service = Service::new(user, kind, option == libc::SO_REUSEPORT);
                let mut sandbox = world.sandbox(tier, &["--net", net], "python3");
                let stolen = steal(&mut sandbox, &service, option);
                assert_eq!(
                    stolen,
                    (EADDRINUSE, ASKED, vec![]),
                    "{kind:?} {option} {tier} net {net} {user:?}"
                );
            }
        }
    }
}
