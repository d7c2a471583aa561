//! Socket on which a session reports the confinement of its workers to processes of the same user, except agents.
//!
//! The session reads no input from the socket, so that no process can change the session by it.

mod ask;
mod socket;

pub(crate) use ask::{LiveAnswer, ask_all};
pub(crate) use socket::LiveSocket;
