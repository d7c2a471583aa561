//! The front-end protocol between processes: JSON-RPC 2.0, one object per line. The transport knows no method.
//!
//! A [`ClientRequest`] comes from the front end, a [`ServerRequest`](crate::approval::ServerRequest) asks it for an approval, a
//! [`Notification`] informs it. Each method's string is one constant. A message that does not parse gets an [`ErrorObject`]; an
//! approval that is answered by anything but its own response is denied.

mod methods;
#[cfg(test)]
mod tests;
pub mod transport;

pub(crate) use methods::decode;
pub use methods::*;
pub use transport::{Incoming, Line, Lines, MAX_LINE, Refused, RequestId, ResponseOutcome, failure, success};

/// The version of this protocol; it changes whenever a message does in a way that a front end could notice.
pub const PROTOCOL: u32 = 2;
