use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use nix::libc;

use crate::calls::{DATAGRAM, STREAM, connect, errno, internet, send_messages, send_to, socket, unix};
use crate::harness::{as_each_user, goes_on};

const RACING: Duration = Duration::from_secs(1);

#[test]
fn an_address_that_changes_never_leads_outside() {
    as_each_user(|place| {
        // The two paths differ in one byte.
        let (inside, outside) = (place.path("in/0"), place.path("out"));
        std::fs::remove_dir(&outside).unwrap();
        std::fs::create_dir(place.path("on")).unwrap();
        let _server = UnixListener::bind(&inside).unwrap();
        let victim = UnixListener::bind(place.path("on/0")).unwrap();
        victim.set_nonblocking(true).unwrap();
        for name in ["in/0", "on/0", "on"] {
            place.open(name);
        }
        let address: Vec<AtomicU8> = unix(&inside).into_iter().map(AtomicU8::new).collect();
        let racing = &address[address.len() - 4];
        place.mediated(|| {
            let over = AtomicBool::new(false);
            let (mut reached, mut denied) = (0, 0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        racing.store(b'o', Ordering::Relaxed);
                        racing.store(b'i', Ordering::Relaxed);
                    }
                });
                let start = Instant::now();
                let has_met_both = |reached, denied| reached > 0 && denied > 0;
                while goes_on(start, RACING, has_met_both(reached, denied)) {
                    let client = socket(libc::AF_UNIX, STREAM | libc::SOCK_NONBLOCK);
                    let length = u32::try_from(address.len()).unwrap();
                    // SAFETY: the kernel reads the address, which may change meanwhile.
                    if unsafe { libc::connect(client.as_raw_fd(), address.as_ptr().cast(), length) } == 0 {
                        reached += 1;
                    } else {
                        let error = std::io::Error::last_os_error();
                        denied += i32::from(error.raw_os_error() == Some(libc::EACCES));
                    }
                }
                over.store(true, Ordering::Relaxed);
            });
            assert!(reached > 0 && denied > 0, "no race: {reached} reached, {denied} denied");
        });
        assert!(victim.accept().is_err());
    });
}

#[test]
fn a_directory_that_changes_never_leads_outside() {
    as_each_user(|place| {
        let _server = UnixListener::bind(place.path("in/socket")).unwrap();
        let victim = UnixListener::bind(place.path("out/socket")).unwrap();
        victim.set_nonblocking(true).unwrap();
        for name in ["in/socket", "out/socket"] {
            place.open(name);
        }
        place.mediated(|| {
            let (swapped, inside, outside) = (place.path("in/d"), place.path("in/a"), place.path("in/b"));
            symlink(place.path("in"), &inside).unwrap();
            symlink(place.path("out"), &outside).unwrap();
            let over = AtomicBool::new(false);
            let mut denied = 0;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        for target in [&inside, &outside] {
                            drop(std::fs::remove_file(&swapped));
                            std::fs::hard_link(target, &swapped).unwrap();
                        }
                    }
                });
                let start = Instant::now();
                while goes_on(start, RACING, denied > 0) {
                    let client = socket(libc::AF_UNIX, STREAM | libc::SOCK_NONBLOCK);
                    let answer = errno(connect(&client, &unix(swapped.join("socket"))));
                    denied += i32::from(answer == libc::EACCES);
                }
                over.store(true, Ordering::Relaxed);
            });
            assert!(denied > 0, "no race");
        });
        assert!(victim.accept().is_err());
    });
}

#[test]
fn a_socket_that_changes_its_family_never_leads_elsewhere() {
    as_each_user(|place| {
        let bound = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (peer, victim) = (bound(), bound());
        victim.set_nonblocking(true).unwrap();
        let mut to = internet(&victim.local_addr().unwrap().to_string());
        to[..2].copy_from_slice(&[0, 0]);
        let mapped = internet(&format!("[::ffff:127.0.0.1]:{}", peer.local_addr().unwrap().port()));
        let connected: Vec<_> = (0..20)
            .map(|_| {
                let client = socket(libc::AF_INET6, DATAGRAM);
                connect(&client, &mapped).unwrap();
                client
            })
            .collect();
        let become_v4 = |client: &OwnedFd| {
            // SAFETY: the kernel reads one integer.
            let answer = unsafe {
                let family = libc::AF_INET;
                let value = (&raw const family).cast();
                libc::setsockopt(client.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_ADDRFORM, value, 4)
            };
            assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
        };
        // A handed-in socket that takes an address with each message is denied where the mediator cannot act
        // on it.
        let refusal = place.refusal_of_handed_in();
        place.on_the_hosts_network(|| {
            let mut denied = 0;
            for client in &connected {
                let sending = AtomicBool::new(false);
                let (client, to, sent) = (&client, &to, &sending);
                std::thread::scope(|scope| {
                    let sender = scope.spawn(move || {
                        let mut answers = vec![];
                        for _ in 0..20 {
                            answers.push(errno(send_messages(client, &[&b"x"[..]; 200], to)));
                            sent.store(true, Ordering::Release);
                        }
                        answers
                    });
                    while !sending.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                    become_v4(client);
                    denied += sender.join().unwrap().iter().filter(|&&answer| answer == refusal).count();
                });
            }
            assert!(denied > 0, "no race");
        });
        assert!(victim.recv(&mut [0; 8]).is_err());
        let client = socket(libc::AF_INET6, DATAGRAM);
        connect(&client, &mapped).unwrap();
        become_v4(&client);
        place.unmediated(|| assert_eq!(errno(send_to(&client, b"x", &to, 0)), 0));
        assert!(victim.recv(&mut [0; 8]).is_ok());
    });
}

#[test]
fn a_thousand_callers_at_once() {
    as_each_user(|place| {
        place.mediated(|| {
            let server = UnixListener::bind(place.path("in/server")).unwrap();
            let callers: Vec<_> = (0..1000)
                .map(|_| {
                    let path = place.path("in/server");
                    let connect = move || drop(UnixStream::connect(path).unwrap());
                    let thread = || std::thread::Builder::new().stack_size(64 << 10).spawn(connect.clone());
                    // A machine that has no more of them has some again when others have ended.
                    std::iter::repeat_with(thread).find_map(Result::ok).unwrap()
                })
                .collect();
            for _ in &callers {
                server.accept().unwrap();
            }
            for caller in callers {
                caller.join().unwrap();
            }
        });
    });
}
