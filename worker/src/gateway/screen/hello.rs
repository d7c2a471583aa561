//! Parser of the server name in a TLS `ClientHello` (RFC 8446 §4.1.2, RFC 6066 §3), without a TLS library.
//!
//! The parser is stricter than servers are, so that no server reads another name in bytes that the parser accepts. A
//! test compares it with rustls.

use std::collections::BTreeSet;

use ipc::rights::HostName;

/// First bytes of a handshake record: its type, and the first byte of the version, the same in all versions.
pub(super) const RECORD: [u8; 2] = [22, 3];

/// Maximum size of a record's content in bytes.
const MAX_RECORD: u16 = 1 << 14;

// Message type of `ClientHello`, and extension type of the server name.
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
/// Type of a name in the extension that is a host name; the only type that is defined.
const HOST_NAME: u8 = 0;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAHello;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientHello {
    pub(super) says_name: bool,
    /// Host name in the server name extension; `None` if there is no valid one.
    pub(super) name: Option<HostName>,
}

impl ClientHello {
    /// Reads a client's first message; `None` while it is incomplete. Fails if the bytes are no valid `ClientHello`.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, NotAHello> {
        let message = handshake(bytes)?;
        let mut fields = Fields(&message);
        let (Some(kind), Some(length)) = (fields.byte(), fields.number(3)) else {
            return if message.first().is_none_or(|&kind| kind == CLIENT_HELLO) {
                Ok(None)
            } else {
                Err(NotAHello)
            };
        };
        if kind != CLIENT_HELLO || length > super::MAX_MESSAGE {
            return Err(NotAHello);
        }
        match fields.0.len() {
            present if present < length => Ok(None),
            // A second message cannot follow in the same record: the next one has keys of its own.
            present if present > length => Err(NotAHello),
            _ => hello(fields).map(Some).ok_or(NotAHello),
        }
    }
}

/// Joins the contents of the received records, up to the record in which the first message ends.
fn handshake(bytes: &[u8]) -> Result<Vec<u8>, NotAHello> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if !rest.iter().zip(RECORD).all(|(&byte, expected)| byte == expected) {
            return Err(NotAHello);
        }
        let Some((&[_, _, _, high, low], content)) = rest.split_first_chunk() else {
            return Ok(message);
        };
        let length = u16::from_be_bytes([high, low]);
        if !(1..=MAX_RECORD).contains(&length) {
            return Err(NotAHello);
        }
        let Some((content, after)) = content.split_at_checked(length.into()) else {
            message.extend_from_slice(content);
            return Ok(message);
        };
        message.extend_from_slice(content);
        let announced = Fields(message.get(1..).unwrap_or_default()).number(3);
        if announced.is_some_and(|length| message.len() >= 4 + length) {
            return Ok(message);
        }
        rest = after;
    }
}

fn hello(mut fields: Fields<'_>) -> Option<ClientHello> {
    let (_version, _random) = (fields.number(2)?, fields.take(32)?);
    let (session, suites, compression) = (fields.vector(1)?, fields.vector(2)?, fields.vector(1)?);
    if session.len() > 32 || suites.is_empty() || suites.len() % 2 != 0 || compression.is_empty() {
        return None;
    }
    let mut said = None;
    if !fields.0.is_empty() {
        let mut extensions = Fields(fields.vector(2)?);
        let mut seen = BTreeSet::new();
        while !extensions.0.is_empty() {
            let (kind, content) = (extensions.number(2)?, extensions.vector(2)?);
            if !seen.insert(kind) {
                return None;
            }
            if kind == usize::from(SERVER_NAME) {
                said = Some(server_name(content)?);
            }
        }
    }
    let name = said.and_then(|name| str::from_utf8(name).ok()?.parse().ok());
    fields.0.is_empty().then_some(ClientHello { says_name: said.is_some(), name })
}

/// Returns the name in a list of server names; `None` unless the list has exactly one.
fn server_name(content: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields(content);
    let mut list = Fields(fields.vector(2)?);
    let (kind, name) = (list.byte()?, list.vector(2)?);
    let is_one = kind == HOST_NAME && !name.is_empty() && list.0.is_empty() && fields.0.is_empty();
    is_one.then_some(name)
}

/// Reader of the fields of a message. Each method returns `None` if too few bytes are left.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// Reads a big-endian number of `size` bytes, at most three.
    fn number(&mut self, size: usize) -> Option<usize> {
        Some(self.take(size)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// Reads a length, a number of `size` bytes, and then as many bytes.
    fn vector(&mut self, size: usize) -> Option<&'a [u8]> {
        let length = self.number(size)?;
        self.take(length)
    }
}
