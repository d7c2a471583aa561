use super::connect::Connect;
use super::socks::Socks;
use super::{Protocol, ProxyRequest, Refusal};

fn request(length: usize, name: &str, port: u16) -> ProxyRequest {
    ProxyRequest::Request(length, name.parse().unwrap(), port)
}

/// Sends a SOCKS5 greeting and then the bytes to the parser. Returns the request that it reads.
fn asked(bytes: &[u8]) -> ProxyRequest {
    let mut socks = Socks::default();
    assert_eq!(socks.read(&[5, 1, 0]), ProxyRequest::Greeting(3, vec![5, 0]));
    socks.read(bytes)
}

fn named(name: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    [&[5, 1, 0, 3, length], name, &[1, 187]].concat()
}

#[test]
fn connect_takes_a_name_and_a_port() {
    for (text, expected) in [
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", request(55, "a.example", 443)),
        ("CONNECT A.Example.:5432 HTTP/1.0\r\n\r\nmore", request(36, "a.example", 5432)),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.exa", ProxyRequest::Nothing),
        ("CONNECT a.example HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::NoName)),
        ("CONNECT a.example:0 HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::NoName)),
        ("CONNECT a.example:65536 HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::NoName)),
        ("CONNECT 192.0.2.7:443 HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::NoName)),
        ("CONNECT [2001:db8::7]:443 HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::NoName)),
        ("CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::NoName)),
        ("CONNECT user@a.example:443 HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::NoName)),
        ("GET http://a.example/ HTTP/1.1\r\n\r\n", ProxyRequest::Broken(Refusal::OtherRequest)),
        ("\u{16}\u{3}\u{1}", ProxyRequest::Broken(Refusal::Malformed)),
        ("\r\n\r\n\0", ProxyRequest::Broken(Refusal::Malformed)),
    ] {
        assert_eq!(Connect.read(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn socks_takes_a_name_and_a_port() {
    assert_eq!(asked(&named(b"a.example")), request(16, "a.example", 443));
    assert_eq!(asked(&[&named(b"A.example.")[..], b"more"].concat()), request(17, "a.example", 443));
    for bytes in (0..16).map(|length| named(b"a.example")[..length].to_vec()) {
        assert_eq!(asked(&bytes), ProxyRequest::Nothing, "{bytes:?}");
    }
    for (bytes, expected) in [
        (vec![5, 1, 0, 1, 192, 0, 2, 7, 1, 187], Refusal::NoName),
        (vec![5, 1, 0, 4, 0x20], Refusal::NoName),
        (named(b"192.0.2.7"), Refusal::NoName),
        (named(b""), Refusal::NoName),
        (named(b"a\0.example"), Refusal::NoName),
        (named(b"\xff.example"), Refusal::NoName),
        (vec![5, 1, 0, 3, 1, b'a', 0, 0], Refusal::NoName),
        (vec![5, 2, 0, 3], Refusal::OtherRequest),
        (vec![5, 3, 0, 1], Refusal::OtherRequest),
        (vec![5, 1, 1, 3], Refusal::Malformed),
        (vec![4, 1, 0, 3], Refusal::Malformed),
    ] {
        assert_eq!(asked(&bytes), ProxyRequest::Broken(expected), "{bytes:?}");
    }
}

#[test]
fn a_program_that_has_to_sign_in_is_refused() {
    for ways in [&[][..], &[2], &[1, 2]] {
        let greeting = [&[5, u8::try_from(ways.len()).unwrap()], ways].concat();
        assert_eq!(Socks::default().read(&greeting), ProxyRequest::Broken(Refusal::SignsIn));
    }
    assert_eq!(Socks::default().answer(Some(Refusal::SignsIn)), [5, 0xff]);
    assert_eq!(Socks::default().read(&[5, 3, 2, 1, 0, 5]), ProxyRequest::Greeting(5, vec![5, 0]));
    assert_eq!(Socks::default().read(&[5, 3, 2, 1]), ProxyRequest::Nothing);
}

/// Checks that every reply to a refused request is complete, by the length that is in it.
#[test]
fn each_refusal_has_an_answer() {
    let refusals = [Refusal::NotListed, Refusal::NoName, Refusal::OtherRequest, Refusal::Malformed];
    for refusal in refusals {
        let text = String::from_utf8(Connect.answer(Some(refusal))).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())) && !head.contains(" 200 "),
            "{text}"
        );
        let reply = Socks::default().answer(Some(refusal));
        assert!(reply.len() == 10 && reply[1] != 0, "{reply:?}");
    }
    assert_eq!(Socks::default().answer(None)[..2], [5, 0]);
}
