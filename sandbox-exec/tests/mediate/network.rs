//! Tests in the host's network namespace with the network off: programs reach their own ports, and none of the host's.

use std::fs::{File, remove_file};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

use ipc::rights::{Network, Reach};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::calls::{
    DATAGRAM, STREAM, bind, connect, control, errno, internet, send_message, send_messages, send_to, socket,
    unix,
};
use crate::harness::{Place, as_each_user, on_each_machine, pipe};

pub(crate) fn on(place: &Place, program: impl FnOnce()) {
    place.on_the_hosts_network(program);
}

pub(crate) fn family(address: &str) -> i32 {
    if address.starts_with('[') { libc::AF_INET6 } else { libc::AF_INET }
}

pub(crate) fn try_connect(style: i32, address: &str) -> i32 {
    errno(connect(&socket(family(address), style | libc::SOCK_NONBLOCK), &internet(address)))
}

pub(crate) fn each_call(address: &str) -> Vec<i32> {
    let new = |style| socket(family(address), style | libc::SOCK_NONBLOCK);
    let to = internet(address);
    vec![
        try_connect(STREAM, address),
        try_connect(DATAGRAM, address),
        errno(send_to(&new(DATAGRAM), b"x", &to, 0)),
        errno(send_message(&new(DATAGRAM), b"x", &to, &[], 0)),
        errno(send_messages(&new(DATAGRAM), &[b"x"], &to)),
        errno(send_to(&new(STREAM), b"x", &to, libc::MSG_FASTOPEN)),
        errno(send_message(&new(STREAM), b"x", &to, &[], libc::MSG_FASTOPEN)),
    ]
}

/// Returns this machine's address on a network, from which packets to other machines come; `None` without a network.
pub(crate) fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().unwrap().ip())
}

#[test]
fn ports_of_the_host_are_out_of_reach_however_they_are_written() {
    as_each_user(|place| {
        let (tcp, udp) = (TcpListener::bind("0.0.0.0:0").unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let mut addresses: Vec<String> =
            ["127.0.0.1", "127.1.2.3", "0.0.0.0", "[::ffff:127.0.0.1]"].map(str::to_owned).into();
        addresses.extend(own_address().map(|address| address.to_string()));
        let ports = [tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port()];
        on(place, || {
            for (address, port) in addresses.iter().flat_map(|address| ports.map(|port| (address, port))) {
                let address = format!("{address}:{port}");
                assert_eq!(each_call(&address), [place.refusal(); 7], "{address}");
            }
        });
        assert!(tcp.accept().is_err() && udp.recv(&mut [0; 8]).is_err());
        place.unmediated(|| {
            for address in &addresses {
                TcpStream::connect(format!("{address}:{}", ports[0])).unwrap();
            }
        });
        assert!(tcp.accept().is_ok());
    });
}

#[test]
fn neighbours_and_credentials_are_rights_of_their_own() {
    on_each_machine(|place| {
        let answers = |reach, address: &'static str, expected: bool| {
            place.mediate(Network::On, reach, || {
                for answer in each_call(address) {
                    assert_eq!(answer == libc::EACCES, expected, "{address}: {answer}");
                }
            });
        };
        let (denied, passed) = (true, false);
        let none = Reach::default();
        for address in
            ["169.254.169.254:80", "[fd00:ec2::254]:80", "169.254.7.7:80", "[::ffff:169.254.169.254]:80"]
        {
            answers(none, address, denied);
        }
        answers(Reach { metadata: true, ..none }, "169.254.169.254:80", passed);
        answers(Reach { metadata: true, ..none }, "169.254.7.7:80", denied);
        answers(Reach { link_local: true, ..none }, "169.254.7.7:80", passed);
        answers(Reach { link_local: true, ..none }, "169.254.169.254:80", denied);
        // A host address has no listener at this port: it answers ECONNREFUSED, or takes the datagram.
        answers(Reach { host: true, ..none }, "127.0.0.1:9", passed);
    });
}

#[test]
fn servers_and_clients_inside_find_each_other() {
    as_each_user(|place| {
        on(place, || {
            for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
                let Ok(server) = TcpListener::bind(address) else {
                    eprintln!("skipped: not on this machine: {address}");
                    continue;
                };
                let port = server.local_addr().unwrap().port();
                let host = if address.starts_with("[::1") { "[::1]" } else { "127.0.0.1" };
                let client = std::thread::spawn(move || {
                    let mut client = TcpStream::connect(format!("{host}:{port}")).unwrap();
                    client.write_all(b"hello").unwrap();
                    client.local_addr().unwrap()
                });
                let (mut stream, peer) = server.accept().unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                assert_eq!(
                    (text.as_str(), peer.port()),
                    ("hello", client.join().unwrap().port()),
                    "{address}"
                );
            }
        });
    });
}

