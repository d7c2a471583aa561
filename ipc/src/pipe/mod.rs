//! Typed pipe ends: the whole boundary in the types of two halves.
//!
//! An [`Outgoing`] writes one direction's messages and an [`FrameReader`] reads the other's; a process holds one of each, of
//! opposite directions, so that no end can send what it should receive.

mod blocking;
#[cfg(feature = "tokio")]
mod nonblocking;

pub use blocking::{FrameReader, Outgoing};
#[cfg(feature = "tokio")]
pub use nonblocking::{AsyncIncoming, AsyncOutgoing, async_pair};
