//! Tests with the network off in the host's network namespace: no datagram from a process outside arrives at a socket
//! inside, and no process outside gets the port of one.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag};
use nix::libc::{self, c_int};

use crate::calls::{DATAGRAM, bind, control, errno, internet, send_message, send_to, socket};
use crate::children::{open_there, wait_until_open_there};
use crate::harness::{Place, goes_on, in_the_floor_on_each_machine, pipe};
use crate::network::{family, own_address};

/// Number of times that the process outside must have shared the port before the test ends.
const SLIPS: usize = 8;

/// Sends to a socket inside from every address that a process outside can use; also from the port of a permitted
/// sender, if the process gets that port.
fn send_as_stranger(to: SocketAddr, port_of_another: Option<u16>) {
    let mut froms: Vec<IpAddr> = vec![if to.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() }];
    if to.is_ipv4() {
        froms.extend([[127, 0, 0, 1], [127, 0, 0, 2]].map(IpAddr::from));
        froms.extend(own_address());
    }
    for from in froms {
        for port in [Some(0), port_of_another].into_iter().flatten() {
            let stranger = socket(family(&to.to_string()), DATAGRAM);
            set(&stranger, libc::SO_REUSEADDR, &1_i32.to_ne_bytes()).unwrap();
            if bind(&stranger, &internet(&SocketAddr::new(from, port).to_string())).is_ok() {
                let to = internet(&to.to_string());
                drop(send_to(&stranger, b"evil", &to, 0));
                drop(send_message(&stranger, b"evil", &to, &from_localhost(), 0));
            }
        }
    }
}

fn from_localhost() -> Vec<u8> {
    control(libc::IPPROTO_IP, libc::IP_PKTINFO, &[[0; 4], [127, 0, 0, 1], [0; 4]].concat())
}

fn set(socket: &OwnedFd, name: c_int, value: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(value.len()).unwrap();
    // SAFETY: the kernel reads the value.
    let answer = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value.as_ptr().cast(), length)
    };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Process outside that receives an address and a sender's port over a pipe, and then sends to the address.
struct Stranger {
    ask: File,
    answered: File,
}

impl Stranger {
    fn new() -> Self {
        let (mut asked, ask) = pipe();
        let (answered, mut answer) = pipe();
        std::thread::spawn(move || {
            let mut question = [0; 64];
            while asked.read_exact(&mut question).is_ok() {
                let words = String::from_utf8(question.into()).unwrap();
                let mut words = words.split_whitespace();
                let to = words.next().unwrap().parse().unwrap();
                send_as_stranger(to, words.next().map(|port| port.parse().unwrap()));
                answer.write_all(b"x").unwrap();
            }
        });
        Self { ask, answered }
    }

    fn sends_to(&self, receiver: &UdpSocket, port_of_another: Option<u16>) {
        let port = port_of_another.map_or_else(String::new, |port| port.to_string());
        let question = format!("{:<63} ", format!("{} {port}", near(receiver)));
        (&self.ask).write_all(question.as_bytes()).unwrap();
        (&self.answered).read_exact(&mut [0]).unwrap();
    }
}

fn near(receiver: &UdpSocket) -> SocketAddr {
    let own = receiver.local_addr().unwrap();
    let ip = match own.ip() {
        ip if ip.is_unspecified() => [127, 0, 0, 1].into(),
        ip => ip,
    };
    SocketAddr::new(ip, own.port())
}

fn received(receiver: &UdpSocket) -> Vec<String> {
    receiver.set_nonblocking(true).unwrap();
    let mut bytes = [0; 8];
    std::iter::from_fn(|| {
        receiver.recv(&mut bytes).ok().map(|count| String::from_utf8_lossy(&bytes[..count]).into())
    })
    .collect()
}

fn bound_unasked() -> UdpSocket {
    let socket = UdpSocket::from(socket(libc::AF_INET, DATAGRAM));
    assert_eq!(errno(socket.send(b"x")), libc::EDESTADDRREQ);
    assert_ne!(socket.local_addr().unwrap().port(), 0);
    socket
}

fn receivers() -> Vec<UdpSocket> {
    let bound = ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"].map(|own| UdpSocket::bind(own).unwrap());
    bound.into_iter().chain([bound_unasked()]).collect()
}

#[test]
fn datagrams_of_strangers_do_not_arrive_and_those_from_inside_do() {
    in_the_floor_on_each_machine(|place| {
        let stranger = Stranger::new();
        place.unmediated(|| {
            for receiver in receivers() {
                stranger.sends_to(&receiver, None);
                assert!(received(&receiver).len() > 1, "the twin: {receiver:?}");
            }
        });
        place.mediated(|| {
            for receiver in receivers() {
                stranger.sends_to(&receiver, None);
                assert_eq!(received(&receiver), [""; 0], "{receiver:?}");
                let to = near(&receiver);
                let sender = UdpSocket::bind((if to.is_ipv4() { "0.0.0.0" } else { "::" }, 0)).unwrap();
                let port = sender.local_addr().unwrap().port();
                // The kernel bound it where no call from inside leads.
                if errno(sender.send_to(b"good", to)) == 0 {
                    stranger.sends_to(&receiver, Some(port));
                    assert_eq!(received(&receiver), ["good"], "{receiver:?}");
                    drop(sender);
                    stranger.sends_to(&receiver, Some(port));
                    assert_eq!(received(&receiver), [""; 0], "{receiver:?}, when its sender is gone");
                }
            }
        });
    });
}