#[test]
fn datagrams_inside_go_both_ways() {
    as_each_user(|place| {
        on(place, || {
            let (server, client) = (UdpSocket::bind("127.0.0.1:0").unwrap(), socket(libc::AF_INET, DATAGRAM));
            send_to(&client, b"ask", &internet(&server.local_addr().unwrap().to_string()), 0).unwrap();
            let mut bytes = [0; 8];
            let (_, from) = server.recv_from(&mut bytes).unwrap();
            server.send_to(b"answer", from).unwrap();
            let client = UdpSocket::from(client);
            assert_eq!(client.recv(&mut bytes).unwrap(), 6);
        });
    });
}

#[test]
fn a_port_is_own_only_as_long_as_its_socket_lives() {
    on_each_machine(|place| {
        let (mut closed, mut closing) = pipe();
        let (mut taken, mut taking) = pipe();
        let made = place.makes_sockets();
        let host = std::thread::spawn(move || {
            let mut port = [0; 2];
            closed.read_exact(&mut port).unwrap();
            let bind = || TcpListener::bind(("127.0.0.1", u16::from_ne_bytes(port)));
            let mut listener = bind();
            // A socket that was made here is dropped up to a second later.
            while made && listener.is_err() {
                std::thread::yield_now();
                listener = bind();
            }
            let listener = listener.unwrap();
            taking.write_all(b"x").unwrap();
            listener
        });
        on(place, || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let duplicate = server.try_clone().unwrap();
            drop(server);
            TcpStream::connect(address).unwrap();
            drop(duplicate);
            closing.write_all(&address.port().to_ne_bytes()).unwrap();
            taken.read_exact(&mut [0]).unwrap();
            assert_eq!(errno(TcpStream::connect(address)), place.refusal());
        });
        drop(host.join().unwrap());
    });
}

/// Checks that a listening socket inside accepts only a client inside, although a process outside connects first.
/// `gone` has a byte once that process was turned away.
pub(crate) fn lets_in_only_its_own(server: &TcpListener, mut gone: File) {
    let address = server.local_addr().unwrap();
    let inside = std::thread::spawn(move || {
        // A stranger that failed says nothing: the test fails then, and does not wait for ever.
        let mut word = [PollFd::new(gone.as_fd(), PollFlags::POLLIN)];
        let is_told = poll(&mut word, PollTimeout::from(60_000_u16)).unwrap() > 0;
        let text: &[u8] = if is_told && gone.read_exact(&mut [0]).is_ok() { b"good" } else { b"nobody" };
        TcpStream::connect(address).unwrap().write_all(text).unwrap();
    });
    let mut text = String::new();
    server.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "good");
    inside.join().unwrap();
}

#[test]
fn strangers_are_closed_before_a_byte_and_the_waiting_goes_on() {
    as_each_user(|place| {
        let (mut told, mut tell) = pipe();
        let stranger = std::thread::spawn(move || {
            let mut port = [0; 2];
            told.read_exact(&mut port).unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], u16::from_ne_bytes(port)));
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
            // Closed by the mediator: the end of the file, or a reset if this byte was underway.
            drop(stranger.write_all(b"evil"));
            match stranger.read(&mut [0]) {
                Ok(read) => assert_eq!(read, 0),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            }
            told
        });
        let (closed, mut close) = pipe();
        let watch = std::thread::spawn(move || {
            let told = stranger.join().unwrap();
            close.write_all(b"x").unwrap();
            told
        });
        on(place, || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            tell.write_all(&address.port().to_ne_bytes()).unwrap();
            lets_in_only_its_own(&server, closed);
        });
        drop(watch.join().unwrap());
    });
}

#[test]
fn sockets_are_made_inside_only_and_under_the_name_that_was_asked_for() {
    as_each_user(|place| {
        on(place, || {
            std::env::set_current_dir(place.path("in")).unwrap();
            nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o77));
            let server = UnixListener::bind("relative").unwrap();
            assert_eq!(server.local_addr().unwrap().as_pathname().unwrap().to_str(), Some("relative"));
            let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata("relative").unwrap());
            assert_eq!(mode & 0o777, 0o700);
            let client = UnixStream::connect("relative").unwrap();
            server.accept().unwrap();
            drop(client);
            assert_eq!(errno(UnixListener::bind("relative")), libc::EADDRINUSE);
            symlink("../out", "away").unwrap();
            for path in ["../out/socket", "away/socket"] {
                assert_eq!(errno(UnixListener::bind(path)), libc::EACCES);
            }
            assert_eq!(errno(UnixListener::bind(place.path("out/socket"))), libc::EACCES);
        });
        assert!(!place.path("out/socket").exists());
        place.unmediated(|| drop(UnixListener::bind(place.path("out/socket")).unwrap()));
    });
}

