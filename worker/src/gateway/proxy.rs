//! Proxy of the gateway, for programs that cannot use a placeholder address for each name. They name a host by CONNECT
//! (RFC 9110 §9.3.6) or SOCKS5 (RFC 1928).
//!
//! A positive reply means that the host is on the list of allowed hosts. Later the connection is judged like all
//! others: its first message has to name the host, and if the host cannot be reached, the connection is reset. The user
//! is not asked about other hosts, since the agent's broker did not see the name and cannot confirm the question.

mod connect;
mod socks;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ipc::gateway::{Arrival, GatewayFailure, GatewayReport, PROXY};
use ipc::rights::{HostName, Hosts};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::QueuedReport;
use super::connection::{Connection, reset_when_closed};
use super::pump::{read, write};

/// Time limit for reading a program's request to the proxy.
const REQUEST: Duration = Duration::from_secs(10);

/// Maximum size in bytes of a program's request to the proxy.
const MAX_REQUEST: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct Proxied {
    pub(super) number: u64,
    pub(super) arrival: Arrival,
    pub(super) client: TcpStream,
    pub(super) hosts: Hosts,
}

/// Protocol of a proxy: parses requests and encodes replies, without sending or receiving.
trait Protocol {
    fn read(&mut self, bytes: &[u8]) -> ProxyRequest;

    fn answer(&self, refusal: Option<Refusal>) -> Vec<u8>;
}

#[derive(Debug, PartialEq, Eq)]
enum ProxyRequest {
    /// Incomplete request.
    Nothing,
    /// Greeting, with its length in bytes, and the reply to send.
    Greeting(usize, Vec<u8>),
    /// Request for a connection, with its length in bytes, and the requested host and port.
    Request(usize, HostName, u16),
    Broken(Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    NotListed,
    /// The requested host is an address or an invalid name.
    NoName,
    /// The request is for something else than a connection.
    OtherRequest,
    SignsIn,
    Malformed,
}

pub(super) fn is_meant(arrival: &Arrival) -> bool {
    (arrival.name.as_str(), arrival.port) == PROXY
}

impl Proxied {
    /// Reads the request, then serves the connection.
    pub(super) async fn run(self, reports: mpsc::Sender<QueuedReport>) {
        let Self { number, mut arrival, client, hosts } = self;
        let request = async {
            let mut bytes = Vec::new();
            let asked = negotiate(&client, &mut bytes, &mut arrival, &hosts).await?;
            asked.then_some(bytes).ok_or(GatewayFailure::NotListed)
        };
        match timeout(REQUEST, request).await.unwrap_or(Err(GatewayFailure::NoFirstMessage)) {
            Ok(held) => Connection { number, arrival, client, leave: None, held }.run(reports).await,
            Err(failure) => {
                // The answer says why, and a reset could overtake it.
                reset_when_closed(&client, false);
                // Nobody reads reports once the gateway ends.
                let report = GatewayReport::Failed { arrival, failure };
                let _ = reports.send(QueuedReport::before_end_of(client, report)).await;
            }
        }
    }
}

/// Reads and answers the request. True if the host is on the list; `bytes` then keeps what follows the request.
async fn negotiate(
    client: &TcpStream,
    bytes: &mut Vec<u8>,
    arrival: &mut Arrival,
    hosts: &Hosts,
) -> Result<bool, GatewayFailure> {
    let gone = |_| GatewayFailure::ClientClosed;
    let mut protocol: Option<Box<dyn Protocol + Send>> = None;
    let mut answered = 0;
    loop {
        if bytes.len() > MAX_REQUEST || read(client, bytes).await.map_err(gone)? == 0 {
            return Err(GatewayFailure::NoFirstMessage);
        }
        let protocol = protocol.get_or_insert_with(|| match bytes.first() {
            Some(&socks::VERSION) => Box::new(socks::Socks::default()),
            _ => Box::new(connect::Connect),
        });
        loop {
            let refusal = match protocol.read(bytes) {
                ProxyRequest::Nothing => break,
                ProxyRequest::Greeting(length, answer) => {
                    bytes.drain(..length);
                    write(client, &answer, &mut answered).await.map_err(gone)?;
                    continue;
                }
                ProxyRequest::Request(length, name, port) => {
                    bytes.drain(..length);
                    (arrival.name, arrival.port) = (name, port);
                    (!hosts.allows(&arrival.name, port)).then_some(Refusal::NotListed)
                }
                ProxyRequest::Broken(refusal) => Some(refusal),
            };
            write(client, &protocol.answer(refusal), &mut answered).await.map_err(gone)?;
            return match refusal {
                None => Ok(true),
                Some(Refusal::NotListed) => Ok(false),
                Some(_) => Err(GatewayFailure::NoFirstMessage),
            };
        }
    }
}
