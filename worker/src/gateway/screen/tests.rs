use std::sync::Arc;

use ipc::gateway::GatewayFailure;
use ipc::rights::HostName;
use proptest::prelude::*;
use rustls::crypto::ring;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::hello::ClientHello;
use super::{Answer, MAX_MESSAGE, Screen};

const HOST: &str = "host.example";

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

/// Returns the first bytes that rustls sends as a client; the server name is in them if `says_name`.
fn hello(host: &str, says_name: bool) -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    config.enable_sni = says_name;
    let mut client = ClientConnection::new(Arc::new(config), host.to_owned().try_into().unwrap()).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// Returns the server name that rustls, as a server, reads in the bytes. Fails if rustls denies them or needs more.
fn read_by_rustls(mut bytes: &[u8]) -> Result<Option<String>, rustls::Error> {
    let mut acceptor = Acceptor::default();
    loop {
        if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error)? {
            return Ok(accepted.client_hello().server_name().map(str::to_ascii_lowercase));
        }
        if acceptor.read_tls(&mut bytes).map_err(|error| rustls::Error::General(error.to_string()))? == 0 {
            return Err(rustls::Error::HandshakeNotComplete);
        }
    }
}

/// Splits a TLS message into records of `size` bytes.
fn in_records(bytes: &[u8], size: usize) -> Vec<u8> {
    let records = bytes[5..].chunks(size).map(|content| {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&bytes[..3], &length[..], content].concat()
    });
    records.collect::<Vec<_>>().concat()
}

/// Returns the number of bytes that may be sent if the client's bytes arrive in pieces of `piece` bytes.
fn sent(port: u16, bytes: &[u8], piece: usize) -> Result<usize, GatewayFailure> {
    let mut screen = Screen::new(name(HOST), port);
    let mut out = 0;
    for end in (1..=bytes.len()).filter(|end| end % piece == 0 || *end == bytes.len()) {
        out += screen.admit(&bytes[out..end])?;
    }
    Ok(out)
}

fn other(said: &str) -> GatewayFailure {
    GatewayFailure::OtherName { said: said.parse().ok() }
}

#[test]
fn a_hello_passes_if_it_names_the_host_in_whatever_pieces() {
    for bytes in [hello(HOST, true), hello("HOST.example", true), in_records(&hello(HOST, true), 7)] {
        for (port, piece) in [(443, 1), (443, 100), (443, 1 << 20), (5432, 1), (5432, 1 << 20)] {
            assert_eq!(sent(port, &bytes, piece), Ok(bytes.len()));
            assert_eq!(sent(port, &bytes[..bytes.len() - 1], piece), Ok(0), "an incomplete one went out");
            let more = [&bytes[..], b"early data"].concat();
            assert_eq!(sent(port, &more, piece), Ok(more.len()));
        }
    }
}

#[test]
fn a_hello_with_another_name_or_none_ends_the_connection() {
    for piece in [1, 1 << 20] {
        for port in [443, 8443] {
            assert_eq!(sent(port, &hello("other.example", true), piece), Err(other("other.example")));
            assert_eq!(sent(port, &hello("x.host.example", true), piece), Err(other("x.host.example")));
        }
        let nameless = hello(HOST, false);
        assert_eq!(sent(443, &nameless, piece), Err(other("")));
        assert_eq!(sent(8443, &nameless, piece), Ok(nameless.len()));
    }
}

#[test]
fn bytes_that_are_no_hello_go_out_on_ports_without_a_rule_alone() {
    let alert = b"\x15\x03\x01\x00\x02\x02\x00";
    let old_hello = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10";
    for bytes in
        [&b"GET / HTTP/1.1\r\n"[..], b"\0\0\0\x08\x04\xd2\x16\x2f", alert, old_hello, b"\x16\x01rest"]
    {
        assert_eq!(sent(443, bytes, 1), Err(GatewayFailure::NoFirstMessage));
        assert_eq!(sent(5432, bytes, 1), Ok(bytes.len()));
    }
    let hello = hello(HOST, true);
    let changed = |at: usize, byte| {
        let mut bytes = hello.clone();
        bytes[at] = byte;
        bytes
    };
    let empty_record = [&[22, 3, 1, 0, 0][..], &hello[..]].concat();
    let too_long = [&[22, 3, 1, 64, 1][..], &hello[5..]].concat();
    let server_hello = changed(5, 2);
    for bytes in [empty_record, too_long, server_hello, changed(6, 1), changed(1, 2), changed(43, 33)] {
        assert_eq!(sent(443, &bytes, 1 << 20), Err(GatewayFailure::NoFirstMessage));
    }
    // An encrypted record where the first has to be: what follows a message that is not there.
    assert_eq!(sent(443, &[&hello[..20], b"\x17\x03\x03\x00\x01x"].concat(), 1 << 20), Ok(0));
    assert_eq!(sent(8443, b"\x16", 1), Ok(0));
}