#[test]
fn one_who_only_sends_hears_who_it_has_sent_to_and_no_stranger() {
    in_the_floor_on_each_machine(|place| {
        let stranger = Stranger::new();
        place.mediated(|| {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let client = UdpSocket::from(socket(libc::AF_INET, DATAGRAM));
            client.send_to(b"ask", server.local_addr().unwrap()).unwrap();
            stranger.sends_to(&client, Some(server.local_addr().unwrap().port()));
            let (_, from) = server.recv_from(&mut [0; 8]).unwrap();
            server.send_to(b"answer", from).unwrap();
            assert_eq!(received(&client), ["answer"]);
        });
    });
}

#[test]
fn a_port_that_is_heard_passes_to_nobody_outside_until_its_hearers_are_gone() {
    in_the_floor_on_each_machine(|place| {
        let (mut told, mut tell) = pipe();
        let (mut freed, mut free) = pipe();
        let outside = std::thread::spawn(move || {
            let mut port = [0; 2];
            told.read_exact(&mut port).unwrap();
            let port = u16::from_ne_bytes(port);
            let bind = |ip: [u8; 4]| UdpSocket::bind(SocketAddr::from((ip, port)));
            let refused = [[127, 0, 0, 1], [127, 9, 9, 9], [0; 4]].map(|ip| errno(bind(ip)));
            free.write_all(b"x").unwrap();
            told.read_exact(&mut [0; 2]).unwrap();
            while bind([127, 0, 0, 1]).is_err() {
                std::thread::yield_now();
            }
            free.write_all(b"x").unwrap();
            refused
        });
        place.mediated(|| {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            let own = client.local_addr().unwrap();
            client.send_to(b"x", server.local_addr().unwrap()).unwrap();
            drop(client);
            tell.write_all(&own.port().to_ne_bytes()).unwrap();
            freed.read_exact(&mut [0]).unwrap();
            // Inside it is free all the time, at any address.
            drop(UdpSocket::bind(("0.0.0.0", own.port())).unwrap());
            let again = UdpSocket::bind(own).unwrap();
            again.send_to(b"y", server.local_addr().unwrap()).unwrap();
            assert_eq!(received(&server), ["x", "y"]);
            drop((again, server));
            tell.write_all(&own.port().to_ne_bytes()).unwrap();
            freed.read_exact(&mut [0]).unwrap();
        });
        assert_eq!(outside.join().unwrap(), [libc::EADDRINUSE; 3]);
    });
}

/// Tests that a process outside is not heard even if it shares a permitted sender's port. A quick one can get that port
/// in the moment in which a socket inside is bound to it again.
#[test]
fn who_slips_in_while_a_port_is_bound_anew_is_not_heard() {
    in_the_floor_on_each_machine(|place| {
        let (mut told, mut tell) = pipe();
        let (mut slips, mut slipping) = pipe();
        for end in [&slips, &slipping] {
            nix::fcntl::fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        }
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let outside = std::thread::spawn(move || {
            let mut ports = [0; 4];
            told.read_exact(&mut ports).unwrap();
            let [server, client] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_ne_bytes);
            let to = internet(&format!("127.0.0.1:{server}"));
            let own = internet(&format!("127.0.0.2:{client}"));
            while !is_over.load(Ordering::Relaxed) {
                let stranger = socket(libc::AF_INET, DATAGRAM);
                set(&stranger, libc::SO_REUSEADDR, &1_i32.to_ne_bytes()).unwrap();
                if bind(&stranger, &own).is_ok() {
                    drop(send_message(&stranger, b"evil", &to, &from_localhost(), 0));
                    // The reader may miss some.
                    drop(slipping.write(b"x"));
                }
            }
        });
        place.mediated(|| {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = server.local_addr().unwrap();
            let mut client = UdpSocket::bind("127.0.0.1:0").unwrap();
            let own = client.local_addr().unwrap();
            client.send_to(b"good", to).unwrap();
            tell.write_all(&[to.port().to_ne_bytes(), own.port().to_ne_bytes()].concat()).unwrap();
            let (start, mut slipped_in) = (Instant::now(), 0);
            while slipped_in < SLIPS {
                assert!(goes_on(start, Duration::ZERO, false), "no race: {slipped_in}");
                drop(client);
                client = loop {
                    // A stranger may have it at another address: then it cannot be shared.
                    match UdpSocket::bind(own) {
                        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE)),
                        Ok(bound) => break bound,
                    }
                };
                drop(client.send_to(b"good", to));
                slipped_in += slips.read(&mut [0; SLIPS]).unwrap_or(0);
                let heard = received(&server);
                assert!(heard.iter().all(|text| text == "good"), "{heard:?}");
            }
        });
        over.store(true, Ordering::Relaxed);
        outside.join().unwrap();
    });
}

