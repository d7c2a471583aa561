//! Tests of the names that the gateway looks up, of names in first messages, and of the addresses that it tries.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ipc::gateway::{GatewayFailure, GatewayReport};
use nix::libc::{ECONNREFUSED, ETIMEDOUT};
use rustls::crypto::ring;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::harness::{Gateway, PATIENCE, all, host, is_reset, sink};
use crate::namespace::{is_inside, resolver};

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn hello(name: &str, says_name: bool) -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    config.enable_sni = says_name;
    let mut client = ClientConnection::new(Arc::new(config), name.to_owned().try_into().unwrap()).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

fn other(said: &str) -> GatewayFailure {
    GatewayFailure::OtherName { said: said.parse().ok() }
}

#[test]
fn names_that_are_not_listed_are_never_looked_up() {
    if !is_inside("names::names_that_are_not_listed_are_never_looked_up") {
        return;
    }
    let asked = resolver(&[("listed.example", &[HERE])]);
    let (port, served) = sink(0);
    let mut gateway = Gateway::new(&format!("listed.example:{port} missing.example:{port}"));
    for name in ["secret.other.example", "x.listed.example"] {
        let _client = gateway.client(name, port);
        assert_eq!(gateway.failure(), GatewayFailure::NotListed);
    }
    let mut client = gateway.client("missing.example", port);
    assert_eq!(gateway.failure(), GatewayFailure::Unresolved);
    assert!(is_reset(&mut client));
    drop(gateway.client("listed.example", port));
    gateway.connected();
    served.join().unwrap();
    let asked: Vec<_> = asked.try_iter().collect();
    assert!(asked.iter().all(|name| name == "missing.example" || name == "listed.example"), "{asked:?}");
    assert!(asked.len() >= 2, "the resolver is asked here: {asked:?}");
}

#[test]
fn addresses_are_tried_in_turn_and_those_that_stand_for_names_never() {
    if !is_inside("names::addresses_are_tried_in_turn_and_those_that_stand_for_names_never") {
        return;
    }
    let stand_in = Ipv4Addr::new(198, 18, 0, 9);
    let refusing = Ipv4Addr::new(127, 0, 0, 9);
    let full = Ipv4Addr::new(127, 0, 0, 8);
    let _asked = resolver(&[
        ("mixed.example", &[stand_in, refusing, HERE]),
        ("inside.example", &[stand_in]),
        ("down.example", &[refusing]),
        ("slow.example", &[full, HERE]),
        ("silent.example", &[full]),
    ]);
    let (port, served) = sink(0);
    let rules = ["mixed", "inside", "down", "slow", "silent"].map(|name| format!("{name}.example:{port}"));
    let mut gateway = Gateway::new(&rules.join(" "));
    drop(gateway.client("mixed.example", port));
    let GatewayReport::Connected { address, .. } = gateway.report() else { panic!() };
    assert_eq!(address, (HERE, port).into());
    served.join().unwrap();
    assert_eq!(gateway.ended(), (0, 0, None));
    let _client = gateway.client("inside.example", port);
    assert_eq!(gateway.failure(), GatewayFailure::Unresolved);
    let _client = gateway.client("down.example", port);
    let failure = GatewayFailure::Unreachable { address: (refusing, port).into(), errno: ECONNREFUSED };
    assert_eq!(gateway.failure(), failure);

    // A listener whose queue is full answers nothing.
    let silent = TcpListener::bind((full, port)).unwrap();
    nix::sys::socket::listen(&silent, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let connect = || std::net::TcpStream::connect_timeout(&(full, port).into(), Duration::from_millis(200));
    let _queue: Vec<_> = std::iter::from_fn(|| connect().ok()).collect();
    let (port, served) = sink(port);
    let started = Instant::now();
    drop(gateway.client("slow.example", port));
    gateway.connected();
    assert!(started.elapsed() < Duration::from_secs(5), "the second address is tried beside the first");
    served.join().unwrap();
    assert_eq!(gateway.ended(), (0, 0, None));
    let _client = gateway.client("silent.example", port);
    let failure = GatewayFailure::Unreachable { address: (full, port).into(), errno: ETIMEDOUT };
    assert_eq!(gateway.failure(), failure);
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn on_443_the_hello_has_to_name_the_host_before_anything_is_dialled() {
    if !is_inside("names::on_443_the_hello_has_to_name_the_host_before_anything_is_dialled") {
        return;
    }
    let mut gateway = Gateway::new("localhost");
    let nobody = TcpListener::bind((HERE, 443)).unwrap();
    nobody.set_nonblocking(true).unwrap();
    let none = GatewayFailure::NoFirstMessage;
    for (bytes, failure) in [
        (hello("other.example", true), other("other.example")),
        (hello("localhost", false), other("")),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), none.clone()),
        (b"SSH-2.0-client\r\n".to_vec(), none.clone()),
        (vec![22, 3, 1, 0, 1, 2], none.clone()),
    ] {
        let mut client = gateway.client("localhost", 443);
        client.write_all(&bytes).unwrap();
        assert_eq!(gateway.failure(), failure);
        assert!(is_reset(&mut client));
    }
    // Half a message, and its end; nothing at all.
    for bytes in [&hello("localhost", true)[..50], b""] {
        let mut client = gateway.client("localhost", 443);
        client.write_all(bytes).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(gateway.failure(), none);
    }
    let _silent = gateway.client("localhost", 443);
    assert_eq!(gateway.failure(), none, "after ten seconds");
    assert!(nobody.accept().is_err(), "nothing was dialled");
    drop(nobody);

    let (_, served) = sink(443);
    let bytes = hello("LOCALHOST", true);
    let mut client = gateway.client("localhost", 443);
    client.set_nodelay(true).unwrap();
    for byte in &bytes {
        client.write_all(&[*byte]).unwrap();
    }
    client.write_all(b"and more").unwrap();
    drop(client);
    assert_eq!(served.join().unwrap(), [&bytes[..], b"and more"].concat());
    gateway.connected();
    assert_eq!(gateway.ended(), (bytes.len() as u64 + 8, 0, None));
}

