//! Typed pipe ends: an [`Outgoing`] writes messages of one direction, a [`FrameReader`] reads those of the other, so no
//! end can send the messages that it should receive.

mod blocking;
#[cfg(feature = "tokio")]
mod nonblocking;

pub use blocking::{FrameReader, Outgoing};
#[cfg(feature = "tokio")]
pub use nonblocking::{AsyncIncoming, AsyncOutgoing, async_pair};
