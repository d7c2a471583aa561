//! Typed ends of pipes. An [`Outgoing`] writes messages of one direction, and a [`FrameReader`] reads those of the
//! other. So no process can send the messages that it should receive.

mod blocking;
#[cfg(feature = "tokio")]
mod nonblocking;

pub use blocking::{FrameReader, Outgoing};
#[cfg(feature = "tokio")]
pub use nonblocking::{AsyncIncoming, AsyncOutgoing, async_pair};
