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

use crate::id::Generation;
use crate::message::{ToSupervisor, ToWorker};

/// The supervisor's ends of a worker's pipes.
pub type SupervisorEnds<R, W> = (FrameReader<R, ToSupervisor>, Outgoing<W, ToWorker>);

/// The worker's ends of its pipes.
pub type WorkerEnds<R, W> = (FrameReader<R, ToWorker>, Outgoing<W, ToSupervisor>);

/// Makes the supervisor's blocking ends of two byte streams.
pub fn supervisor_ends<R, W>(reader: R, writer: W, generation: Generation) -> SupervisorEnds<R, W> {
    (FrameReader::new(reader, generation), Outgoing::new(writer, generation))
}

/// Makes the worker's blocking ends of two byte streams.
pub fn worker_ends<R, W>(reader: R, writer: W, generation: Generation) -> WorkerEnds<R, W> {
    (FrameReader::new(reader, generation), Outgoing::new(writer, generation))
}
