//! Checks that every request of an HTTP/1 connection names the host to which the gateway connects (RFC 9112).
//!
//! A request is sent when its head is complete. The head must have exactly one `Host` field, and field and target must
//! name the host. Ambiguous heads and bodies are denied, so that no server reads a request that was not checked: a line
//! that ends without a carriage return, two lengths, a coding other than `chunked`.

use httparse::{EMPTY_HEADER, Header, Request, Status};
use ipc::gateway::GatewayFailure;
use ipc::rights::HostName;

pub(super) const MAX_FIELDS: usize = 128;

// Maximum number of digits, so that a length fits into 64 bits.
const MAX_DECIMAL: usize = 19;
const MAX_HEXADECIMAL: usize = 15;

#[derive(Debug)]
pub(super) struct Requests {
    host: HostName,
    stage: Stage,
    is_first: bool,
    upgrades: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    /// State after an upgrade request: nothing may be sent until the host has answered.
    Answer,
}

/// Failure of a connection with an invalid or ambiguous request.
const BROKEN: GatewayFailure = GatewayFailure::NoFirstMessage;

impl Requests {
    pub(super) const fn new(host: HostName) -> Self {
        Self { host, stage: Stage::Head, is_first: true, upgrades: false }
    }

    /// True if the first request asks for an upgrade. Valid once that request's head has been admitted.
    pub(super) const fn upgrades(&self) -> bool {
        self.upgrades
    }

    /// True if no bytes may be sent until [`Self::stay`] is called.
    pub(super) fn awaits_answer(&self) -> bool {
        self.stage == Stage::Answer
    }

    /// Continues with HTTP/1 after the host declined the upgrade.
    pub(super) fn stay(&mut self) {
        self.upgrades = false;
        self.stage = Stage::Head;
    }

    /// Returns the number of bytes that may be sent; 0 if more bytes are needed for a decision.
    pub(super) fn admit(&mut self, bytes: &[u8]) -> Result<usize, GatewayFailure> {
        match self.stage {
            Stage::Head => self.head(bytes),
            Stage::Body(left) => {
                let (count, left) = part(bytes, left);
                self.stage = if left == 0 { self.after() } else { Stage::Body(left) };
                Ok(count)
            }
            Stage::ChunkSize => self.line(bytes, |requests, line| {
                let size = chunk_size(line)?;
                requests.stage = if size == 0 { Stage::Trailer } else { Stage::Chunk(size) };
                Some(())
            }),
            Stage::Chunk(left) => {
                let (count, left) = part(bytes, left);
                self.stage = if left == 0 { Stage::ChunkEnd } else { Stage::Chunk(left) };
                Ok(count)
            }
            Stage::ChunkEnd => self.line(bytes, |requests, line| {
                requests.stage = Stage::ChunkSize;
                line.is_empty().then_some(())
            }),
            Stage::Trailer => self.line(bytes, |requests, line| {
                if line.is_empty() {
                    requests.stage = requests.after();
                }
                Some(())
            }),
            Stage::Answer => Ok(0),
        }
    }

    const fn after(&self) -> Stage {
        if self.upgrades { Stage::Answer } else { Stage::Head }
    }

    /// Judges one line and returns its length in bytes; 0 while the line is incomplete.
    fn line(
        &mut self,
        bytes: &[u8],
        judge: impl FnOnce(&mut Self, &[u8]) -> Option<()>,
    ) -> Result<usize, GatewayFailure> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            return Ok(0);
        };
        let line = bytes[..end].strip_suffix(b"\r").filter(|line| !line.contains(&b'\r')).ok_or(BROKEN)?;
        judge(self, line).ok_or(BROKEN)?;
        Ok(end + 1)
    }

    fn head(&mut self, bytes: &[u8]) -> Result<usize, GatewayFailure> {
        let mut fields = [EMPTY_HEADER; MAX_FIELDS];
        let mut request = Request::new(&mut fields);
        let parsed = request.parse(bytes).map_err(|_| BROKEN)?;
        let head = match parsed {
            Status::Complete(length) => &bytes[..length],
            Status::Partial => bytes,
        };
        if memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r') {
            return Err(BROKEN);
        }
        if parsed.is_partial() {
            return Ok(0);
        }
        self.judge_host(&request)?;
        let body = body(&request).ok_or(BROKEN)?;
        self.upgrades = self.is_first && values(request.headers, "upgrade").next().is_some();
        self.is_first = false;
        self.stage = if body == Stage::Body(0) { self.after() } else { body };
        Ok(head.len())
    }

    /// Fails unless every host that a request's head names is the one to which the gateway connects.
    fn judge_host(&self, request: &Request<'_, '_>) -> Result<(), GatewayFailure> {
        let judge = |said: Option<HostName>| {
            if said.as_ref() == Some(&self.host) { Ok(()) } else { Err(GatewayFailure::OtherName { said }) }
        };
        let mut hosts = values(request.headers, "host");
        let host = hosts.next().and_then(|host| named(str::from_utf8(host).ok()?));
        judge(host.filter(|_| hosts.next().is_none()))?;
        let target = request.path.unwrap_or_default();
        match request.method {
            Some("CONNECT") => Err(GatewayFailure::OtherName { said: named(target) }),
            Some("OPTIONS") if target == "*" => Ok(()),
            _ if target.starts_with('/') => Ok(()),
            _ => judge(absolute(target)),
        }
    }
}

pub(super) fn values<'a>(fields: &'a [Header<'a>], name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
}

fn absolute(target: &str) -> Option<HostName> {
    let (scheme, rest) = target.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    if scheme.eq_ignore_ascii_case("http") { named(authority) } else { None }
}

/// Returns the host of an authority (`HOST:PORT`) without the port; `None` if host or port is invalid.
fn named(authority: &str) -> Option<HostName> {
    let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
    if port.bytes().all(|digit| digit.is_ascii_digit()) { name.parse().ok() } else { None }
}

/// Returns the stage after a head, by its body's length (RFC 9112 §6.3). `None` if the length is ambiguous.
fn body(request: &Request<'_, '_>) -> Option<Stage> {
    let mut codings = values(request.headers, "transfer-encoding");
    let mut lengths = values(request.headers, "content-length");
    let body = match (codings.next(), lengths.next()) {
        (None, None) => Stage::Body(0),
        (Some(coding), None) if request.version == Some(1) && coding.eq_ignore_ascii_case(b"chunked") => {
            Stage::ChunkSize
        }
        (None, Some(length)) => Stage::Body(number(length, 10, MAX_DECIMAL)?),
        _ => return None,
    };
    (codings.next().is_none() && lengths.next().is_none()).then_some(body)
}

/// Reads a chunk's size in bytes, without the chunk's extensions; `None` if it is invalid.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|&byte| byte == b';').next()?;
    number(size.trim_ascii_end(), 16, MAX_HEXADECIMAL)
}

/// Reads a number of at most `most` digits, without a sign. `None` if it is invalid.
fn number(text: &[u8], radix: u32, most: usize) -> Option<u64> {
    let is_number =
        (1..=most).contains(&text.len()) && text.iter().all(|&byte| char::from(byte).is_digit(radix));
    if is_number { u64::from_str_radix(str::from_utf8(text).ok()?, radix).ok() } else { None }
}

/// Returns how many of `bytes` belong to a part of which `left` bytes are missing, and how many are missing afterwards.
fn part(bytes: &[u8], left: u64) -> (usize, u64) {
    let count = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (count, left - count as u64)
}
