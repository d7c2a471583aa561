//! The front-end protocol between processes: JSON-RPC 2.0, one object per line.
//!
//! A [`ClientRequest`] comes from the front end, a [`ServerRequest`](crate::approval::ServerRequest) asks it for an
//! approval, a [`Notification`] informs it. A message that does not parse gets an [`ErrorObject`]; an invalid answer to
//! an approval is a denial.

mod methods;
#[cfg(test)]
mod tests;
pub mod transport;

pub(crate) use methods::decode;
pub use methods::*;
pub use transport::{Incoming, Line, Lines, MAX_LINE, Refused, RequestId, ResponseOutcome, failure, success};

/// The version of this protocol; it changes whenever a message does in a way that a front end could notice.
pub const PROTOCOL: u32 = 2;
