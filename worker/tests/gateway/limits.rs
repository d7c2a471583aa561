use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use ipc::gateway::{GatewayFailure, GatewayReport};
use nix::libc::{self, linger};
use nix::sys::socket::sockopt::SetStruct;
use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};

use crate::harness::{Gateway, PATIENCE, all, host, is_reset};

const MOST: usize = 512;

/// Socket option: time in seconds for which a closed socket waits for its peer's end (`TCP_LINGER2`, tcp(7)).
#[derive(Clone, Copy, Debug)]
struct TcpLinger2;

nix::setsockopt_impl!(TcpLinger2, libc::IPPROTO_TCP, libc::TCP_LINGER2, i32, SetStruct<i32>);

/// Starts a host that greets every client. Returns its port; the thread returns the first `count` connections.
fn greeter(port: u16, count: usize) -> (u16, thread::JoinHandle<Vec<TcpStream>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let greet = |_| {
            let mut socket = listener.accept().unwrap().0;
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.write_all(b"!").unwrap();
            socket
        };
        (0..count).map(greet).collect()
    });
    (port, thread)
}

fn limited() -> Gateway {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 1024; exec \"$0\" --gateway", env!("CARGO_BIN_EXE_bailiwick-worker")]);
    Gateway::start(command)
}

#[test]
fn connections_beyond_the_most_are_reset_and_the_others_work() {
    let (port, greeted) = greeter(0, MOST);
    let mut gateway = limited();
    gateway.order(&format!("localhost:{port}"));
    assert_eq!(gateway.report(), GatewayReport::Ready);
    let mut clients: Vec<_> = (0..600).map(|_| gateway.client("localhost", port)).collect();
    let mut too_many = 0;
    for _ in 0..600 {
        match gateway.report() {
            GatewayReport::Connected { .. } => {}
            GatewayReport::Failed { failure: GatewayFailure::TooMany, .. } => too_many += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(too_many, 600 - MOST);
    for refused in &mut clients[MOST..] {
        assert!(is_reset(refused));
    }
    for client in &mut clients[..MOST] {
        client.read_exact(&mut [0]).unwrap();
    }
    // Those that end make room.
    drop(clients);
    drop(greeted.join().unwrap());
    for _ in 0..MOST {
        assert_eq!(gateway.ended(), (0, 1, None));
    }
    let (port, _greeted) = greeter(port, 1);
    gateway.client("localhost", port).read_exact(&mut [0]).unwrap();
    gateway.connected();
}

#[test]
fn a_supervisor_that_reads_nothing_stops_arrivals_and_no_open_connection() {
    let (port, greeted) = greeter(0, 1);
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    gateway.connected();
    client.read_exact(&mut [0]).unwrap();
    let mut hosts = greeted.join().unwrap();
    let mut refused = 0;
    while gateway.takes_another(Duration::from_secs(2)) {
        drop(gateway.client("other.example", port));
        refused += 1;
        assert!(refused < 100_000, "arrivals are taken without an end");
    }
    client.write_all(b"still").unwrap();
    let mut word = [0; 5];
    hosts[0].read_exact(&mut word).unwrap();
    assert_eq!(&word, b"still");
    // Read again, it goes on.
    for _ in 0..refused {
        assert_eq!(gateway.failure(), GatewayFailure::NotListed);
    }
    assert!(gateway.end().0.success());
}

/// Returns a host that does not answer: a listener whose queue is full, with the connections that fill it.
fn silent() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listen(&listener, Backlog::new(0).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let queue = std::iter::from_fn(connect).collect();
    (listener, queue)
}

#[test]
fn clients_that_close_give_their_places_back_while_a_silent_host_is_dialled() {
    let (listener, _queue) = silent();
    let silent = listener.local_addr().unwrap().port();
    let (port, _greeted) = greeter(0, 1);
    let mut gateway = limited();
    gateway.order(&format!("localhost:{silent} localhost:{port}"));
    assert_eq!(gateway.report(), GatewayReport::Ready);
    for is_reset in [true, false] {
        let clients: Vec<_> = (0..MOST).map(|_| gateway.client("localhost", silent)).collect();
        drop(gateway.client("localhost", port));
        assert_eq!(gateway.failure(), GatewayFailure::TooMany);
        if is_reset {
            let at_once = linger { l_onoff: 1, l_linger: 0 };
            for client in &clients {
                setsockopt(client, sockopt::Linger, &at_once).unwrap();
            }
        }
        drop(clients);
        for _ in 0..MOST {
            assert_eq!(gateway.failure(), GatewayFailure::ClientClosed, "reset: {is_reset}");
        }
    }
    gateway.client("localhost", port).read_exact(&mut [0]).unwrap();
    gateway.connected();
}

#[test]
fn a_client_that_only_sends_no_more_has_time_for_a_slow_host() {
    let (listener, queue) = silent();
    let mut gateway = Gateway::new(&format!("localhost:{}", listener.local_addr().unwrap().port()));
    let mut client = gateway.client("localhost", listener.local_addr().unwrap().port());
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    // Room in the queue is for the second packet of the gateway, a second after its first.
    for _ in &queue {
        drop(listener.accept().unwrap());
    }
    let mut socket = listener.accept().unwrap().0;
    assert_eq!(all(&mut socket).unwrap(), b"question");
    socket.write_all(b"answer").unwrap();
    drop(socket);
    assert_eq!(all(&mut client).unwrap(), b"answer");
    gateway.connected();
}

#[test]
fn a_client_that_closed_gives_its_place_back_although_its_host_says_nothing() {
    let (port, served) = host(0, |mut socket| {
        assert_eq!(all(&mut socket).unwrap(), b"");
        socket
    });
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let client = gateway.client("localhost", port);
    gateway.connected();
    // In place of a minute.
    setsockopt(&client, TcpLinger2, &1).unwrap();
    drop(client);
    let _host = served.join().unwrap();
    assert_eq!(gateway.ended(), (0, 0, None));
}