/// Tests that a socket inside accepts no sender whose port a process outside has at another address: a filter knows
/// senders by port alone, so it could not tell them apart.
#[test]
fn a_port_that_a_stranger_has_too_is_not_heard() {
    in_the_floor_on_each_machine(|place| {
        let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
        let port = stranger.local_addr().unwrap().port();
        let send = |server: &UdpSocket| {
            let client = UdpSocket::bind(("127.0.0.1", port)).unwrap();
            errno(client.send_to(b"x", server.local_addr().unwrap()))
        };
        place.unmediated(|| assert_eq!(send(&UdpSocket::bind("127.0.0.1:0").unwrap()), 0));
        place.mediated(|| {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            assert_eq!(send(&server), libc::EADDRINUSE);
            assert_eq!(received(&server), [""; 0]);
        });
    });
}

#[test]
fn no_program_says_itself_whom_its_sockets_hear() {
    in_the_floor_on_each_machine(|place| {
        let all = || {
            let receiver: OwnedFd = UdpSocket::bind("127.0.0.1:0").unwrap().into();
            // `struct sock_fprog`: one instruction, which passes all.
            let pass = libc::sock_filter { code: 6, jt: 0, jf: 0, k: u32::MAX };
            let mut attached = 1_u64.to_ne_bytes().to_vec();
            attached.extend((&raw const pass).addr().to_ne_bytes());
            let options: [(c_int, &[u8]); 4] = [
                (libc::SO_ATTACH_FILTER, &attached),
                (libc::SO_DETACH_FILTER, &[0; 4]),
                (libc::SO_LOCK_FILTER, &[1, 0, 0, 0]),
                (libc::SO_ATTACH_BPF, &[0xff; 4]),
            ];
            options.map(|(name, value)| errno(set(&receiver, name, value)))
        };
        // The last needs a descriptor of a program, which does not exist.
        place.unmediated(|| assert_eq!(all(), [0, 0, 0, libc::EPERM]));
        place.mediated(|| assert_eq!(all(), [libc::EPERM; 4]));
    });
}

#[test]
fn a_server_that_starts_anew_hears_who_is_connected_to_its_port() {
    in_the_floor_on_each_machine(|place| {
        place.mediated(|| {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let own = server.local_addr().unwrap();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(own).unwrap();
            client.send(b"one").unwrap();
            assert_eq!(received(&server), ["one"]);
            drop(server);
            let server = UdpSocket::bind(own).unwrap();
            client.send(b"two").unwrap();
            assert_eq!(received(&server), ["two"]);
        });
    });
}

#[test]
fn a_server_hears_as_many_as_come_and_forgets_who_is_gone() {
    in_the_floor_on_each_machine(|place| {
        place.mediated(|| {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let own = server.local_addr().unwrap();
            let send = |_| {
                let client = UdpSocket::bind("127.0.0.1:0").unwrap();
                client.send_to(b"x", own).unwrap();
                assert_eq!(received(&server), ["x"]);
                client
            };
            let all: Vec<_> = (0..200).map(send).collect();
            for client in &all {
                client.send_to(b"again", own).unwrap();
                assert_eq!(received(&server), ["again"]);
            }
            let before = open_there();
            drop(all);
            (0..600).map(send).for_each(drop);
            wait_until_open_there(before + 128);
        });
    });
}

/// Tests that a socket which gets a port without a `bind` hears nothing from the network: it is on loopback at once.
#[test]
fn what_is_made_is_tied_to_loopback_from_the_first_moment() {
    in_the_floor_on_each_machine(|place: &Place| {
        let Some(address) = own_address() else {
            eprintln!("skipped: a network of this machine (it has none)");
            return;
        };
        let send =
            move |port: u16| UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"x", (address, port)).map(drop);
        let (mut told, mut tell) = pipe();
        let (mut done, mut doing) = pipe();
        std::thread::spawn(move || {
            let mut port = [0; 2];
            while told.read_exact(&mut port).is_ok() {
                drop(send(u16::from_ne_bytes(port)));
                doing.write_all(b"x").unwrap();
            }
        });
        let mut arrives = || {
            let socket = bound_unasked();
            tell.write_all(&socket.local_addr().unwrap().port().to_ne_bytes()).unwrap();
            done.read_exact(&mut [0]).unwrap();
            received(&socket).len()
        };
        place.unmediated(|| assert_eq!(arrives(), 1));
        place.mediated(|| assert_eq!(arrives(), 0));
    });
}
