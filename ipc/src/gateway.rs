//! Messages of a gateway: the process that connects to the hosts that one agent may reach by name.
//!
//! ```text
//! broker of the agent ── Arrival + socket ──► gateway ── GatewayReport ──► supervisor
//!                                                └───◄── GatewayOrder ───────┘
//! ```
//!
//! An [`Arrival`] is one message of a `SOCK_SEQPACKET` socket in the form of [`codec`](crate::codec), with exactly one
//! descriptor: the accepted connection (`SCM_RIGHTS`, unix(7)). Orders and reports are frames of generation 0 on a
//! stream socket.
//!
//! If a person can be asked, connections to hosts that are not on the agent's list arrive as well. They wait in the
//! gateway until its question ([`GatewayReport::Asked`]) is answered by the supervisor ([`GatewayOrder::Answer`]).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::rights::{HostName, Hosts};

/// Maximum size of an [`Arrival`] in bytes.
pub const MAX_ARRIVAL: usize = 1024;

/// Maximum number of unanswered questions of one gateway.
pub const MAX_QUESTIONS: usize = 16;

/// Host and port, inside the sandbox, of the gateway's proxy for CONNECT (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928).
pub const PROXY: (&str, u16) = ("proxy.bailiwick.internal", 1080);

/// A connection that a program in the sandbox makes to a host, as the broker reports it to the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The host whose address the program looked up, or that the program named to the proxy.
    pub name: HostName,
    /// The port on the host that the program wants.
    pub port: u16,
    /// Name that the connecting process has set for itself: any text, empty if unknown.
    pub program: String,
}

/// A message to a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayOrder {
    /// The first order, sent once.
    Start {
        /// The hosts that may be connected to.
        hosts: Hosts,
        /// True if the gateway asks about hosts that are not in `hosts`. If false, it ends connections to such hosts.
        asks: bool,
    },
    /// Answers a question. The answer also applies to later connections to the same name and port.
    Answer {
        /// The number that the gateway gave the question in [`GatewayReport::Asked`].
        question: u64,
        /// True if the name and port may be connected to.
        allowed: bool,
    },
    /// Withdraws a question and its answer. Connections to the host end.
    Close {
        /// The number that the gateway gave the question in [`GatewayReport::Asked`].
        question: u64,
    },
}

/// A message of a gateway, which the supervisor does not trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayReport {
    /// The gateway has received its list of hosts, and accepts connections.
    Ready,
    /// The gateway has connected to a host.
    Connected {
        /// Number of the connection, never used again.
        connection: u64,
        /// The program's connection, which the gateway now relays.
        arrival: Arrival,
        /// Address and port of the host.
        address: SocketAddr,
    },
    /// A connection to a host has ended.
    Ended {
        /// The number that the gateway gave the connection in [`GatewayReport::Connected`].
        connection: u64,
        /// Bytes from the agent to the host.
        sent: u64,
        /// Bytes from the host to the agent.
        received: u64,
        /// Reason that the gateway ended the connection. `None` if the program or the host ended it.
        failure: Option<GatewayFailure>,
    },
    /// Connections to a host that is not on the list wait for an answer.
    Asked {
        /// Number of the question, never used again.
        question: u64,
        /// The first of the connections that wait.
        arrival: Arrival,
    },
    /// The gateway has not connected to a host.
    Failed {
        /// The connection of the program.
        arrival: Arrival,
        /// The reason why no connection was made.
        failure: GatewayFailure,
    },
}

/// The reason why a gateway makes no connection, or ends one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayFailure {
    /// The host and port are not on the list.
    NotListed,
    /// The resolver has no address for the name.
    Unresolved,
    /// Connecting to each address failed or is not permitted.
    Unreachable {
        /// The last address that was tried.
        address: SocketAddr,
        /// The error number of connect(2).
        errno: i32,
    },
    /// The program's first bytes contain another host name in TLS (SNI) or HTTP (`Host`), or none.
    OtherName {
        /// The host name in the first bytes, if it is valid.
        said: Option<HostName>,
    },
    /// The gateway has reached its maximum of connections at a time.
    TooMany,
    /// The program's first message was too long, came too late, or is not of the protocol of the port.
    NoFirstMessage,
    /// The program ended its connection before the host was reached.
    ClientClosed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn the_longest_arrival_fits_into_its_message() {
        let name = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
        let arrival =
            Arrival { name: name.parse().unwrap(), port: u16::MAX, program: "\u{10ffff}".repeat(16) };
        let bytes = codec::encode(&arrival).unwrap();
        assert!(bytes.len() <= MAX_ARRIVAL, "{} bytes", bytes.len());
        assert_eq!(codec::decode::<Arrival>(&bytes).unwrap(), arrival);
    }
}
