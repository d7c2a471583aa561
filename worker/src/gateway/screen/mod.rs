//! Judges the bytes of a client on their way out: they have to name the host that was dialled, where a protocol names one.
//!
//! | port | rule |
//! | --- | --- |
//! | 443 | the first message is a TLS `ClientHello` that names the host |
//! | 80 | every request of HTTP/1 names it, up to a switch to WebSocket |
//! | other | the first message, if it is a TLS `ClientHello` with a name, names the host; everything else passes |
//!
//! Everything here is a function of bytes.

mod answer;
mod hello;
mod requests;
#[cfg(test)]
mod tests;

use ipc::gateway::GatewayFailure;
use ipc::rights::HostName;

pub(super) use answer::Answer;
use hello::ClientHello;
use requests::Requests;

/// Maximum size in bytes of a message that has to be complete before any of it goes out.
pub(super) const MAX_MESSAGE: usize = 64 << 10;

/// Ports of HTTPS and HTTP.
const HTTPS: u16 = 443;
const HTTP: u16 = 80;

#[derive(Debug)]
pub(super) struct Screen {
    host: HostName,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Hello,
    /// A hello, or anything else.
    PerhapsHello,
    Requests(Requests),
    /// Everything passes.
    Open,
}

impl Screen {
    pub(super) fn new(host: HostName, port: u16) -> Self {
        let rule = match port {
            HTTPS => Rule::Hello,
            HTTP => Rule::Requests(Requests::new(host.clone())),
            _ => Rule::PerhapsHello,
        };
        Self { host, rule }
    }

    /// True if the client has to send a message before anything is dialled.
    pub(super) const fn precedes_dialling(&self) -> bool {
        matches!(self.rule, Rule::Hello | Rule::Requests(_))
    }

    /// True if all bytes pass.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.rule, Rule::Open)
    }

    /// True if a first message, once it has begun, has to be complete in time.
    pub(super) const fn is_timed(&self) -> bool {
        matches!(self.rule, Rule::Hello | Rule::PerhapsHello)
    }

    /// True if the answer to the first request has to be read.
    pub(super) const fn needs_answer(&self) -> bool {
        matches!(&self.rule, Rule::Requests(requests) if requests.upgrades())
    }

    /// True if nothing more passes before [`Self::take_answer`].
    pub(super) fn awaits_answer(&self) -> bool {
        matches!(&self.rule, Rule::Requests(requests) if requests.awaits_answer())
    }

    /// Goes on as the answer to the first request says.
    pub(super) fn take_answer(&mut self, answer: Answer) -> Result<(), GatewayFailure> {
        match (answer, &mut self.rule) {
            (Answer::Other, _) => return Err(GatewayFailure::OtherName { said: None }),
            (Answer::WebSocket, rule) => *rule = Rule::Open,
            (Answer::Stays, Rule::Requests(requests)) => requests.stay(),
            (Answer::Stays, _) => {}
        }
        Ok(())
    }

    /// Number of bytes from the front that may go out, of the bytes that have not; 0 if more have to come. A failure ends the
    /// connection.
    pub(super) fn admit(&mut self, bytes: &[u8]) -> Result<usize, GatewayFailure> {
        let mut admitted = 0;
        loop {
            let rest = &bytes[admitted..];
            let count = match &mut self.rule {
                Rule::Open => rest.len(),
                Rule::Requests(requests) => requests.admit(rest)?,
                Rule::Hello => self.hello(rest, true)?,
                Rule::PerhapsHello if is_hello(rest) => self.hello(rest, false)?,
                // A byte that could be the first of a hello waits for the next.
                Rule::PerhapsHello if rest.is_empty() || hello::RECORD.starts_with(rest) => 0,
                Rule::PerhapsHello => {
                    self.rule = Rule::Open;
                    rest.len()
                }
            };
            if count == 0 {
                break;
            }
            admitted += count;
        }
        if bytes.len() - admitted >= MAX_MESSAGE { Err(GatewayFailure::NoFirstMessage) } else { Ok(admitted) }
    }

    fn hello(&mut self, bytes: &[u8], has_to_name: bool) -> Result<usize, GatewayFailure> {
        let Some(hello) = ClientHello::read(bytes).map_err(|_| GatewayFailure::NoFirstMessage)? else {
            return Ok(0);
        };
        let is_named = hello.name.as_ref() == Some(&self.host) || !(has_to_name || hello.says_name);
        if !is_named {
            return Err(GatewayFailure::OtherName { said: hello.name });
        }
        self.rule = Rule::Open;
        Ok(bytes.len())
    }
}

/// True if bytes start as a record of TLS.
fn is_hello(bytes: &[u8]) -> bool {
    bytes.starts_with(&hello::RECORD)
}
