//! Carrying out what the core decided.

use std::collections::VecDeque;
use std::time::Instant;

use ipc::confinement::Confinement;
use ipc::id::CallId;
use ipc::message::{Outcome, Work};
use ipc::rights::Rights;
use ipc::tool::ToolCall;
use tracing::info_span;

use super::workers::Cancelled;
use super::{ChangeTracker, Driver, DriverError, Guard};
use crate::core::{Effect, Input};

impl Driver {
    pub(super) fn execute(
        &mut self,
        effect: Effect,
        inputs: &mut VecDeque<Input>,
    ) -> Result<(), DriverError> {
        match effect {
            Effect::StartStream { request, model } => {
                self.running.stream = Some((request, self.provider.stream(model)));
            }
            Effect::CancelStream(request) => {
                if self.running.stream.as_ref().is_some_and(|(running, _)| *running == request) {
                    self.running.stream = None;
                }
            }
            Effect::Dispatch { call, tool } => self.dispatch(call, tool),
            Effect::ReplaceWorker { rights } => self.replace_worker(rights),
            Effect::CancelCall(call) => self.cancel(call, inputs),
            Effect::StartTimer { id, after } => self.running.timers.start(id, after),
            Effect::Log { kind, observed_by } => self.record(kind, observed_by)?,
            Effect::Show(kind) => self.show(kind),
            Effect::Finish(end) => self.rest(end)?,
        }
        Ok(())
    }

    /// Sends a call to the worker; what may write waits until the base is taken and the tripwire set, and so does what
    /// follows it.
    fn dispatch(&mut self, call: CallId, tool: ToolCall) {
        if self.is_preparing() && (tool.may_write() || !self.running.held.is_empty()) {
            self.running.held.push_back((call, tool));
        } else {
            self.send(call, tool);
        }
    }

    fn is_preparing(&self) -> bool {
        self.changes.as_ref().is_some_and(ChangeTracker::base_is_open)
            || self.tripwire.as_ref().is_some_and(Guard::is_setting)
    }

    fn send(&mut self, call: CallId, tool: ToolCall) {
        let _span = info_span!("call", id = %call, generation = %self.worker.generation()).entered();
        tracing::debug!(tool = tool.name(), "dispatched");
        self.running.calls.insert(call, Instant::now());
        if let Some(guard) = &mut self.tripwire {
            guard.sent(call, &tool);
        }
        self.worker.call(call, Work::Run(tool));
    }

    pub(super) fn release(&mut self) -> Result<(), DriverError> {
        for note in self.changes.as_mut().map(ChangeTracker::take_notes).unwrap_or_default() {
            self.notice("change_set", &note)?;
        }
        while !self.is_preparing()
            && let Some((call, tool)) = self.running.held.pop_front()
        {
            self.send(call, tool);
        }
        Ok(())
    }

    fn replace_worker(&mut self, rights: Rights) {
        let confinement = Confinement { rights, ..self.worker.confinement().clone() };
        self.worker.replace(Ok(confinement));
    }

    fn cancel(&mut self, call: CallId, inputs: &mut VecDeque<Input>) {
        let held = self.running.held.len();
        self.running.held.retain(|(waiting, _)| *waiting != call);
        let unsent = self.running.held.len() < held || self.worker.cancel(call) == Cancelled::BeforeItWasSent;
        if unsent {
            inputs.push_back(Input::CallFinished { call, outcome: Outcome::Cancelled, duration_ms: 0 });
        }
    }
}
