//! System calls that the broker denied: proof, since the broker itself denied them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::effect::bytes;
use crate::path::WirePath;
use crate::place::Place;
use crate::rights::HostName;

/// The most bytes of a frame that carries one: what a pipe takes whole or not at all (`PIPE_BUF`, pipe(7)).
pub const MAX_REFUSAL: usize = 4096;

/// A call that the rules of the sandbox refused, where neither the machine nor plain permissions would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Child of the confined program from which the caller descends, or the program itself. The number is the broker's.
    pub process: u32,
    /// Name that the calling process gives itself: any text.
    pub program: String,
    /// The attempted act.
    pub act: Act,
    /// Target of the act.
    pub object: Target,
    /// Error number that the caller received.
    pub errno: i32,
    /// Number of attempts so far.
    pub count: u64,
    /// Number of other refusals beneath that child that were not reported.
    pub untold: u64,
}

impl Refusal {
    /// True if it concerned an internet address, or a host by its name.
    pub const fn is_of_internet(&self) -> bool {
        matches!(self.object, Target::Internet(..) | Target::Host { .. })
    }
}

/// Attempted act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Act {
    /// Connecting a socket.
    Connect,
    /// Sending to an address.
    Send,
    /// Binding an address.
    Bind,
    /// Letting somebody in who connects from outside.
    Accept,
    /// Changing the mode, owner, times, attributes or flags of a file.
    Change,
    /// Signalling a process.
    Signal,
    /// Using or listing objects of System V.
    Use,
}

/// Target of an act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// An internet address, and what it is to the machine, as far as that is seen from where the program is.
    Internet(SocketAddr, Place),
    /// A host that was looked up by its name.
    Host {
        /// The host.
        name: HostName,
        /// The port.
        port: u16,
    },
    /// A unix socket at a path.
    Socket(WirePath),
    /// A unix socket without a path, by its name.
    Abstract(#[serde(with = "bytes")] Vec<u8>),
    /// A file.
    File(WirePath),
    /// A process.
    Process(u32),
    /// An object of System V, as a phrase.
    Object(String),
}
