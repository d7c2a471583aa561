//! Handle by which a tool sends output of one call and learns of its cancellation.

use ipc::effect::Part;
use ipc::id::CallId;
use ipc::message::{CallOutcome, Chunk, ToSupervisor};
use tokio::sync::{mpsc, watch};

use crate::fault::{Result, Stop};

#[derive(Clone, Debug)]
pub struct OpenCall {
    call: CallId,
    outbox: mpsc::Sender<ToSupervisor>,
    cancelled: watch::Receiver<bool>,
}

impl OpenCall {
    pub fn new(call: CallId, outbox: mpsc::Sender<ToSupervisor>, cancelled: watch::Receiver<bool>) -> Self {
        Self { call, outbox, cancelled }
    }

    pub const fn id(&self) -> CallId {
        self.call
    }

    /// Fails if the call was cancelled.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Stop::Cancelled) } else { Ok(()) }
    }

    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    pub async fn cancelled(&mut self) {
        // An error says that the loop that could cancel is gone: then nobody waits for the call either.
        let _ = self.cancelled.wait_for(|cancelled| *cancelled).await;
    }

    /// Sends output. Blocks while the message queue is full. Fails if the call was cancelled.
    pub fn output(&self, chunk: Chunk) -> Result<()> {
        self.check()?;
        let message = ToSupervisor::Output { call: self.call, chunk };
        self.outbox.blocking_send(message).map_err(|_| Stop::Cancelled)
    }

    /// Waits for space for one message in the queue; `None` if nobody receives messages any more. Cancel safe.
    pub async fn slot(&self) -> Option<Slot<'_>> {
        let permit = self.outbox.reserve().await.ok()?;
        Some(Slot { call: self.call, permit })
    }

    /// Sends a part of a prepared change. Blocks while the queue is full. Fails if the call was cancelled.
    pub fn prepared(&self, part: Part) -> Result<()> {
        self.check()?;
        let message = ToSupervisor::Prepared { call: self.call, part };
        self.outbox.blocking_send(message).map_err(|_| Stop::Cancelled)
    }

    pub async fn close(self, outcome: CallOutcome) {
        let message = ToSupervisor::Outcome { call: self.call, outcome };
        // The writer has gone: the message loop ends with the reason.
        let _ = self.outbox.send(message).await;
    }
}

#[derive(Debug)]
pub struct Slot<'a> {
    call: CallId,
    permit: mpsc::Permit<'a, ToSupervisor>,
}

impl Slot<'_> {
    pub fn send(self, chunk: Chunk) {
        self.permit.send(ToSupervisor::Output { call: self.call, chunk });
    }
}
