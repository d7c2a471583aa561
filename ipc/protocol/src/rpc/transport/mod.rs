//! JSON-RPC 2.0 for any methods, with one JSON object per line.

mod id;
mod incoming;
mod lines;
mod outgoing;

pub use id::RequestId;
pub use incoming::{Incoming, Refused, ResponseOutcome};
pub use lines::{Line, Lines, MAX_LINE};
pub use outgoing::{call, failure, success};

/// Required value of `jsonrpc`.
pub(super) const JSONRPC: &str = "2.0";
