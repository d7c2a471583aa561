//! Tests that the gateway carries bytes unchanged in both directions, and passes on the ends of connections.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;

use ipc::gateway::{GatewayFailure, GatewayReport};
use nix::libc::linger;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use crate::harness::{Gateway, PATIENCE, all, host, is_reset, sink};

/// Number of bytes to carry; more than fits into all buffers on the way.
const MUCH: usize = 10 << 20;

fn pattern(seed: usize) -> Vec<u8> {
    (0..MUCH).map(|index| (index * 31 + index / 251 + seed).to_le_bytes()[0]).collect()
}

#[test]
fn much_passes_both_ways_unchanged_and_counted() {
    let (port, served) = host(0, |mut socket| {
        let mut writer = socket.try_clone().unwrap();
        let writing = thread::spawn(move || {
            writer.write_all(&pattern(1)).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let read = all(&mut socket).unwrap();
        writing.join().unwrap();
        read
    });
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    let number = gateway.connected();
    let mut writer = client.try_clone().unwrap();
    let writing = thread::spawn(move || {
        writer.write_all(&pattern(2)).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    assert!(all(&mut client).unwrap() == pattern(1));
    writing.join().unwrap();
    assert!(served.join().unwrap() == pattern(2));
    let much = MUCH as u64;
    let ended = GatewayReport::Ended { connection: number, sent: much, received: much, failure: None };
    assert_eq!(gateway.report(), ended);
}

#[test]
fn a_report_names_the_address_and_numbers_are_never_used_again() {
    let (port, _served) = sink(0);
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let client = gateway.client("LOCALHOST.", port);
    let GatewayReport::Connected { connection: first, arrival, address } = gateway.report() else { panic!() };
    assert_eq!((arrival.name.as_str(), arrival.port, arrival.program.as_str()), ("localhost", port, "curl"));
    assert_eq!(address.to_string(), format!("127.0.0.1:{port}"));
    drop(client);
    assert_eq!(gateway.ended(), (0, 0, None));
    let _client = gateway.client("localhost", port);
    // The host has served its one connection.
    assert!(matches!(gateway.failure(), GatewayFailure::Unreachable { errno: nix::libc::ECONNREFUSED, .. }));
    let (port, _served) = sink(port);
    let _client = gateway.client("localhost", port);
    assert!(gateway.connected() > first);
}

#[test]
fn a_host_that_speaks_first_is_not_kept_waiting() {
    let (port, served) = host(0, |mut socket| {
        socket.write_all(b"220 ready\r\n").unwrap();
        all(&mut socket).unwrap()
    });
    let gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    let mut greeting = [0; 11];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"220 ready\r\n");
    client.write_all(b"EHLO client\r\n").unwrap();
    drop(client);
    assert_eq!(served.join().unwrap(), b"EHLO client\r\n");
}

#[test]
fn the_end_of_one_direction_leaves_the_other_open() {
    let (port, served) = host(0, |mut socket| {
        let question = all(&mut socket).unwrap();
        socket.write_all(b"answer").unwrap();
        question
    });
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&mut client).unwrap(), b"answer");
    assert_eq!(served.join().unwrap(), b"question");
    gateway.connected();
    assert_eq!(gateway.ended(), (8, 6, None));

    let (port, served) = host(0, |mut socket| {
        socket.write_all(b"greeting").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        all(&mut socket).unwrap()
    });
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    assert_eq!(all(&mut client).unwrap(), b"greeting");
    client.write_all(b"late").unwrap();
    drop(client);
    assert_eq!(served.join().unwrap(), b"late");
    gateway.connected();
    assert_eq!(gateway.ended(), (4, 8, None));
}

/// Closes a connection by a reset instead of a regular end.
fn reset(socket: std::net::TcpStream) {
    setsockopt(&socket, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 }).unwrap();
}

#[test]
fn a_host_that_resets_is_felt_by_the_client_also_after_the_end_of_a_direction() {
    for is_half_closed in [false, true] {
        let (allowed, wait) = mpsc::channel();
        let (port, served) = host(0, move |mut socket| {
            if is_half_closed {
                assert_eq!(all(&mut socket).unwrap(), b"");
            }
            // A reset that comes before connect(2) has returned is the error of connect(2).
            wait.recv_timeout(PATIENCE).unwrap();
            reset(socket);
        });
        let mut gateway = Gateway::new(&format!("localhost:{port}"));
        let mut client = gateway.client("localhost", port);
        gateway.connected();
        if is_half_closed {
            client.shutdown(Shutdown::Write).unwrap();
        }
        allowed.send(()).unwrap();
        assert!(is_reset(&mut client), "half closed: {is_half_closed}");
        served.join().unwrap();
        assert_eq!(gateway.ended(), (0, 0, None));
    }
}

#[test]
fn a_client_that_resets_is_felt_by_its_host() {
    let (port, served) = host(0, |mut socket| is_reset(&mut socket));
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let client = gateway.client("localhost", port);
    gateway.connected();
    reset(client);
    assert!(served.join().unwrap());
    assert_eq!(gateway.ended(), (0, 0, None));
}

#[test]
fn a_client_that_resets_is_felt_by_its_host_also_after_the_end_of_its_direction() {
    let (ended, end) = mpsc::channel();
    let (port, served) = host(0, move |mut socket| {
        assert_eq!(all(&mut socket).unwrap(), b"");
        ended.send(()).unwrap();
        // Behind the end a reader sees no reset any more.
        let mut hangup = [PollFd::new(socket.as_fd(), PollFlags::empty())];
        poll(&mut hangup, PollTimeout::try_from(PATIENCE).unwrap()).unwrap() == 1
    });
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let client = gateway.client("localhost", port);
    gateway.connected();
    client.shutdown(Shutdown::Write).unwrap();
    // A reset that overtakes the end would be all that the host sees.
    end.recv_timeout(PATIENCE).unwrap();
    reset(client);
    assert!(served.join().unwrap());
    assert_eq!(gateway.ended(), (0, 0, None));
}

#[test]
fn what_was_sent_before_a_reset_arrives() {
    let (port, served) = host(0, |mut socket| {
        // A reset that comes before connect(2) has returned is the error of connect(2), and no byte is read then.
        socket.read_exact(&mut [0]).unwrap();
        socket.write_all(b"413 too large").unwrap();
        reset(socket);
    });
    let gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    client.write_all(b"x").unwrap();
    let mut answer = [0; 13];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"413 too large");
    assert!(is_reset(&mut client));
    served.join().unwrap();
}

#[test]
fn a_client_that_reads_nothing_stops_its_host_and_nobody_else() {
    let (port, served) = host(0, |mut socket| {
        socket.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
        let much = pattern(3);
        (0..20).any(|_| socket.write_all(&much).is_err())
    });
    let (other, greeted) = host(0, |mut socket| socket.write_all(b"hello").unwrap());
    let mut gateway = Gateway::new(&format!("localhost:{port} localhost:{other}"));
    let _silent = gateway.client("localhost", port);
    gateway.connected();
    assert!(served.join().unwrap(), "200 MiB went somewhere");
    let mut client = gateway.client("localhost", other);
    assert_eq!(all(&mut client).unwrap(), b"hello");
    greeted.join().unwrap();
}
