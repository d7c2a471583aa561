//! Carrying out what the core decided.

use std::collections::VecDeque;
use std::sync::Arc;

use ipc::id::CallId;
use ipc::message::{Outcome, Work};
use ipc::rights::Grant;
use ipc::tool::ToolCall;
use tracing::info_span;

use super::workers::Cancelled;
use super::{AgentRun, ChangeTracker, SessionError, Shared};
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

impl AgentRun {
    pub(super) fn execute(
        &mut self,
        shared: &mut Shared,
        effect: Effect,
        inputs: &mut VecDeque<Input>,
    ) -> Result<(), SessionError> {
        match effect {
            Effect::StartStream { request, model } => {
                self.stream = Some((request, self.provider.stream(model)));
            }
            Effect::CancelStream(request) => {
                if self.stream.as_ref().is_some_and(|(running, _)| *running == request) {
                    self.stream = None;
                }
            }
            Effect::Dispatch { call, tool } => self.hold_or_begin(shared, call, Held::Run(tool)),
            Effect::Prepare { call, tool } => self.prepare(call, tool),
            Effect::RequestApproval { id, request } => {
                inputs.extend(self.request_approval(shared, id, request)?);
            }
            Effect::CloseApproval(id) => self.close_approval(shared, id),
            Effect::CarryOut { call, effect, grant } => {
                self.hold_or_begin(shared, call, Held::CarryOut(effect, grant));
            }
            Effect::Serve { call, served, timeout } => self.serve(shared, call, served, timeout),
            Effect::ReplaceWorker { rights } => self.replace_worker(shared, rights)?,
            Effect::CancelCall(call) => self.cancel(call, inputs),
            Effect::StartTimer { id, after } => self.timers.start(id, after),
            Effect::Log { kind, observed_by } => self.record(shared, kind, observed_by)?,
            Effect::Show(kind) => self.show(shared, kind),
            Effect::Finish(end) => self.rest(shared, end)?,
        }
        Ok(())
    }

    /// Begins a call; what may write waits until the base is taken and the tripwire set, and so does what follows it.
    fn hold_or_begin(&mut self, shared: &mut Shared, call: CallId, held: Held) {
        if shared.is_preparing() && (held.may_write() || !self.held.is_empty()) {
            self.held.push_back((call, held));
        } else {
            self.begin_call(shared, call, held);
        }
    }

    fn begin_call(&mut self, shared: &mut Shared, call: CallId, held: Held) {
        match held {
            Held::Run(tool) => self.send(shared, call, tool),
            Held::CarryOut(effect, grant) => self.carry_out(call, effect, grant),
        }
    }

    /// A worker that prepares changes nothing, and waits for nothing.
    fn prepare(&mut self, call: CallId, tool: ToolCall) {
        self.begins(call);
        self.preparations.begin(call, tool.clone());
        self.worker.call(call, Work::Prepare(tool));
    }

    fn send(&mut self, shared: &mut Shared, call: CallId, tool: ToolCall) {
        let _span = info_span!("call", id = %call, generation = %self.worker.generation()).entered();
        tracing::debug!(tool = tool.name(), "dispatched");
        self.begins(call);
        shared.sent(&self.id, call, &tool);
        self.worker.call(call, Work::Run(tool));
    }

    /// The base is taken or the tripwire set: what waited for both begins.
    pub(super) fn release(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        for note in shared.changes.as_mut().map(ChangeTracker::take_notes).unwrap_or_default() {
            self.notice(shared, "change_set", &note)?;
        }
        while !shared.is_preparing()
            && let Some((call, held)) = self.held.pop_front()
        {
            self.begin_call(shared, call, held);
        }
        Ok(())
    }

    fn cancel(&mut self, call: CallId, inputs: &mut VecDeque<Input>) {
        self.preparations.forget(call);
        self.progress.end(call);
        if self.one_shots.cancel(call) || self.served.cancel(call) {
            return;
        }
        let held = self.held.len();
        self.held.retain(|(waiting, _)| *waiting != call);
        let unsent = self.held.len() < held || self.worker.cancel(call) == Cancelled::BeforeItWasSent;
        if unsent {
            inputs.push_back(Input::CallFinished { call, outcome: Outcome::Cancelled, duration_ms: 0 });
        }
    }
}
