//! Tests of connections that wait for the user's answer, since their hosts are not on the list.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;

use ipc::gateway::{GatewayFailure, GatewayOrder, GatewayReport, MAX_QUESTIONS};

use crate::harness::{Gateway, all, arrival, connection, is_reset, sink};

fn host() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn is_untouched(host: &TcpListener) -> bool {
    host.set_nonblocking(true).unwrap();
    let untouched = host.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    host.set_nonblocking(false).unwrap();
    untouched
}

/// Returns the id of the question in the next report, which must be about this host and port.
fn asked(gateway: &mut Gateway, name: &str, at: u16) -> u64 {
    match gateway.report() {
        GatewayReport::Asked { question, arrival } => {
            assert_eq!((arrival.name.as_str(), arrival.port, &*arrival.program), (name, at, "curl"));
            question
        }
        other => panic!("{other:?}"),
    }
}

/// Waits until the gateway has read all earlier orders: it then handles a connection, whose name does not resolve.
fn settle(gateway: &mut Gateway) {
    let mut listed = gateway.client("missing.invalid", 1);
    assert_eq!(gateway.failure(), GatewayFailure::Unresolved);
    assert!(is_reset(&mut listed));
}

/// Connects again and again until the gateway asks about the host again, since an answer was withdrawn.
fn asked_anew(gateway: &mut Gateway, name: &str, at: u16) -> (TcpStream, u64) {
    loop {
        let client = gateway.client(name, at);
        let mut listed = gateway.client("missing.invalid", 1);
        let mut question = None;
        loop {
            match gateway.report() {
                GatewayReport::Asked { question: asked, .. } => question = Some(asked),
                GatewayReport::Failed { failure: GatewayFailure::Unresolved, .. } => break,
                GatewayReport::Connected { .. } | GatewayReport::Ended { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(is_reset(&mut listed));
        if let Some(question) = question {
            return (client, question);
        }
    }
}

const LISTED: &str = "missing.invalid:1";

#[test]
fn connections_wait_for_one_answer_and_go_on_after_a_yes() {
    let (listener, port) = host();
    let mut gateway = Gateway::asking(LISTED);
    let mut clients = [(); 2].map(|()| gateway.client("localhost", port));
    let question = asked(&mut gateway, "localhost", port);
    for client in &mut clients {
        client.write_all(b"early").unwrap();
    }
    settle(&mut gateway);
    assert!(is_untouched(&listener));
    gateway.send(&GatewayOrder::Answer { question: question + 1, allowed: true });
    settle(&mut gateway);
    assert!(is_untouched(&listener), "the answer is one to another question");
    gateway.send(&GatewayOrder::Answer { question, allowed: true });
    let mut hosts = [(); 2].map(|()| listener.accept().unwrap().0);
    for host in &mut hosts {
        gateway.connected();
        let mut bytes = [0; 5];
        host.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"early");
    }
    // A later connection needs no other question.
    let later = gateway.client("localhost", port);
    gateway.connected();
    listener.accept().unwrap();
    drop(later);
    gateway.ended();
    gateway.send(&GatewayOrder::Close { question });
    for client in &mut clients {
        assert!(is_reset(client), "what was allowed is taken back");
        assert_eq!(gateway.ended(), (5, 0, None));
    }
    assert_ne!(asked_anew(&mut gateway, "localhost", port).1, question);
}

#[test]
fn connections_end_after_a_no_and_when_the_question_is_taken_back() {
    let (listener, port) = host();
    let mut gateway = Gateway::asking(LISTED);
    let mut clients = [(); 2].map(|()| gateway.client("localhost", port));
    let question = asked(&mut gateway, "localhost", port);
    settle(&mut gateway);
    gateway.send(&GatewayOrder::Answer { question, allowed: false });
    assert!(clients.iter_mut().all(is_reset));
    assert!(is_reset(&mut gateway.client("localhost", port)), "the no holds");
    gateway.send(&GatewayOrder::Answer { question, allowed: true });
    assert!(is_reset(&mut gateway.client("localhost", port)), "a second answer does nothing");
    gateway.send(&GatewayOrder::Close { question });
    let (mut client, question) = asked_anew(&mut gateway, "localhost", port);
    gateway.send(&GatewayOrder::Close { question });
    assert!(is_reset(&mut client));
    gateway.send(&GatewayOrder::Answer { question, allowed: true });
    let mut other = gateway.client("other.example", port);
    asked(&mut gateway, "other.example", port);
    assert!(is_untouched(&listener));
    assert!(gateway.end().0.success());
    assert!(is_reset(&mut other), "with the gateway all that waits ends");
}

#[test]
fn nothing_is_dialled_for_a_client_that_is_gone() {
    let (listener, port) = host();
    let mut gateway = Gateway::asking(LISTED);
    let mut gone = gateway.client("localhost", port);
    let question = asked(&mut gateway, "localhost", port);
    gone.write_all(b"gone").unwrap();
    drop(gone);
    let mut stays = gateway.client("localhost", port);
    stays.write_all(b"stays").unwrap();
    settle(&mut gateway);
    gateway.send(&GatewayOrder::Answer { question, allowed: true });
    gateway.connected();
    drop(stays);
    assert_eq!(all(&mut listener.accept().unwrap().0).unwrap(), b"stays");
    gateway.ended();
    assert!(is_untouched(&listener));
}

#[test]
fn ten_thousand_names_ask_a_few_questions_and_leave_the_list_alone() {
    let (port, served) = sink(0);
    let mut gateway = Gateway::asking(&format!("localhost:{port}"));
    let (_client, accepted) = connection();
    let count = 10_000;
    let (mut questions, mut refused) = (0, 0);
    let broker = gateway.broker();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..count {
                let arrival = arrival(&format!("n{number}.example"), 443);
                Gateway::hand_over_on(&broker, &arrival, &[accepted.as_raw_fd()]).unwrap();
            }
        });
        for _ in 0..count {
            match gateway.report() {
                GatewayReport::Asked { .. } => questions += 1,
                GatewayReport::Failed { failure: GatewayFailure::NotListed, .. } => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!((questions, refused), (MAX_QUESTIONS, count - MAX_QUESTIONS));
    let mut listed = gateway.client("localhost", port);
    gateway.connected();
    listed.write_all(b"listed").unwrap();
    drop(listed);
    assert_eq!(served.join().unwrap(), b"listed");
}
