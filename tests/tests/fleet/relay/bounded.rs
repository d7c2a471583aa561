//! Tests the relay's budgets, and clients that try to harm it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::replay::{Block, Reply, Usage, sse};
use serde_json::json;
use tests::replies::{done, serve};
use tests::{User, World};

use crate::relay::{Relay, ask, head, log, usual};

#[test]
fn a_budget_holds_under_eight_streams_that_hang_up() {
    let world = World::new(User::Myself);
    let server = serve((0..100).map(|_| begun()));
    let (relay, socket) = Relay::of_one(&world, &server, &["--max-usd", "0.1"]);
    let body = usual().to_string();
    let mut waves = 0;
    let refused = loop {
        let mut streams: Vec<_> = (0..8).map(|_| sent(&socket, &body)).collect();
        let heads: Vec<_> =
            streams.iter_mut().map(|stream| read_until(stream, &["message_start", "\"error\""])).collect();
        let open = heads.iter().filter(|head| head.starts_with("HTTP/1.1 200")).count();
        let now = heads.iter().filter(|head| head.starts_with("HTTP/1.1 429")).count();
        let spent = heads.iter().filter(|head| head.starts_with("HTTP/1.1 402")).count();
        assert_eq!(open + now + spent, 8, "{heads:?}");
        waves += 1;
        if open == 0 {
            break spent;
        }
        assert!(waves > 1 || (now > 0 && open > 1), "some had room, and not all: {heads:?}");
        drop(streams);
        let lines = server.requests().len();
        tests::wait_until("the hang-ups are settled", || {
            log(&world).iter().filter(|line| line["end"] == "hung_up").count() == lines
        });
    };
    assert_eq!(refused, 8);
    let paid: f64 = log(&world).iter().filter_map(|line| line["cost_usd"].as_f64()).sum();
    assert!(paid > 0.05 && paid <= 0.1, "{paid}");
    let (_, text) = ask(&socket, &usual());
    assert!(text.contains("billing_error") && text.contains("its limit is $0.10"), "{text}");
    let words = relay.end();
    assert!(words.contains(&format!("one: {} requests", server.requests().len())), "{words}");
}

#[test]
fn a_client_has_sixteen_requests_under_way_and_no_more() {
    let world = World::new(User::Myself);
    let server = serve((0..17).map(|_| begun()));
    let (relay, socket) = Relay::of_one(&world, &server, &[]);
    let body = usual().to_string();
    let mut streams: Vec<_> = (0..16).map(|_| sent(&socket, &body)).collect();
    for stream in &mut streams {
        read_until(stream, &["message_start"]);
    }
    let (status, text) = ask(&socket, &usual());
    assert!(status == 429 && text.contains("16 requests of this client are already open"), "{text}");
    assert_eq!(server.requests().len(), 16);
    drop(streams.pop());
    tests::wait_until("the hang-up is settled", || log(&world).iter().any(|line| line["end"] == "hung_up"));
    let mut one = sent(&socket, &body);
    assert!(read_until(&mut one, &["message_start", "error"]).starts_with("HTTP/1.1 200"));
    drop((streams, one, relay));
}

#[test]
fn slow_dead_and_flooding_clients_do_not_hold_the_others() {
    let world = World::new(User::Myself);
    let endless = "x".repeat(1 << 20);
    let large = sse::message(&[Block::text(endless)], "end_turn", Usage::default());
    let server = serve([Reply::sse(large.repeat(8)), Reply::sse(done()), Reply::sse(done())]);
    let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
    let flags = ["--listen", &listen, "--client", "bad", "--client", "good", "--base-url", &address];
    let mut relay = Relay::start(&world, &flags);
    let [bad, good] = [relay.client(), relay.client()]
        .map(|(_, base_url)| PathBuf::from(base_url.strip_prefix("unix:").unwrap()));
    // This client reads nothing of a large reply.
    let mut deaf = sent(&bad, &usual().to_string());
    read_until(&mut deaf, &["200 OK"]);
    // These clients send one byte of a body, and then nothing.
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = UnixStream::connect(&bad).unwrap();
            stream.write_all(format!("{}{{", head("/v1/messages", 5_000)).as_bytes()).unwrap();
            stream
        })
        .collect();
    // These clients flood the socket. The kernel refuses connections for which the queue has no room.
    let flood: Vec<_> = (0..200).map_while(|_| connect_at_once(&bad)).collect();
    assert!(flood.len() >= 20, "{}", flood.len());
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(ask(&good, &usual()).0, 200);
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(server.requests().len(), 3);
    drop((deaf, slow, flood, relay));
}

/// Returns a stream that reports the length of its prompt, and then stays silent.
fn begun() -> Reply {
    let whole = done();
    let end = whole.find("event: content_block_start").unwrap();
    Reply::sse(whole[..end].to_owned()).then_silence()
}

/// Reads until one of these texts has arrived.
fn read_until(stream: &mut UnixStream, wanted: &[&str]) -> String {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !wanted.iter().any(|wanted| text.contains(wanted)) {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "it ended: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    text
}

fn sent(socket: &Path, body: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(head("/v1/messages", body.len()).as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// Connects without waiting for room in the listener's queue. `None` if the queue is full.
fn connect_at_once(path: &Path) -> Option<std::os::fd::OwnedFd> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
    use std::os::fd::AsRawFd;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
    connect(socket.as_raw_fd(), &UnixAddr::new(path).unwrap()).ok().map(|()| socket)
}

#[test]
fn who_hangs_up_before_the_provider_answers_pays_the_estimate() {
    let world = World::new(User::Myself);
    // A provider that takes requests and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (heard, hear) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut piece = [0; 64];
            let _ = heard.send(stream.read(&mut piece).is_ok());
            kept.push(stream);
        }
    });
    let listen = format!("unix:{}", world.home().join("run").display());
    let flags = ["--listen", &listen, "--client", "one", "--base-url", &address, "--max-usd", "1"];
    let mut relay = Relay::start(&world, &flags);
    let (_, base_url) = relay.client();
    let stream = sent(Path::new(base_url.strip_prefix("unix:").unwrap()), &usual().to_string());
    assert!(hear.recv_timeout(Duration::from_secs(10)).unwrap());
    drop(stream);
    tests::wait_until("it is settled", || !log(&world).is_empty());
    let line = &log(&world)[0];
    assert_eq!((&line["end"], &line["cost_usd"]), (&json!("hung_up"), &line["reserved_usd"]));
    assert!(line["cost_usd"].as_f64().unwrap() > 0.0, "{line}");
    let words = relay.end();
    assert!(words.contains("one: 1 request, 0 refused"), "{words}");
}

#[test]
fn a_provider_that_cannot_be_reached_costs_nothing() {
    let world = World::new(User::Myself);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (listen, address) =
        (format!("unix:{}", world.home().join("run").display()), format!("http://{address}"));
    let flags = ["--listen", &listen, "--client", "one", "--base-url", &address];
    let mut relay = Relay::start(&world, &flags);
    let (_, base_url) = relay.client();
    let (status, text) = ask(Path::new(base_url.strip_prefix("unix:").unwrap()), &usual());
    assert!(status == 502 && !text.contains(address.trim_start_matches("http://")), "{text}");
    let line = &log(&world)[0];
    assert_eq!((&line["end"], line["cost_usd"].is_null()), (&json!("unreachable"), true), "{line}");
    assert!(line["why"].as_str().unwrap().contains("refused the connection"), "{line}");
    let words = relay.end();
    assert!(words.contains("0 tokens, $0.00"), "{words}");
}