/// Returns a minimal `ClientHello` with these extensions.
fn hello_with(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let sized = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
    let extensions =
        extensions.iter().map(|(kind, content)| [&kind.to_be_bytes(), &sized(content)[..]].concat());
    let extensions = sized(&extensions.collect::<Vec<_>>().concat());
    // The version, the random number, no session, one suite, no compression.
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2f, 1, 0], &extensions].concat();
    [&[22, 3, 1][..], &sized(&[&[1, 0], &sized(&body)[..]].concat())].concat()
}

/// Returns the content of a server name extension with these names, each with its type.
fn server_names(names: &[(u8, &str)]) -> Vec<u8> {
    let sized = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
    let names = names.iter().map(|(kind, name)| [&[*kind], &sized(name.as_bytes())[..]].concat());
    sized(&names.collect::<Vec<_>>().concat())
}

#[test]
fn a_hello_that_says_its_name_in_two_ways_ends_the_connection() {
    let curves = || (10, vec![0, 2, 0, 29]);
    let schemes = || (13, vec![0, 2, 4, 3]);
    let named = |names: &[(u8, &str)]| (0, server_names(names));
    let good = hello_with(&[curves(), named(&[(0, HOST)]), schemes()]);
    assert_eq!(sent(443, &good, 1), Ok(good.len()));
    assert_eq!(read_by_rustls(&good), Ok(Some(HOST.to_owned())));
    for names in [
        &[named(&[(0, HOST)]), named(&[(0, "other.example")])][..],
        &[named(&[(0, HOST), (0, "other.example")])],
        &[named(&[(1, "other.example"), (0, HOST)])],
        &[named(&[(0, HOST), (1, "other.example")])],
        &[named(&[(1, HOST)])],
        &[named(&[])],
        &[named(&[(0, "")])],
        &[(0, vec![])],
        &[(0, [server_names(&[(0, HOST)]), b"other.example".to_vec()].concat())],
    ] {
        let bytes = hello_with(&[names, &[schemes()]].concat());
        for port in [443, 8443] {
            assert_eq!(sent(port, &bytes, 1 << 20), Err(GatewayFailure::NoFirstMessage), "{names:?}");
        }
    }
    for said in
        ["10.0.0.1", "host.example\0.other.example", "h\u{f6}st.example", "host.example:443", "*.example"]
    {
        let bytes = hello_with(&[named(&[(0, said)]), schemes()]);
        for port in [443, 8443] {
            assert_eq!(sent(port, &bytes, 1 << 20), Err(other("")), "{said:?}");
        }
    }
}

#[test]
fn an_endless_message_ends_the_connection() {
    let records =
        in_records(&[&[22, 3, 1, 0, 0, 1, 0, 0xff, 0xff][..], &vec![0; MAX_MESSAGE]].concat(), 1 << 14);
    let fields = [&b"GET / HTTP/1.1\r\n"[..], &b"a: b\r\n".repeat(20), &vec![b'a'; MAX_MESSAGE]].concat();
    assert_eq!(sent(443, &records[..MAX_MESSAGE], 1000), Err(GatewayFailure::NoFirstMessage));
    assert_eq!(sent(80, &fields, 1000), Err(GatewayFailure::NoFirstMessage));
    assert_eq!(sent(80, &fields[..MAX_MESSAGE - 1], 1000), Ok(0));
}

fn http(text: &str) -> Result<usize, GatewayFailure> {
    let whole = sent(80, text.as_bytes(), 1 << 20);
    let in_bytes = sent(80, text.as_bytes(), 1);
    assert_eq!(whole.is_ok(), in_bytes.is_ok(), "{text:?}: {whole:?}, {in_bytes:?}");
    if whole.is_ok() {
        assert_eq!(whole, in_bytes, "{text:?}");
    }
    whole
}

#[test]
fn a_request_passes_if_its_host_is_the_one_that_was_dialled() {
    for text in [
        "GET / HTTP/1.1\r\nHost: host.example\r\n\r\n",
        "GET / HTTP/1.0\r\nhost:HOST.example:80\r\n\r\n",
        "GET /other.example HTTP/1.1\r\nHost: host.example.\r\nReferer: http://other.example/\r\n\r\n",
        "\r\nGET http://host.example/ HTTP/1.1\r\nHost: host.example\r\n\r\n",
        "GET HTTP://Host.example:80?a=http://other.example HTTP/1.1\r\nHost: host.example\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: host.example\r\n\r\n",
    ] {
        assert_eq!(http(text), Ok(text.len()), "{text:?}");
        assert_eq!(http(&text[..text.len() - 1]), Ok(0), "{text:?}");
    }
}

