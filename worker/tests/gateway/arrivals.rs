//! Tests of valid and invalid messages on the gateway's two sockets, to the broker and to the supervisor.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::Command;

use ipc::gateway::{GatewayFailure, GatewayReport};

use crate::harness::{Gateway, all, arrival, connection, is_reset, sink};

#[test]
fn a_message_that_is_no_arrival_is_dropped_and_its_descriptors_are_closed() {
    let mut gateway = Gateway::new("localhost:1");
    let good = arrival("localhost", 1);
    let mut dropped = Vec::new();
    let mut hand_over = |bytes: &[u8], sockets: usize| {
        let pairs: Vec<_> = (0..sockets).map(|_| connection()).collect();
        let descriptors: Vec<_> = pairs.iter().map(|(_, accepted)| accepted.as_raw_fd()).collect();
        gateway.hand_over(bytes, &descriptors).unwrap();
        dropped.extend(pairs.into_iter().map(|(client, _)| client));
    };
    hand_over(b"x", 1);
    hand_over(&good[..good.len() - 1], 1);
    hand_over(&[&good[..], b"x"].concat(), 1);
    hand_over(&[&good[..], &[0; 4096]].concat(), 1);
    hand_over(&vec![0xff; 1024], 1);
    hand_over(&good, 0);
    hand_over(&good, 2);
    hand_over(&good, 253);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    datagrams.connect(listener.local_addr().unwrap()).unwrap();
    let (unix, mut other_end) = UnixStream::pair().unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    for descriptor in [listener.as_raw_fd(), datagrams.as_raw_fd(), unix.as_raw_fd(), file.as_raw_fd()] {
        gateway.hand_over(&good, &[descriptor]).unwrap();
    }
    drop(unix);
    // The next arrival is taken all the same, and nothing was reported about the others.
    let mut client = gateway.client("elsewhere.example", 1);
    assert_eq!(gateway.failure(), GatewayFailure::NotListed);
    assert!(is_reset(&mut client));
    for mut client in dropped {
        assert_eq!(all(&mut client).unwrap(), b"", "the accepted socket is closed");
    }
    assert_eq!(std::io::Read::read(&mut other_end, &mut [0]).unwrap(), 0);
    let (status, said) = gateway.end();
    assert!(status.success() && said.is_empty(), "{status} {said}");
}

#[test]
fn a_host_that_is_not_listed_is_not_connected_to() {
    let (port, served) = sink(0);
    let mut gateway = Gateway::new(&format!("localhost:{port} *.localhost:{port}"));
    for (name, port) in [("other.example", port), ("localhost", port ^ 1), ("localhost.example", port)] {
        let mut client = gateway.client(name, port);
        let report = gateway.report();
        let GatewayReport::Failed { arrival, failure: GatewayFailure::NotListed } = report else {
            panic!("{report:?}");
        };
        assert_eq!((arrival.name.as_str(), arrival.port, arrival.program.as_str()), (name, port, "curl"));
        assert!(is_reset(&mut client));
    }
    drop(gateway.client("localhost", port));
    gateway.connected();
    assert_eq!(served.join().unwrap(), b"", "the one connection that was made is the last");
}

/// Tests that the supervisor can read why a connection was reset when the program sees the reset, since the program's end
/// may be the next thing that the supervisor hears of.
#[test]
fn a_failure_can_be_read_when_the_program_sees_its_connection_reset() {
    let mut gateway = Gateway::new("localhost:1 *.localhost:443");
    for round in 0..100 {
        for (name, port, said) in
            [("other.example", 1, ""), ("localhost", 1, ""), ("a.localhost", 443, "no hello")]
        {
            let mut client = gateway.client(name, port);
            client.write_all(said.as_bytes()).unwrap();
            let reset = is_reset(&mut client);
            assert!(reset && gateway.has_report(), "{name}:{port}, round {round}, reset: {reset}");
            gateway.failure();
        }
    }
}

#[test]
fn the_end_of_arrivals_leaves_open_connections_alone() {
    let (port, served) = sink(0);
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    gateway.connected();
    gateway.end_arrivals();
    client.write_all(b"later").unwrap();
    drop(client);
    assert_eq!(served.join().unwrap(), b"later");
    assert_eq!(gateway.ended(), (5, 0, None));
    assert!(gateway.end().0.success());
}

#[test]
fn the_end_of_the_supervisor_ends_the_gateway_and_resets_what_is_open() {
    let (port, served) = crate::harness::host(0, |mut socket| is_reset(&mut socket));
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    gateway.connected();
    let (status, said) = gateway.end();
    assert!(status.success() && said.is_empty(), "{status} {said}");
    assert!(is_reset(&mut client) && served.join().unwrap());
}

#[test]
fn a_killed_gateway_resets_what_is_open() {
    let (port, served) = crate::harness::host(0, |mut socket| is_reset(&mut socket));
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    gateway.connected();
    gateway.child.kill().unwrap();
    assert!(is_reset(&mut client) && served.join().unwrap());
}

#[test]
fn an_order_that_is_none_and_a_second_one_end_the_gateway_with_one_line() {
    let started = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick-worker"));
        command.arg("--gateway");
        Gateway::start(command)
    };
    let (status, said) = started().end();
    assert_eq!(
        (status.code(), said.as_str()),
        (Some(1), "bailiwick-worker: the supervisor closed the connection before its first message\n")
    );
    let mut broken = started();
    broken.write(&[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let (status, said) = broken.wait();
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("frame of protocol version 0") && said.lines().count() == 1, "{said}");
    let mut twice = Gateway::new("localhost:1");
    twice.order("localhost:2");
    let (status, said) = twice.wait();
    assert_eq!(
        (status.code(), said.as_str()),
        (Some(1), "bailiwick-worker: the supervisor sent its first message twice\n")
    );
}
