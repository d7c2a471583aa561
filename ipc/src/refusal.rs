//! System calls that the broker denied. Since the broker itself reports them, such denials are certain.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::effect::bytes;
use crate::path::WirePath;
use crate::place::Place;
use crate::rights::HostName;

/// Maximum size in bytes of a frame with a refusal: a pipe accepts it as a whole or not at all (`PIPE_BUF`, pipe(7)).
pub const MAX_REFUSAL: usize = 4096;

/// A system call that the sandbox's rules denied. Without the sandbox, the machine and file permissions allow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Pid, as the broker sees it, of the confined program, or of that child of it from which the caller descends.
    pub process: u32,
    /// Name that the calling process has set for itself: any text.
    pub program: String,
    /// The attempted act.
    pub act: Act,
    /// Target of the act.
    pub object: Target,
    /// Error number that the caller received.
    pub errno: i32,
    /// Number of attempts of this act at this target so far.
    pub count: u64,
    /// Number of other denials for descendants of `process` that were not reported.
    pub untold: u64,
}

impl Refusal {
    /// True if the target is an internet address or a host name.
    pub const fn is_of_internet(&self) -> bool {
        matches!(self.object, Target::Internet(..) | Target::Host { .. })
    }
}

/// An act that was attempted and denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Act {
    /// Connecting a socket.
    Connect,
    /// Sending to an address.
    Send,
    /// Binding an address.
    Bind,
    /// Accepting a connection from outside the sandbox.
    Accept,
    /// Changing the mode, owner, times, attributes or flags of a file.
    Change,
    /// Signalling a process.
    Signal,
    /// Using or listing System V objects: shared memory, semaphores and message queues.
    Use,
}

/// Target of a denied act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// An internet address, and its relation to the machine as far as the broker can tell it.
    Internet(SocketAddr, Place),
    /// A host whose name the program looked up.
    Host {
        /// The host that the program looked up.
        name: HostName,
        /// The port that the program tried to connect to.
        port: u16,
    },
    /// A unix socket at a path.
    Socket(WirePath),
    /// A unix socket with an abstract name.
    Abstract(#[serde(with = "bytes")] Vec<u8>),
    /// A file that the program named by its path.
    File(WirePath),
    /// A process, by its id.
    Process(u32),
    /// A System V object, described by a phrase.
    Object(String),
}
