use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use ipc::gateway::{GatewayFailure, GatewayReport, PROXY};

use crate::harness::{Gateway, all, host, is_reset, sink};

const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

fn client(gateway: &Gateway) -> TcpStream {
    gateway.client(PROXY.0, PROXY.1)
}

fn connect(name: &str, port: u16) -> Vec<u8> {
    format!("CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n").into_bytes()
}

fn socks(name: &str, port: u16) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    [&[5, 1, 0, 3, length], name.as_bytes(), &port.to_be_bytes()].concat()
}

fn told(client: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_program_that_names_a_host_of_the_list_is_connected_to_it() {
    for is_socks in [false, true] {
        let (port, served) = host(0, |mut socket| {
            let said = all(&mut socket).unwrap();
            socket.write_all(b"answer").unwrap();
            said
        });
        let mut gateway = Gateway::new(&format!("localhost:{port}"));
        let mut client = client(&gateway);
        if is_socks {
            client.write_all(&[5, 2, 2, 0]).unwrap();
            assert_eq!(told(&mut client, 2), [5, 0]);
            client.write_all(&socks("LOCALHOST.", port)).unwrap();
            assert_eq!(told(&mut client, 10), [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        } else {
            // Bytes behind the request are for the host.
            client.write_all(&[connect("localhost", port), b"early ".to_vec()].concat()).unwrap();
            assert_eq!(told(&mut client, ESTABLISHED.len()), ESTABLISHED.as_bytes());
        }
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(all(&mut client).unwrap(), b"answer");
        let GatewayReport::Connected { arrival, .. } = gateway.report() else { panic!() };
        assert_eq!((arrival.name.as_str(), arrival.port, &*arrival.program), ("localhost", port, "curl"));
        let said = served.join().unwrap();
        assert_eq!(said, if is_socks { &b"question"[..] } else { b"early question" });
        assert_eq!(gateway.ended(), (said.len() as u64, 6, None));
    }
}

#[test]
fn what_is_not_on_the_list_is_refused_with_an_answer() {
    let (port, _served) = sink(0);
    // Somebody may be asked, and is not: nothing bears out a name that only the gateway has read.
    for mut gateway in
        [Gateway::new(&format!("localhost:{port}")), Gateway::asking(&format!("localhost:{port}"))]
    {
        for (name, port) in [("evil.example", port), ("localhost", port ^ 1), PROXY] {
            let mut client = client(&gateway);
            client.write_all(&connect(name, port)).unwrap();
            let answer = String::from_utf8(all(&mut client).unwrap()).unwrap();
            assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with("hosts.\n"), "{answer}");
            let GatewayReport::Failed { arrival, failure } = gateway.report() else { panic!() };
            assert_eq!((arrival.name.as_str(), arrival.port), (name, port));
            assert_eq!(failure, GatewayFailure::NotListed);
        }
        let mut client = client(&gateway);
        client.write_all(&[&[5, 1, 0][..], &socks("evil.example", port)].concat()).unwrap();
        assert_eq!(all(&mut client).unwrap()[2..4], [5, 2]);
        assert_eq!(gateway.failure(), GatewayFailure::NotListed);
    }
}

#[test]
fn the_first_message_names_the_host_here_too() {
    let mut gateway = Gateway::new("localhost localhost:80");
    for (port, said) in
        [(443, "GET / HTTP/1.1\r\n\r\n"), (80, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")]
    {
        let mut client = client(&gateway);
        client.write_all(&connect("localhost", port)).unwrap();
        told(&mut client, ESTABLISHED.len());
        client.write_all(said.as_bytes()).unwrap();
        assert!(is_reset(&mut client));
        assert!(!matches!(gateway.failure(), GatewayFailure::Unreachable { .. }), "nothing is dialled");
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let mut gateway = Gateway::new("localhost");
    let long = [b"CONNECT localhost:443 HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 9 << 10]].concat();
    let requests: [(&[u8], &str); 6] = [
        (b"GET http://localhost/ HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
        (b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00", "HTTP/1.1 400 "),
        (b"\x04\x01\x01\xbb\0\0\0\x01\0localhost\0", "HTTP/1.1 400 "),
        (b"\x05\x01\x02", "\x05"),
        (&long, ""),
    ];
    for (request, answer) in requests {
        let mut client = client(&gateway);
        client.write_all(request).unwrap();
        let mut said = vec![];
        // What was not read resets the connection, behind the answer.
        let _ended = client.read_to_end(&mut said);
        assert!(said.starts_with(answer.as_bytes()), "{request:?}: {said:?}");
        assert_eq!(gateway.failure(), GatewayFailure::NoFirstMessage);
    }
    drop(client(&gateway));
    assert_eq!(gateway.failure(), GatewayFailure::NoFirstMessage);
}
