//! Sends messages to a worker, and records its running tool calls, on which it depends which answers are accepted.

use std::sync::{Arc, Mutex, PoisonError};

use ipc::effect::{Effect, EffectError};
use ipc::id::CallId;
use ipc::message::{ToWorker, Work};
use ipc::phase::{Expected, OpenCalls, Phase};
use tokio::sync::mpsc;

use super::Outgoing;

#[derive(Clone, Debug)]
pub struct CallSender {
    pub(super) outbox: mpsc::UnboundedSender<ToWorker>,
    pub(super) open: Arc<Mutex<Register>>,
}

/// Phase and open calls of a worker, on which it depends if the next message is accepted.
#[derive(Debug)]
pub(super) struct Register {
    pub(super) phase: Phase,
    pub(super) calls: OpenCalls,
}

impl CallSender {
    /// Sends a tool call. If the worker has ended, its `Ended` event lists the call as open.
    pub fn call(&self, call: CallId, work: Work) {
        self.send(Some((call, Expected::from(&work))), ToWorker::Call { call, work });
    }

    /// Sends an approved change to be executed. A worker accepts only one, and no tool call after it.
    pub fn commit(&self, call: CallId, effect: &Effect) -> Result<(), EffectError> {
        let parts = effect.to_parts()?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.open(call, Expected::Commit);
        for part in parts {
            self.send(None, ToWorker::Commit { call, part });
        }
        Ok(())
    }

    /// Cancels a tool call. The worker still sends its outcome.
    pub fn cancel(&self, call: CallId) {
        self.send(None, ToWorker::Cancel { call });
    }

    pub fn drain(&self) {
        let mut register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if register.phase == Phase::Serving {
            register.phase = Phase::Draining;
        }
        drop(register);
        self.send(None, ToWorker::Drain);
    }

    fn send(&self, opens: Option<(CallId, Expected)>, message: ToWorker) {
        if let Some((call, expected)) = opens {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.open(call, expected);
        }
        let _ = self.outbox.send(message);
    }
}

pub(super) async fn write(mut outgoing: Outgoing, mut messages: mpsc::UnboundedReceiver<ToWorker>) {
    while let Some(message) = messages.recv().await {
        if let Err(error) = outgoing.send(message).await {
            // The reader also notices the end of the worker, and reports it.
            tracing::debug!(%error, "worker takes no more messages");
            return;
        }
    }
}
