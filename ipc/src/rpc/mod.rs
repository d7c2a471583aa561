//! The front-end protocol between processes: JSON-RPC 2.0, one object a line.
//!
//! The two directions have names of their own: a [`ClientRequest`] comes from the front end, a
//! [`ServerRequest`](crate::approval::ServerRequest) asks it for an approval, a [`Notification`] tells it something. Each
//! method's string stands once, as a constant. Nothing untyped passes: what does not parse is answered with the
//! [`ErrorObject`] that fits, and an approval that is answered by anything but its own response is denied.

mod agents;
mod attachment;
mod client;
mod error;
mod grant;
mod id;
mod incoming;
mod lines;
mod notification;
mod outgoing;
mod response;
mod rewind;
#[cfg(feature = "schema")]
mod schema;
#[cfg(test)]
mod tests;

pub use agents::{AgentInfo, AgentState, ListAgentsResponse, OpenCall, SendToAgentParams, StopAgentParams};
pub use attachment::Attachment;
pub use client::*;
pub use error::{ErrorObject, ErrorWord};
pub use grant::{GrantParams, GrantedNetwork, GrantedRight};
pub use id::RequestId;
pub use incoming::{Incoming, Refused, ResponseOutcome};
pub use lines::{Line, Lines, MAX_LINE};
pub use notification::*;
pub use outgoing::{failure, notification, request, success};
pub(crate) use response::decode;
pub use response::{answer, unawaited};
pub use rewind::RewindParams;
#[cfg(feature = "schema")]
pub use schema::schema;

/// The version of this protocol; it changes whenever a message does in a way that a front end could notice.
pub const PROTOCOL: u32 = 2;

/// What `jsonrpc` has to be.
const JSONRPC: &str = "2.0";
