//! Reports the confinement of a session's workers to processes of the same user, on a socket that no agent sees.
//!
//! Input on the socket is not read, so nobody can change the session that way.

mod ask;
mod socket;

pub(crate) use ask::{LiveAnswer, ask_all};
pub(crate) use socket::LiveSocket;
