//! What comes from a worker, as inputs of the core.

use ipc::event::{EventKind, Observer as Witness};
use ipc::frontend::UiEventKind;
use ipc::id::{CallId, Generation};
use ipc::message::Chunk;
use tracing::info_span;

use super::workers::Happening;
use super::{Driver, DriverError, millis};
use crate::core::Input;
use crate::monitor::WorkerEvent;

impl Driver {
    pub(super) fn on_happening(&mut self, happening: Happening) -> Result<Option<Input>, DriverError> {
        match happening {
            Happening::Started => {
                self.worker_is_ready()?;
                Ok(None)
            }
            Happening::NotStarted(error, calls) => {
                let reason = format!("no worker could be started: {error}");
                if self.worker.is_closed() {
                    self.feed(Input::NotReplaced { reason: error.to_string() })?;
                } else {
                    self.notice("no_worker", &reason)?;
                }
                self.lose(calls, &reason)?;
                Ok(None)
            }
            Happening::Closed { reason, calls } => {
                self.lose(calls, &reason)?;
                Ok(None)
            }
            Happening::Event { generation, event } => self.on_worker(generation, event),
        }
    }

    pub(super) fn on_worker(
        &mut self,
        generation: Generation,
        event: WorkerEvent,
    ) -> Result<Option<Input>, DriverError> {
        match event {
            WorkerEvent::Output { call, chunk: Chunk::Text(bytes) } => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.show(UiEventKind::OutputDelta { call, text });
                Ok(None)
            }
            WorkerEvent::Outcome { call, outcome } => {
                let Some(outcome) = self.running.preparations.finish(call, outcome) else { return Ok(None) };
                let _span = info_span!("call", id = %call).entered();
                tracing::debug!("answered");
                let began = self.running.calls.remove(&call);
                let duration_ms = began.map_or(0, |began| millis(began.elapsed()));
                self.compare(call)?;
                Ok(Some(Input::CallFinished { call, outcome, duration_ms }))
            }
            WorkerEvent::Ended { reason, violation, open } => {
                self.withdraw_live();
                if let Some(violation) = violation {
                    let kind = EventKind::ProtocolViolation { generation, violation };
                    self.record(kind, Witness::Supervisor)?;
                }
                let kind = EventKind::WorkerEnded { generation, reason: reason.clone() };
                self.record(kind, Witness::Supervisor)?;
                self.lose(open, &format!("its worker {reason}"))?;
                Ok(None)
            }
            WorkerEvent::Refused(refused) => Ok(Some(Input::Refused(refused))),
            WorkerEvent::Prepared { call, part } => {
                self.running.preparations.take(call, part);
                Ok(None)
            }
            // Comes for no call that is asked for here: the table of phases saw to it.
            WorkerEvent::Output { .. } => Ok(None),
        }
    }

    fn lose(&mut self, calls: Vec<CallId>, reason: &str) -> Result<(), DriverError> {
        for call in calls {
            self.running.calls.remove(&call);
            self.running.preparations.forget(call);
            self.compare(call)?;
            self.feed(Input::CallLost { call, reason: reason.to_owned() })?;
        }
        Ok(())
    }
}
