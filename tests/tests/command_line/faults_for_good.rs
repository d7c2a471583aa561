//! Tests faults that waiting cannot repair: each is reported within two seconds, after at most two attempts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::TcpListener;

use tests::{Finished, User, World};

/// Maximum time until a fault is reported, in milliseconds by the log.
const LONGEST: u64 = 2_000;

/// Maximum number of runs, since a busy machine may make some of them slow.
const TRIES: usize = 4;

/// Starts a server that answers the first bytes of each connection with `answer`. Returns its address.
fn answering(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // A client that disconnects is not waited for.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    address
}

struct Fault {
    variables: Vec<(&'static str, String)>,
    url: String,
    code: i32,
    words: &'static str,
}

fn fault(variables: &[(&'static str, &str)], url: &str, code: i32, words: &'static str) -> Fault {
    let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Fault { variables, url: url.to_owned(), code, words }
}

fn faults() -> Vec<Fault> {
    let proxy = |answer| format!("http://{}", answering(answer));
    let far = "https://api.example";
    let mut faults = vec![
        fault(&[("HTTPS_PROXY", "socks5h://127.0.0.1:1080")], far, 2, "HTTPS_PROXY"),
        fault(&[("https_proxy", "socks4://127.0.0.1:1080")], far, 2, "https_proxy"),
        fault(&[("ALL_PROXY", "socks5://127.0.0.1:1080")], far, 2, "ALL_PROXY"),
        fault(&[("HTTPS_PROXY", "ht!tp:/x y")], far, 2, "HTTPS_PROXY"),
        fault(&[("HTTPS_PROXY", "http://127.0.0.1:99999")], far, 2, "HTTPS_PROXY"),
        fault(&[("SSL_CERT_FILE", "/nonexistent/ca.pem")], far, 2, "SSL_CERT_FILE"),
        fault(&[("SSL_CERT_DIR", "/nonexistent")], far, 2, "SSL_CERT_DIR"),
        fault(&[("SSL_CERT_FILE", "/dev/null")], far, 2, "SSL_CERT_FILE"),
        fault(
            &[("HTTPS_PROXY", &proxy(b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"))],
            far,
            6,
            "HTTPS_PROXY",
        ),
        fault(&[("HTTPS_PROXY", &proxy(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"))], far, 6, "(403)"),
        fault(&[("ALL_PROXY", &proxy(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n"))], far, 6, "ALL_PROXY"),
        fault(&[("HTTPS_PROXY", "http://127.0.0.1:1")], far, 6, "HTTPS_PROXY"),
        fault(&[], "http://127.0.0.1:1", 6, "refused"),
        fault(&[], "ftp://127.0.0.1", 2, "http"),
    ];
    let url = |scheme: &str, answer| format!("{scheme}://{}", answering(answer));
    faults.extend([
        fault(&[], &url("http", b"\x15\x03\x03\x00\x02\x02\x46"), 6, "https://"),
        fault(&[], &url("https", b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"), 6, "http://"),
        fault(&[], &url("http", b"HTTP/1.1 301 Moved\r\nlocation: https://a.example/\r\ncontent-length: 0\r\n\r\n"), 6, "--base-url"),
        fault(&[], &url("http", b"HTTP/1.1 400 No\r\ncontent-length: 48\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"), 6, "https://"),
        fault(&[], &url("http", b"HTTP/1.1 400 No\r\ncontent-length: 62\r\n\r\n<center>The plain HTTP request was sent to HTTPS port</center>"), 6, "https://"),
        fault(&[], &url("http", b"HTTP/1.1 400 No\r\ncontent-length: 65\r\n\r\nReason: You're speaking plain HTTP to an SSL-enabled server port."), 6, "https://"),
        fault(&[], &url("http", b"HTTP/1.1 400 No\r\ncontent-length: 60\r\n\r\nBad Request: This combination of host and port requires TLS."), 6, "https://"),
        fault(&[], &url("http", b"SSH-2.0-OpenSSH_9.2p1\r\n"), 6, "does not speak HTTP"),
    ]);
    faults
}

/// Returns the fault's message, the number of attempts, and the milliseconds from the first attempt to the end.
fn told(world: &World, fault: &Fault) -> (String, usize, u64) {
    let mut command = world.task(&fault.url, ["do it", "--output", "stream-json"]);
    command.env_remove("NO_PROXY").env_remove("no_proxy").envs(fault.variables.iter().cloned());
    let run = Finished::of(&mut command).expect(fault.code);
    let asked = run.events_of("model_requested").len();
    let events = run.events();
    let time =
        |event: Option<&serde_json::Value>| event.and_then(|event| event["time_ms"].as_u64()).unwrap_or(0);
    let first = events.iter().find(|event| event["type"] == "model_requested");
    (run.stderr, asked, time(events.last()) - time(first.or(events.last())))
}

#[test]
fn z6_no_fault_for_good_takes_longer_than_two_seconds_or_more_than_two_attempts() {
    let world = World::new(User::Myself);
    for fault in faults() {
        let name = format!("{:?} {}", fault.variables, fault.url);
        let mut runs = (0..TRIES).map(|_| told(&world, &fault)).inspect(|(said, asked, _)| {
            assert!(said.contains(fault.words), "{name}: {said}");
            assert!(*asked <= 2, "{name}: {asked} attempts");
        });
        assert!(runs.any(|(_, _, took)| took <= LONGEST), "{name} takes too long");
    }
}
