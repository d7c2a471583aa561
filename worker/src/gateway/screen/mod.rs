//! Checks of a client's bytes before they are sent: a host that they name must be the one that the gateway dials.
//!
//! | port | rule |
//! | --- | --- |
//! | 443 | the first message is a TLS `ClientHello` that names the host |
//! | 80 | every HTTP/1 request names the host, up to a switch to WebSocket |
//! | other | the first message, if it is a TLS `ClientHello` with a name, names the host; everything else passes |

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

/// Maximum size in bytes of a message that must be complete before any of it is sent.
pub(super) const MAX_MESSAGE: usize = 64 << 10;

// Ports of HTTPS and HTTP.
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
    /// The first message is checked if it is a `ClientHello`.
    PerhapsHello,
    Requests(Requests),
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

    pub(super) const fn precedes_dialling(&self) -> bool {
        matches!(self.rule, Rule::Hello | Rule::Requests(_))
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.rule, Rule::Open)
    }

    pub(super) const fn is_timed(&self) -> bool {
        matches!(self.rule, Rule::Hello | Rule::PerhapsHello)
    }

    /// True if the first request asks for an upgrade, so that the host's answer has to be checked.
    pub(super) const fn needs_answer(&self) -> bool {
        matches!(&self.rule, Rule::Requests(requests) if requests.upgrades())
    }

    /// True if no bytes may be sent until [`Self::take_answer`] is called.
    pub(super) fn awaits_answer(&self) -> bool {
        matches!(&self.rule, Rule::Requests(requests) if requests.awaits_answer())
    }

    /// Applies the host's answer to an upgrade request. Fails if the host switches to another protocol than WebSocket.
    pub(super) fn take_answer(&mut self, answer: Answer) -> Result<(), GatewayFailure> {
        match (answer, &mut self.rule) {
            (Answer::Other, _) => return Err(GatewayFailure::OtherName { said: None }),
            (Answer::WebSocket, rule) => *rule = Rule::Open,
            (Answer::Stays, Rule::Requests(requests)) => requests.stay(),
            (Answer::Stays, _) => {}
        }
        Ok(())
    }

    /// Returns the number of bytes that may be sent; 0 if the decision needs more. An error ends the connection.
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

fn is_hello(bytes: &[u8]) -> bool {
    bytes.starts_with(&hello::RECORD)
}