#[test]
fn a_socket_of_a_pair_gets_no_name() {
    as_each_user(|place| {
        let pair = || UnixStream::pair().unwrap().0.into();
        on(place, || {
            assert_eq!(errno(bind(&pair(), &unix(place.path("in/pair")))), libc::EINVAL);
            // Others get one, also when they send to a peer already.
            let server = UnixDatagram::bind(place.path("in/datagrams")).unwrap();
            let client = UnixDatagram::unbound().unwrap();
            client.connect(place.path("in/datagrams")).unwrap();
            assert_eq!(errno(bind(&client.into(), &unix(place.path("in/answers")))), 0);
            drop(server);
            assert_eq!(
                errno(bind(&pair(), &unix(format!("\0{}", place.path("pair").display())))),
                libc::EINVAL
            );
        });
        assert!(!place.path("in/pair").exists());
        place.unmediated(|| assert_eq!(errno(bind(&pair(), &unix(place.path("in/pair")))), 0));
    });
}

#[test]
fn a_socket_is_made_in_a_directory_that_a_program_has_open() {
    as_each_user(|place| {
        on(place, || {
            for (directory, expected) in [("in", 0), ("out", libc::EACCES)] {
                let open = File::open(place.path(directory)).unwrap();
                let (own, number) = (std::process::id(), open.as_raw_fd());
                symlink("/proc/self/fd", place.path("in/way")).unwrap();
                let link = place.path("in/way");
                for (name, to) in [
                    ("self", "/proc/self/fd"),
                    ("dots", "/proc/./self/../thread-self/fd"),
                    ("number", &format!("/proc/{own}/fd")),
                    ("device", "/dev/fd"),
                    ("link", link.to_str().unwrap()),
                ] {
                    let bound = UnixListener::bind(format!("{to}/{number}/{name}"));
                    assert_eq!(errno(bound), expected, "{directory}, {to}");
                }
                remove_file(link).unwrap();
                // The end of the path is judged by the kernel's rules.
                for (end, answer) in [("x/", libc::ENOENT), (".", libc::EADDRINUSE), ("..", libc::EADDRINUSE)]
                {
                    let bound = UnixListener::bind(format!("/proc/self/fd/{number}/{end}"));
                    assert_eq!(errno(bound), answer, "{directory}, {end:?}");
                }
            }
        });
        for name in ["self", "dots", "number", "device", "link"] {
            assert!(place.path("in").join(name).exists() && !place.path("out").join(name).exists(), "{name}");
        }
    });
}

#[test]
fn a_connection_that_does_not_wait_is_in_progress_and_one_that_waits_is_made() {
    as_each_user(|place| {
        on(place, || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap().to_string();
            let client = socket(libc::AF_INET, STREAM | libc::SOCK_NONBLOCK);
            assert_eq!(errno(connect(&client, &internet(&address))), libc::EINPROGRESS);
            server.accept().unwrap();
            if !place.makes_sockets() {
                // A socket that was made here is dropped as soon as it is connected, and its second `connect`
                // is one too many.
                assert_eq!(errno(connect(&client, &internet(&address))), 0);
            }
            assert_eq!(errno(connect(&client, &internet(&address))), libc::EISCONN);
            let client: OwnedFd = TcpStream::connect(&address).unwrap().into();
            // SAFETY: reads flags.
            let flags = unsafe { libc::fcntl(client.as_raw_fd(), libc::F_GETFL) };
            assert_eq!(flags & libc::O_NONBLOCK, 0);
            server.set_nonblocking(true).unwrap();
            server.accept().unwrap();
            assert_eq!(errno(server.accept()), libc::EAGAIN);
        });
    });
}

#[test]
fn no_control_data_routes_around_the_check() {
    as_each_user(|place| {
        let (mut told, mut tell) = pipe();
        let send = || {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = internet(&server.local_addr().unwrap().to_string());
            let client = socket(libc::AF_INET, DATAGRAM);
            [(libc::IP_TTL, 64_i32), (libc::IP_RETOPTS, 0)].map(|(name, value)| {
                let control = control(libc::IPPROTO_IP, name, &value.to_ne_bytes());
                errno(send_message(&client, b"x", &to, &control, 0))
            })
        };
        place.unmediated(|| write!(tell, "{:?}", send()).unwrap());
        drop(tell);
        let mut unmediated = String::new();
        told.read_to_string(&mut unmediated).unwrap();
        assert_eq!(unmediated, "[0, 0]");
        on(place, || assert_eq!(send(), [0, libc::EPERM]));
    });
}
