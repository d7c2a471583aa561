//! Carrying out what the core decided.

use std::collections::VecDeque;
use std::time::Duration;

use agent::core::{Effect, EndReason, Input, NewAgent, RunEnd};
use gate::activity::Activity;
use gate::tools::ServedCall;
use ipc::id::CallId;
use ipc::message::{CallOutcome, Work};
use protocol::event::NoticeCode;
use tracing::info_span;

use super::calls::{CallPlace, Held};
use super::flushes::After;
use super::tree::TreeOrder;
use super::worker::Cancelled;
use super::{AgentRun, ChangeTracker, SessionError, Shared, Turns};
use crate::process::messages::one_line;

impl AgentRun {
    pub(super) fn execute(
        &mut self,
        shared: &mut Shared,
        effect: Effect,
        inputs: &mut VecDeque<Input>,
    ) -> Result<(), SessionError> {
        match effect {
            Effect::StartStream { request, model, estimate } => {
                shared.turns.give_back(self.sink.agent());
                self.stream.ask(request, model, estimate);
                inputs.extend(self.stream.fund(self.sink.agent(), &mut shared.budget));
            }
            Effect::CancelStream(request) => {
                shared.budget_freed |= shared.budget.settle(self.sink.agent());
                self.stream.cancel(request);
            }
            Effect::Dispatch { call, tool } => self.dispatch(shared, call, Held::Run(tool))?,
            // A worker that prepares changes nothing, and waits for nothing.
            Effect::Prepare { call, tool } => {
                self.calls.prepare(call, tool.clone(), self.output_bytes());
                self.worker.call(call, Work::Prepare(tool));
            }
            Effect::Locate { call, path } => self.calls.locate(call, path),
            Effect::RequestApproval { id, request } => {
                inputs.extend(self.request_approval(shared, id, request)?);
            }
            Effect::AnswerHost { id, allowed } => self.answer_host(id, allowed),
            Effect::AnswerForm { id, answer } => self.calls.answer_form(id, answer),
            Effect::CloseApproval(id) => self.close_approval(shared, id),
            Effect::Keep(setting) => self.keep_approval(shared, &setting)?,
            Effect::CarryOut { call, effect, grant } => {
                self.dispatch(shared, call, Held::CarryOut(effect, grant))?;
            }
            Effect::Serve { call, served, timeout } => self.serve(shared, call, served, timeout),
            Effect::SpawnAgent { call, agent } => match self.calls.spawn(call, agent, self.output_bytes()) {
                Some(agent) => self.order_start(shared, call, agent),
                None => self.flushes.push(shared.flush(), After::Spawn(call)),
            },
            Effect::ReplaceWorker { rights } => {
                shared.rights_changed = true;
                let confined = self.modes.confine_next(shared, self.worker.confinement(), rights)?;
                self.worker.replace(Ok(confined));
            }
            Effect::CancelCall(call) => inputs.extend(self.cancel(shared, call)),
            Effect::StartTimer { id, after } => self.timers.start(id, after),
            Effect::Log { kind, observed_by } => self.sink.record(shared, kind, observed_by)?,
            Effect::Show(kind) => self.sink.show(shared, kind),
            Effect::Finish(end) => {
                shared.rest(self.sink.agent());
                self.rest(shared, self.without_plan(end))?;
            }
        }
        Ok(())
    }

    /// The end of a run that was to make a plan: without one it is no success, since a script looks for the path of
    /// its file.
    fn without_plan(&self, end: RunEnd) -> RunEnd {
        let was_due = self.turns == Turns::One
            && self.sink.agent().is_top_level()
            && self.agent.activity() == Activity::Plan
            && end.reason == EndReason::Done;
        if !was_due || self.sink.has_plan() {
            return end;
        }
        let message = "no plan was written: the agent ended its turn without one".to_owned();
        RunEnd { reason: EndReason::GaveUp, message: Some(message), ..end }
    }

    /// Another agent's request has settled: perhaps this one's may go out.
    pub(super) fn ask_for_budget(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let input = self.stream.fund(self.sink.agent(), &mut shared.budget);
        input.map_or(Ok(()), |input| self.feed(shared, input))
    }

    /// Has a sub-agent started.
    pub(super) fn order_start(&self, shared: &mut Shared, call: CallId, agent: Box<NewAgent>) {
        let parent = self.sink.agent().clone();
        shared.orders.push_back(TreeOrder::Start { parent, call, agent });
    }

    /// Bound on the output of one call.
    pub(super) fn output_bytes(&self) -> u64 {
        self.agent.standing().rights.limits.output_bytes
    }

    /// Has a call served: one that was approved when that is on the disk.
    fn serve(&mut self, shared: &mut Shared, call: CallId, wanted: ServedCall, longest: Duration) {
        let confinement = self.worker.confinement().clone();
        self.calls.fetch_by(self.worker.boundary(), confinement, self.guests.log().clone());
        if self.calls.serve(self.sink.agent(), call, wanted, longest, self.output_bytes()) {
            self.flushes.push(shared.flush(), After::Serve(call));
        }
    }

    /// Begins a call, or has it wait.
    fn dispatch(&mut self, shared: &mut Shared, call: CallId, held: Held) -> Result<(), SessionError> {
        let standing = self.worker.confinement();
        if let Some(held) = self.calls.admit(shared, &mut self.sink, standing, call, held)? {
            self.begin_call(shared, call, held);
        }
        Ok(())
    }

    fn begin_call(&mut self, shared: &mut Shared, call: CallId, held: Held) {
        match held {
            Held::Run(tool) => {
                let _span = info_span!("call", id = %call, generation = %self.worker.generation()).entered();
                tracing::debug!(tool = tool.name(), "dispatched");
                let project = &self.worker.confinement().project;
                self.calls.run(call, &tool, project, self.output_bytes());
                shared.sent(self.sink.agent(), call, &tool);
                self.worker.call(call, Work::Run(tool));
            }
            Held::CarryOut(effect, grant) => self.carry_out(call, effect, grant),
        }
    }

    /// The base is taken or the tripwire set: what waited for both begins.
    pub(super) fn release(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        for note in shared.changes.as_mut().map(ChangeTracker::take_notes).unwrap_or_default() {
            self.sink.notice(shared, NoticeCode::ChangeSet, &one_line(&note))?;
        }
        while let Some((call, held)) =
            self.calls.next_admitted(shared, &mut self.sink, self.worker.confinement())?
        {
            self.begin_call(shared, call, held);
        }
        Ok(())
    }

    fn cancel(&mut self, shared: &mut Shared, call: CallId) -> Option<Input> {
        let place = if self.one_shots.cancel(call) { CallPlace::Elsewhere } else { self.calls.cancel(call) };
        let is_unsent = match place {
            CallPlace::Elsewhere => return None,
            CallPlace::Held => true,
            CallPlace::Dispatched => self.worker.cancel(call) == Cancelled::BeforeItWasSent,
        };
        // Nothing happens where the call started no sub-agent.
        shared.orders.push_back(TreeOrder::End { parent: self.sink.agent().clone(), call });
        is_unsent.then_some(Input::CallFinished { call, outcome: CallOutcome::Cancelled, duration_ms: 0 })
    }
}
