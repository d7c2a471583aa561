//! Socket on which a session reports the confinement of its workers to processes of the same user. Agents cannot see
//! it.
//!
//! The session reads no input from the socket, so that nobody can change the session by it.

mod ask;
mod socket;

pub(crate) use ask::{LiveAnswer, ask_all};
pub(crate) use socket::LiveSocket;
