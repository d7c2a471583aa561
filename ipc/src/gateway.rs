//! Messages around the gateway of an agent: the process that connects, for one agent, to the hosts that the agent may reach by name.
//!
//! ```text
//! broker of the agent ── Arrival + socket ──► gateway ── GatewayReport ──► supervisor
//!                                                └───◄── GatewayOrder ───────┘
//! ```
//!
//! An [`Arrival`] is one message of a `SOCK_SEQPACKET` socket in the form of [`codec`](crate::codec), with exactly one
//! descriptor: the accepted connection (`SCM_RIGHTS`, unix(7)). The other two are frames of generation 0 on a stream socket.
//!
//! Where somebody may be asked, connections to hosts beyond the list arrive as well. They wait in the gateway while it asks
//! ([`GatewayReport::Asked`]) and the supervisor answers ([`GatewayOrder::Answer`]).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::rights::{HostName, Hosts};

/// Maximum size of an [`Arrival`] in bytes.
pub const MAX_ARRIVAL: usize = 1024;

/// Maximum number of questions of one gateway that have no answer yet.
pub const MAX_QUESTIONS: usize = 16;

/// Host and port inside at which the gateway itself speaks CONNECT (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928).
pub const PROXY: (&str, u16) = ("proxy.bailiwick.internal", 1080);

/// A connection from inside to an address that stands for a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The host.
    pub name: HostName,
    /// The port.
    pub port: u16,
    /// Name that the connecting process gives itself: any text, empty if it is unknown.
    pub program: String,
}

/// A message to a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayOrder {
    /// The first, which comes once.
    Start {
        /// The hosts that it may connect to.
        hosts: Hosts,
        /// True if it asks about other hosts, instead of ending the connection.
        asks: bool,
    },
    /// Answers a question. Connections that wait for it go on or end, and so do later ones to the same name and port.
    Answer {
        /// Number of the question.
        question: u64,
        /// True if the name may be connected to at the port.
        allowed: bool,
    },
    /// Takes a question and its answer back. Its connections end.
    Close {
        /// Number of the question.
        question: u64,
    },
}

/// A message of a gateway, which the supervisor does not trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayReport {
    /// It has its order, and takes connections.
    Ready,
    /// A connection was made.
    Connected {
        /// Number of the connection, never used again.
        connection: u64,
        /// The arrival that it is for.
        arrival: Arrival,
        /// The address that was connected to.
        address: SocketAddr,
    },
    /// A connection that was made has ended.
    Ended {
        /// Number of the connection.
        connection: u64,
        /// Bytes from the agent to the host.
        sent: u64,
        /// Bytes from the host to the agent.
        received: u64,
        /// Reason that the gateway ended it, if no end of the connection did.
        failure: Option<GatewayFailure>,
    },
    /// Connections to a host beyond the list wait for an answer.
    Asked {
        /// Number of the question, never used again.
        question: u64,
        /// The first of the connections.
        arrival: Arrival,
    },
    /// No connection was made.
    Failed {
        /// The arrival.
        arrival: Arrival,
        /// The reason.
        failure: GatewayFailure,
    },
}

/// Reason that a gateway makes no connection, or ends one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayFailure {
    /// The host or its port is not on the list.
    NotListed,
    /// The resolver has no address for the name.
    Unresolved,
    /// No address could be connected to, or may be.
    Unreachable {
        /// The last one that was tried.
        address: SocketAddr,
        /// The error number of the attempt, as of connect(2).
        errno: i32,
    },
    /// The first bytes name another host, or none: the one of TLS (SNI) or HTTP (`Host`).
    OtherName {
        /// That name, if it is one.
        said: Option<HostName>,
    },
    /// Too many connections at a time.
    TooMany,
    /// A first message that was too long, too slow or no such message.
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
