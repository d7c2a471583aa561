//! The name that the first message of a TLS connection says (RFC 8446 §4.1.2, RFC 6066 §3).
//!
//! A reader of one message, and not a library: the worker's program links no TLS. It is stricter than servers are, so that no
//! server finds another name in the bytes that it accepts; a test compares it with rustls.

use std::collections::BTreeSet;

use ipc::rights::HostName;

/// First byte of a record with handshake messages, and the first of its version, which is the same in every version.
pub(super) const RECORD: [u8; 2] = [22, 3];

/// Maximum size of a record's content in bytes.
const MAX_RECORD: u16 = 1 << 14;

/// Type of the message, and of the extension that says the name.
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
/// Type of the one kind of name that exists.
const HOST_NAME: u8 = 0;

/// The bytes are no such message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAHello;

/// A whole message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientHello {
    /// True if it says a name.
    pub(super) says_name: bool,
    /// That name, if a host can have it.
    pub(super) name: Option<HostName>,
}

impl ClientHello {
    /// Reads the message that `bytes` start with; `None` if more bytes have to come.
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

/// Joins what the records have, as far as they came, up to the end of the record in which the first message ends.
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

/// The message behind its type and length; `None` if it is broken.
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

/// The name of a list that has exactly one.
fn server_name(content: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields(content);
    let mut list = Fields(fields.vector(2)?);
    let (kind, name) = (list.byte()?, list.vector(2)?);
    let is_one = kind == HOST_NAME && !name.is_empty() && list.0.is_empty() && fields.0.is_empty();
    is_one.then_some(name)
}

/// Bytes that are read from the front; each method returns `None` if there are too few.
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

    /// A number of at most three bytes.
    fn number(&mut self, size: usize) -> Option<usize> {
        Some(self.take(size)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// Bytes behind their number, which has this size.
    fn vector(&mut self, size: usize) -> Option<&'a [u8]> {
        let length = self.number(size)?;
        self.take(length)
    }
}