#[test]
fn a_request_with_another_host_two_or_none_ends_the_connection() {
    let none = || other("");
    for (text, failure) in [
        ("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", other("other.example")),
        ("GET / HTTP/1.1\r\nHost: other.example:80\r\n\r\n", other("other.example")),
        ("GET / HTTP/1.1\r\n\r\n", none()),
        ("GET / HTTP/1.0\r\n\r\n", none()),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", none()),
        ("GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", none()),
        ("GET / HTTP/1.1\r\nHost: host.example, other.example\r\n\r\n", none()),
        ("GET / HTTP/1.1\r\nHost: host.example:80:80\r\n\r\n", none()),
        ("GET / HTTP/1.1\r\nHost: user@host.example\r\n\r\n", none()),
        ("GET / HTTP/1.1\r\nHost: host.example\r\nHost: other.example\r\n\r\n", none()),
        ("GET / HTTP/1.1\r\nHost: host.example\r\nhost: host.example\r\n\r\n", none()),
        ("GET http://other.example/ HTTP/1.1\r\nHost: host.example\r\n\r\n", other("other.example")),
        ("GET http://host.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n", other("other.example")),
        ("GET http://host.example@other.example/ HTTP/1.1\r\nHost: host.example\r\n\r\n", none()),
        ("GET https://host.example/ HTTP/1.1\r\nHost: host.example\r\n\r\n", none()),
        ("GET other.example HTTP/1.1\r\nHost: host.example\r\n\r\n", none()),
        ("CONNECT other.example:443 HTTP/1.1\r\nHost: host.example\r\n\r\n", other("other.example")),
        ("CONNECT host.example:443 HTTP/1.1\r\nHost: host.example:443\r\n\r\n", other("host.example")),
    ] {
        assert_eq!(http(text), Err(failure), "{text:?}");
    }
}

#[test]
fn a_head_that_can_be_read_in_two_ways_ends_the_connection() {
    let long = format!("GET / HTTP/1.1\r\nHost: host.example\r\n{}\r\n", "a: b\r\n".repeat(200));
    for text in [
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1\nHost: host.example\n\n",
        "GET / HTTP/1.1\r\nHost: host.example\r\na: b\n\r\n",
        "GET / HTTP/1.1\r\nHost: host.example\r\na: b\n\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: host.example\ra: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: other.example\r\n Host: host.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : host.example\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: host.example\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: host.example\r\n\r\n",
        "GET /\r\nHost: host.example\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: host.example\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: host.example\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: host.example\r\nTransfer-Encoding: chunked\r\n\r\n",
        &long,
    ] {
        assert_eq!(http(text), Err(GatewayFailure::NoFirstMessage), "{text:?}");
    }
}

#[test]
fn every_request_of_a_connection_is_judged() {
    let first = "GET / HTTP/1.1\r\nHost: host.example\r\n\r\n";
    let with_length = "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: 37\r\n\r\nGET / HTTP/1.1\r\nHost: other.example\r\n";
    let chunked = "POST / HTTP/1.1\r\nHost: host.example\r\nTransfer-Encoding: Chunked\r\n\r\n\
                   5\r\nGET /\r\n0b;name=\"value\"\r\n HTTP/1.1\r\n\r\n000\r\nTrailer: a\r\nHost: other.example\r\n\r\n";
    for before in [first, with_length, chunked] {
        let good = [before, first, chunked, first].concat();
        assert_eq!(http(&good), Ok(good.len()));
        let bad = [before, "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"].concat();
        assert_eq!(http(&bad), Err(other("other.example")));
        assert_eq!(
            sent(80, &bad.as_bytes()[..bad.len() - 1], 1),
            Ok(before.len()),
            "the first goes out alone"
        );
    }
}

#[test]
fn chunks_that_can_be_read_in_two_ways_end_the_connection() {
    let head = "POST / HTTP/1.1\r\nHost: host.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "\r\n",
        "g\r\n",
        "+5\r\n",
        "0x5\r\n",
        " 5\r\n",
        "5\nabcde\r\n",
        "5;a\nb\r\n",
        "5;a\rb\r\n",
        "5\r\nabcdef\r\n",
        "5\r\nabcde\n",
        "1234567890abcdef0\r\n",
        ";\r\n",
        "-1\r\n",
        "0\r\na\n",
        "5 5\r\n",
    ] {
        assert_eq!(http(&[head, body].concat()), Err(GatewayFailure::NoFirstMessage), "{body:?}");
    }
}

