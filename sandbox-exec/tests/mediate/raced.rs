//! Tests with a descriptor and an address that another thread changes while the call is mediated.

use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::socket::{setsockopt, sockopt::ReuseAddr};

use crate::calls::{DATAGRAM, STREAM, internet, socket, unix};
use crate::harness::as_each_user;
use crate::network::on;

/// Time after which the racing thread changes the descriptor: about as long as a mediated call takes.
const PERIOD: Duration = Duration::from_micros(40);

/// Time for which the race is tried. If the kernel read the descriptor a second time, a fifth of this would show it.
const TRIES: Duration = Duration::from_millis(500);

#[test]
fn a_raced_bind_takes_no_port_of_the_host() {
    as_each_user(|place| {
        let victim = UdpSocket::bind("127.0.0.1:0").unwrap();
        setsockopt(&victim, ReuseAddr, &true).unwrap();
        let address = victim.local_addr().unwrap();
        let takes_the_port = |tries| {
            let taker = socket(libc::AF_INET, DATAGRAM);
            setsockopt(&taker, ReuseAddr, &true).unwrap();
            race(&taker, &internet(&address.to_string()), tries);
            UdpSocket::from(taker).local_addr().unwrap().port() == address.port()
        };
        place.unmediated(|| assert!(takes_the_port(TRIES * 40)));
        on(place, || assert!(!takes_the_port(TRIES)));
    });
}

/// Binds by a descriptor and an address that change together between an internet socket and a unix socket, until the
/// internet socket `taker` is bound or time is up.
fn race(taker: &OwnedFd, port: &[u8], tries: Duration) {
    let begun = Instant::now();
    let (decoy, changing) = (socket(libc::AF_UNIX, STREAM), socket(libc::AF_UNIX, STREAM));
    let path = unix("/nowhere/at-all");
    let address: Vec<AtomicU8> = path[..port.len()].iter().map(|&byte| AtomicU8::new(byte)).collect();
    let become_one = |socket: &OwnedFd, bytes: &[u8]| {
        for (byte, &value) in address.iter().zip(bytes) {
            byte.store(value, Ordering::Relaxed);
        }
        // SAFETY: integers; the descriptor is `changing`, which is only ever another socket.
        assert!(unsafe { libc::dup2(socket.as_raw_fd(), changing.as_raw_fd()) } >= 0);
        let until = Instant::now() + PERIOD;
        while Instant::now() < until {}
    };
    let bind = || {
        let length = u32::try_from(address.len()).unwrap();
        // SAFETY: the kernel reads as many bytes as there are.
        unsafe { libc::bind(changing.as_raw_fd(), address.as_ptr().cast(), length) };
    };
    let is_bound = || UdpSocket::from(taker.try_clone().unwrap()).local_addr().unwrap().port() != 0;
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                become_one(&decoy, &path);
                become_one(taker, port);
            }
        });
        while !is_bound() && begun.elapsed() < tries {
            bind();
        }
        ended.store(true, Ordering::Relaxed);
    });
}
