//! Tests that the mediator's duplicates keep a socket alive while programs have it, and not noticeably longer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use ipc::rights::{Network, Reach};
use nix::libc;
use nix::sys::resource::{Resource, setrlimit};

use crate::calls::{STREAM, connect, errno, internet, socket};
use crate::children::{end, in_child, open_there, wait_until_open_there};
use crate::harness::{as_containers, as_each_user};

#[test]
fn the_end_of_a_connection_is_seen_at_once() {
    as_each_user(|place| {
        let each = || {
            let (tcp, path) = (TcpListener::bind("127.0.0.1:0").unwrap(), place.path("in/ends"));
            for _ in 0..100 {
                let client = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
                let mut accepted = tcp.accept().unwrap().0;
                drop(client);
                // Returns because no sender is left, or the test never ends.
                assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
            }
            let server = UnixListener::bind(&path).unwrap();
            let client = UnixStream::connect(&path).unwrap();
            let mut accepted = server.accept().unwrap().0;
            accepted.set_nonblocking(true).unwrap();
            drop(client);
            assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
            std::fs::remove_file(path).unwrap();
        };
        place.mediated(each);
        place.mediate(Network::On, Reach::default(), each);
    });
}

#[test]
fn who_closed_its_listener_is_not_reached() {
    as_each_user(|place| {
        place.mediated(|| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let (address, path) = (tcp.local_addr().unwrap(), place.path("in/closed"));
            let unix = UnixListener::bind(&path).unwrap();
            let waiting = [TcpStream::connect(address).unwrap()];
            drop((tcp, unix));
            assert_eq!(errno(TcpStream::connect(address)), libc::ECONNREFUSED);
            assert_eq!(errno(UnixStream::connect(&path)), libc::ECONNREFUSED);
            for mut client in waiting {
                assert_eq!(errno(client.read(&mut [0])), libc::ECONNRESET);
            }
            // The port is free, too.
            let udp = UdpSocket::bind(address).unwrap();
            drop(udp);
            UdpSocket::bind(address).unwrap();
            TcpListener::bind(address).unwrap();
            std::fs::remove_file(path).unwrap();
        });
    });
}

#[test]
fn a_listener_lives_as_long_as_any_process_has_it() {
    as_each_user(|place| {
        place.mediated(|| {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let child = in_child(|| {
                let moved = server.try_clone().unwrap();
                loop {
                    moved.accept().unwrap().0.write_all(b"here").unwrap();
                }
            });
            drop(server);
            for _ in 0..3 {
                let mut text = String::new();
                TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
                assert_eq!(text, "here");
            }
            end(child);
            // If the mediator accepts, it may be about to notice that the process is gone.
            while TcpStream::connect(address).is_ok() {}
            assert_eq!(errno(TcpStream::connect(address)), libc::ECONNREFUSED);
        });
    });
}

#[test]
fn what_is_closed_is_let_go_and_too_many_are_refused() {
    as_containers(|place| {
        setrlimit(Resource::RLIMIT_NOFILE, 9000, 9000).unwrap();
        place.mediated(|| {
            drop(socket(libc::AF_INET, STREAM));
            wait_until_open_there(20);
            let before = open_there();
            let mut all = vec![];
            let refused = loop {
                // SAFETY: integers; the descriptor is new.
                match unsafe { libc::socket(libc::AF_INET, STREAM, 0) } {
                    -1 => break std::io::Error::last_os_error(),
                    // SAFETY: as above.
                    number => all.push(unsafe { OwnedFd::from_raw_fd(number) }),
                }
            };
            assert_eq!(refused.raw_os_error(), Some(libc::ENOBUFS));
            // The first may be held still.
            assert!((4095..=4096).contains(&all.len()), "{}", all.len());
            drop(all);
            // Any number, one after the other.
            for _ in 0..5000 {
                drop(socket(libc::AF_INET, STREAM));
            }
            wait_until_open_there(before);
        });
    });
}

#[test]
fn callers_that_die_leave_nothing() {
    as_containers(|place| {
        place.mediated(|| {
            drop(socket(libc::AF_INET, STREAM));
            wait_until_open_there(20);
            let before = open_there();
            for _ in 0..30 {
                let child = in_child(|| {
                    loop {
                        let client = socket(libc::AF_INET, STREAM);
                        drop(connect(&client, &internet("127.0.0.1:9")));
                    }
                });
                while !std::fs::read_to_string(format!("/proc/{child}/syscall"))
                    .unwrap()
                    .starts_with(&format!("{} ", libc::SYS_connect))
                {
                    std::thread::yield_now();
                }
                end(child);
            }
            wait_until_open_there(before);
        });
    });
}
