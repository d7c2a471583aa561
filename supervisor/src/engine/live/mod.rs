//! A running session answers its own user who it is: on a socket of the state directory, which no agent sees.
//!
//! Whoever connects is told what the workers of the session's agents are confined by, and nothing is read: nobody changes anything of a session that
//! way. [`socket`] answers, [`ask`] asks.

mod ask;
mod socket;

pub(crate) use ask::{LiveAnswer, ask_all};
pub(crate) use socket::LiveSocket;
