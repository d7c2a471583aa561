//! Host's response to an HTTP upgrade request (RFC 9110 §7.8).

use httparse::{EMPTY_HEADER, Response, Status};

use super::requests::{MAX_FIELDS, values};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Answer {
    /// The host declines the upgrade; the connection stays HTTP/1.
    Stays,
    WebSocket,
    /// The host switches to a protocol such as HTTP/2 or TLS, in which the client may name other hosts.
    Other,
}

impl Answer {
    /// Reads the response to an upgrade request; `None` while it is incomplete.
    pub(in crate::gateway) fn read(mut bytes: &[u8]) -> Option<Self> {
        loop {
            let mut fields = [EMPTY_HEADER; MAX_FIELDS];
            let mut response = Response::new(&mut fields);
            let Ok(parsed) = response.parse(bytes) else {
                return Some(Self::Stays);
            };
            let Status::Complete(length) = parsed else {
                return (bytes.len() >= super::MAX_MESSAGE).then_some(Self::Stays);
            };
            match response.code {
                Some(101) => {
                    let mut protocols = values(response.headers, "upgrade");
                    let first = protocols.next().is_some_and(|name| name.eq_ignore_ascii_case(b"websocket"));
                    return Some(if first && protocols.next().is_none() {
                        Self::WebSocket
                    } else {
                        Self::Other
                    });
                }
                Some(100..200) => bytes = &bytes[length..],
                _ => return Some(Self::Stays),
            }
        }
    }
}