#[test]
fn a_switch_to_websocket_opens_the_connection_and_no_other_does() {
    let upgrade = b"GET / HTTP/1.1\r\nHost: host.example\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx";
    let frames = b"\x81\x05hello";
    let asked = || {
        let mut screen = Screen::new(name(HOST), 80);
        assert_eq!(screen.admit(&[&upgrade[..], frames].concat()), Ok(upgrade.len()));
        assert!(screen.needs_answer() && screen.awaits_answer());
        screen
    };
    let mut switched = asked();
    switched.take_answer(Answer::WebSocket).unwrap();
    assert!(switched.is_open() && !switched.awaits_answer());
    assert_eq!(switched.admit(frames), Ok(frames.len()));
    let mut stayed = asked();
    stayed.take_answer(Answer::Stays).unwrap();
    assert!(!stayed.awaits_answer());
    assert_eq!(stayed.admit(frames), Err(GatewayFailure::NoFirstMessage));
    assert_eq!(asked().take_answer(Answer::Other), Err(other("")));

    let mut later = Screen::new(name(HOST), 80);
    let two = [b"GET / HTTP/1.1\r\nHost: host.example\r\n\r\n", &upgrade[..]].concat();
    assert_eq!(later.admit(&two), Ok(two.len()));
    assert!(!later.needs_answer() && !later.awaits_answer());
    assert_eq!(later.admit(frames), Err(GatewayFailure::NoFirstMessage));
}

#[test]
fn the_answer_is_the_first_head_that_is_final() {
    for (text, answer) in [
        ("HTTP/1.1 200 OK\r\n\r\n", Some(Answer::Stays)),
        ("HTTP/1.1 101 Switching\r\nUpgrade: WebSocket\r\n\r\n\x01", Some(Answer::WebSocket)),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 \r\nUpgrade: websocket\r\n\r\n", Some(Answer::WebSocket)),
        ("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 404 \r\nUpgrade: websocket\r\n\r\n", Some(Answer::Stays)),
        ("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", Some(Answer::Other)),
        ("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n", Some(Answer::Other)),
        ("HTTP/1.1 101 Switching\r\n\r\n", Some(Answer::Other)),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 10", None),
        ("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n", None),
        ("SSH-2.0-server\r\n", Some(Answer::Stays)),
        ("", None),
    ] {
        assert_eq!(Answer::read(text.as_bytes()), answer, "{text:?}");
    }
    let endless = [&b"HTTP/1.1 101 \r\n"[..], &vec![b'a'; MAX_MESSAGE]].concat();
    assert_eq!(Answer::read(&endless), Some(Answer::Stays));
}

/// Strategy for changed copies of a message, in which bytes are set, removed or doubled.
fn changed(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let size = bytes.len();
    let change = (0..size, 0..4_u8, any::<u8>(), 1..40_usize);
    prop::collection::vec(change, 1..4).prop_map(move |changes| {
        let mut bytes = bytes.clone();
        for (at, kind, byte, length) in changes {
            let at = at.min(bytes.len().saturating_sub(1));
            let end = (at + length).min(bytes.len());
            match kind {
                0 if !bytes.is_empty() => bytes[at] = byte,
                1 if !bytes.is_empty() => bytes[at] = bytes[at].wrapping_add(byte % 3).wrapping_sub(1),
                2 => drop(bytes.drain(at..end)),
                _ => bytes = [&bytes[..end], &bytes[at..]].concat(),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_get_a_verdict_and_never_more_goes_out_than_came(bytes: Vec<u8>, port in prop::sample::select(vec![80, 443, 22])) {
        if let Ok(sent) = sent(port, &bytes, 1) {
            prop_assert!(sent <= bytes.len());
        }
        let _ = Answer::read(&bytes);
    }

    #[test]
    fn a_changed_hello_that_passes_says_the_same_name_to_rustls(bytes in changed(hello(HOST, true))) {
        let Ok(by_rustls) = read_by_rustls(&bytes) else { return Ok(()) };
        if let Ok(Some(read)) = ClientHello::read(&bytes) {
            prop_assert_eq!(read.name, by_rustls.as_deref().and_then(|name| name.parse().ok()));
        }
        if sent(443, &bytes, 50).is_ok_and(|sent| sent > 0) {
            prop_assert_eq!(by_rustls.as_deref(), Some(HOST));
        }
    }

    #[test]
    fn a_changed_request_gets_one_verdict_in_whatever_pieces(
        bytes in changed(b"POST /a HTTP/1.1\r\nHost: host.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: host.example\r\nContent-Length: 3\r\n\r\nabc".to_vec()),
        piece in 1..30_usize,
    ) {
        let whole = sent(80, &bytes, 1 << 20);
        let pieces = sent(80, &bytes, piece);
        match (&whole, &pieces) {
            (Ok(_), _) => prop_assert_eq!(whole, pieces),
            (Err(_), pieces) => prop_assert!(pieces.is_err()),
        }
    }
}
