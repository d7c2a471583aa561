//! Carrying out what the core decided.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use ipc::id::CallId;
use ipc::message::{Outcome, Work};
use ipc::rights::Grant;
use ipc::tool::ToolCall;
use tracing::info_span;

use super::workers::Cancelled;
use super::{ChangeTracker, Driver, DriverError, Guard};
use crate::core::{Effect, Input};

/// What begins when the base is taken and the tripwire set.
pub(super) enum Held {
    /// A call of the standing worker.
    Run(ToolCall),
    /// An approved effect.
    CarryOut(Arc<ipc::effect::Effect>, Grant),
}

impl Held {
    const fn may_write(&self) -> bool {
        match self {
            Self::Run(tool) => tool.may_write(),
            Self::CarryOut(..) => true,
        }
    }
}

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
            Effect::Dispatch { call, tool } => self.hold_or_begin(call, Held::Run(tool)),
            Effect::Prepare { call, tool } => self.prepare(call, tool),
            Effect::RequestApproval { id, request } => inputs.extend(self.request_approval(id, request)?),
            Effect::CloseApproval(id) => self.close_approval(id),
            Effect::CarryOut { call, effect, grant } => {
                self.hold_or_begin(call, Held::CarryOut(effect, grant));
            }
            Effect::ReplaceWorker { rights } => self.replace_worker(rights)?,
            Effect::CancelCall(call) => self.cancel(call, inputs),
            Effect::StartTimer { id, after } => self.running.timers.start(id, after),
            Effect::Log { kind, observed_by } => self.record(kind, observed_by)?,
            Effect::Show(kind) => self.show(kind),
            Effect::Finish(end) => self.rest(end)?,
        }
        Ok(())
    }

    /// Begins a call; what may write waits until the base is taken and the tripwire set, and so does what follows it.
    fn hold_or_begin(&mut self, call: CallId, held: Held) {
        if self.is_preparing() && (held.may_write() || !self.running.held.is_empty()) {
            self.running.held.push_back((call, held));
        } else {
            self.begin(call, held);
        }
    }

    fn begin(&mut self, call: CallId, held: Held) {
        match held {
            Held::Run(tool) => self.send(call, tool),
            Held::CarryOut(effect, grant) => self.carry_out(call, effect, grant),
        }
    }

    /// A worker that prepares changes nothing, and waits for nothing.
    fn prepare(&mut self, call: CallId, tool: ToolCall) {
        self.running.calls.insert(call, Instant::now());
        self.running.preparations.begin(call, tool.clone());
        self.worker.call(call, Work::Prepare(tool));
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
            && let Some((call, held)) = self.running.held.pop_front()
        {
            self.begin(call, held);
        }
        Ok(())
    }

    fn cancel(&mut self, call: CallId, inputs: &mut VecDeque<Input>) {
        self.running.preparations.forget(call);
        if self.running.one_shots.cancel(call) {
            return;
        }
        let held = self.running.held.len();
        self.running.held.retain(|(waiting, _)| *waiting != call);
        let unsent = self.running.held.len() < held || self.worker.cancel(call) == Cancelled::BeforeItWasSent;
        if unsent {
            inputs.push_back(Input::CallFinished { call, outcome: Outcome::Cancelled, duration_ms: 0 });
        }
    }
}
