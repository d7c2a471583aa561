//! SOCKS5 connection requests without authentication (RFC 1928).

use super::{Protocol, ProxyRequest, Refusal};

/// Protocol version, the first byte of each message.
pub(super) const VERSION: u8 = 5;

// Authentication methods: none required, and no acceptable method.
const NONE: u8 = 0;
const NO_WAY: u8 = 0xff;

// CONNECT command, and the address type of a domain name.
const CONNECT: u8 = 1;
const NAME: u8 = 3;

// Replies (RFC 1928 §6).
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const NO_COMMAND: u8 = 7;
const NO_ADDRESS: u8 = 8;

#[derive(Debug, Default)]
pub(super) struct Socks {
    is_greeted: bool,
}

impl Protocol for Socks {
    fn read(&mut self, bytes: &[u8]) -> ProxyRequest {
        if self.is_greeted {
            return request(bytes);
        }
        match bytes {
            [VERSION, count, ways @ ..] if ways.len() >= usize::from(*count) => {
                let ways = &ways[..usize::from(*count)];
                if !ways.contains(&NONE) {
                    return ProxyRequest::Broken(Refusal::SignsIn);
                }
                self.is_greeted = true;
                ProxyRequest::Greeting(2 + ways.len(), vec![VERSION, NONE])
            }
            [VERSION, ..] | [] => ProxyRequest::Nothing,
            [..] => ProxyRequest::Broken(Refusal::Malformed),
        }
    }

    fn answer(&self, refusal: Option<Refusal>) -> Vec<u8> {
        let reply = match refusal {
            None => SUCCEEDED,
            Some(Refusal::NotListed) => NOT_ALLOWED,
            Some(Refusal::NoName) => NO_ADDRESS,
            Some(Refusal::OtherRequest) => NO_COMMAND,
            Some(Refusal::Malformed) => FAILED,
            Some(Refusal::SignsIn) => return vec![VERSION, NO_WAY],
        };
        // The address of this end, which nobody needs, is 0.0.0.0:0.
        vec![VERSION, reply, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

fn request(bytes: &[u8]) -> ProxyRequest {
    match bytes {
        [] | [VERSION] | [VERSION, _] | [VERSION, _, 0] => ProxyRequest::Nothing,
        [VERSION, CONNECT, 0, NAME, rest @ ..] => named(rest),
        [VERSION, CONNECT, 0, _, ..] => ProxyRequest::Broken(Refusal::NoName),
        [VERSION, _, 0, ..] => ProxyRequest::Broken(Refusal::OtherRequest),
        [..] => ProxyRequest::Broken(Refusal::Malformed),
    }
}

fn named(bytes: &[u8]) -> ProxyRequest {
    let Some((&length, rest)) = bytes.split_first() else { return ProxyRequest::Nothing };
    let Some((name, rest)) = rest.split_at_checked(length.into()) else { return ProxyRequest::Nothing };
    let &[high, low, ..] = rest else { return ProxyRequest::Nothing };
    let name = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    match (name, u16::from_be_bytes([high, low])) {
        (Some(name), port @ 1..) => ProxyRequest::Request(4 + 1 + usize::from(length) + 2, name, port),
        _ => ProxyRequest::Broken(Refusal::NoName),
    }
}