#[test]
fn on_other_ports_a_hello_has_to_name_the_host_if_it_names_one() {
    let (port, served) = host(0, |mut socket| (all(&mut socket).ok(), socket));
    let mut gateway = Gateway::new(&format!("localhost:{port}"));
    let mut client = gateway.client("localhost", port);
    gateway.connected();
    client.write_all(&hello("other.example", true)).unwrap();
    assert!(is_reset(&mut client));
    assert_eq!(served.join().unwrap().0, None, "it was reset, and got no byte");
    assert_eq!(gateway.ended(), (0, 0, Some(other("other.example"))));
    for bytes in [hello("localhost", true), hello("localhost", false), b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec()]
    {
        let (_, served) = sink(port);
        let mut client = gateway.client("localhost", port);
        client.write_all(&bytes).unwrap();
        drop(client);
        assert_eq!(served.join().unwrap(), bytes);
        gateway.connected();
        assert_eq!(gateway.ended(), (bytes.len() as u64, 0, None));
    }
}

#[test]
fn on_80_every_request_has_to_name_the_host() {
    if !is_inside("names::on_80_every_request_has_to_name_the_host") {
        return;
    }
    let mut gateway = Gateway::new("localhost:80");
    let nobody = TcpListener::bind((HERE, 80)).unwrap();
    nobody.set_nonblocking(true).unwrap();
    for (request, failure) in [
        ("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", other("other.example")),
        ("GET / HTTP/1.1\r\n\r\n", other("")),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", other("")),
        ("GET http://other.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", other("other.example")),
        ("CONNECT other.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", other("other.example")),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", GatewayFailure::NoFirstMessage),
    ] {
        let mut client = gateway.client("localhost", 80);
        client.write_all(request.as_bytes()).unwrap();
        assert_eq!(gateway.failure(), failure, "{request:?}");
        assert!(is_reset(&mut client));
    }
    assert!(nobody.accept().is_err(), "nothing was dialled");
    drop(nobody);

    let good = "POST http://localhost/ HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 2\r\n\r\nab";
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (_, served) = host(80, move |mut socket| {
        let mut request = vec![0; good.len()];
        for _ in 0..2 {
            socket.read_exact(&mut request).unwrap();
            assert_eq!(request, good.as_bytes());
            socket.write_all(answer).unwrap();
        }
        is_reset(&mut socket)
    });
    let mut client = gateway.client("localhost", 80);
    for _ in 0..2 {
        client.write_all(good.as_bytes()).unwrap();
        client.read_exact(&mut vec![0; answer.len()]).unwrap();
    }
    client.write_all(b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n").unwrap();
    assert!(is_reset(&mut client));
    assert!(served.join().unwrap(), "no byte of the third request went out");
    gateway.connected();
    let (sent, received) = (2 * good.len() as u64, 2 * answer.len() as u64);
    assert_eq!(gateway.ended(), (sent, received, Some(other("other.example"))));
}

#[test]
fn on_80_websocket_passes_and_other_upgrades_end_the_connection() {
    if !is_inside("names::on_80_websocket_passes_and_other_upgrades_end_the_connection") {
        return;
    }
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    for (protocol, passes) in [("websocket", true), ("h2c", false)] {
        let mut gateway = Gateway::new("localhost:80");
        let answer = format!("HTTP/1.1 101 Switching\r\nUpgrade: {protocol}\r\n\r\nfrom the host");
        let length = answer.len();
        let (_, served) = host(80, move |mut socket| {
            socket.read_exact(&mut [0; 80][..request.len()]).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
            all(&mut socket).ok()
        });
        let mut client = gateway.client("localhost", 80);
        // Sent before the answer is known, and held until then.
        client.write_all(&[&request[..], b"from the client"].concat()).unwrap();
        client.read_exact(&mut vec![0; length]).unwrap();
        // A connection that the gateway has reset by now has no direction to end.
        let ended = client.shutdown(Shutdown::Write);
        assert!(ended.is_ok() || !passes, "{ended:?}");
        assert_eq!(served.join().unwrap(), passes.then(|| b"from the client".to_vec()));
        gateway.connected();
        let failure = if passes { None } else { Some(other("")) };
        let sent = request.len() as u64 + if passes { 15 } else { 0 };
        assert_eq!(gateway.ended(), (sent, length as u64, failure));
    }
}

#[test]
fn many_clients_of_many_hosts_get_their_own_bytes() {
    let serve = |listener: TcpListener| {
        for socket in listener.incoming().take(20) {
            let mut socket = socket.unwrap();
            thread::spawn(move || {
                let bytes = all(&mut socket).unwrap();
                socket.write_all(&bytes).unwrap();
            });
        }
    };
    let listeners: Vec<_> = (0..5).map(|_| TcpListener::bind((HERE, 0)).unwrap()).collect();
    let ports: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    let rules: Vec<_> = ports.iter().map(|port| format!("localhost:{port}")).collect();
    let gateway = Gateway::new(&rules.join(" "));
    for listener in listeners {
        thread::spawn(move || serve(listener));
    }
    let clients = (0..100_u8).map(|index| {
        let mut client = gateway.client("localhost", ports[usize::from(index) % 5]);
        thread::spawn(move || {
            let bytes = vec![index; 100_000];
            client.write_all(&bytes).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(all(&mut client).unwrap(), bytes);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.join().unwrap();
    }
}
