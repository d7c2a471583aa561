//! Effects that the core orders, each passed to the value that carries it out.

use std::collections::VecDeque;
use std::sync::Arc;

use agent::core::{Effect, Input};
use gate::activity::Activity;
use ipc::confinement::Confinement;
use ipc::id::CallId;
use ipc::message::{CallOutcome, Work};
use ipc::rights::Grant;
use protocol::event::{EventKind, NoticeCode};
use tracing::info_span;

use super::super::calls::{CallPlace, Held};
use super::super::flushes::After;
use super::super::one_shot::OneShot;
use super::super::tree_order::TreeOrder;
use super::super::worker::Cancelled;
use super::super::{ChangeTracker, SessionError, Shared, TripwireWatch};
use super::AgentRun;
use super::end::{add_below, without_plan};
use crate::journal::session::LogError;
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
            Effect::StartTimer { id, after } => self.timers.start(id, after),
            Effect::Dispatch { call, tool } => self.dispatch(shared, call, Held::Run(tool))?,
            Effect::CarryOut { call, effect, grant } => {
                self.dispatch(shared, call, Held::CarryOut(effect, grant))?;
            }
            // A preparation changes no files, so that it need not wait.
            Effect::Prepare { call, tool } => {
                self.calls.prepare(call, tool.clone());
                self.worker.call(call, Work::Prepare(tool));
            }
            Effect::Locate { call, path } => self.calls.locate(call, path),
            Effect::Serve { call, served, timeout } => {
                let confinement = self.worker.confinement().clone();
                self.calls.fetch_by(self.worker.boundary(), confinement, self.guests.log().clone());
                if self.calls.serve(self.sink.agent(), call, served, timeout) {
                    self.flushes.push(shared.flush(), After::Serve(call));
                }
            }
            Effect::SpawnAgent { call, agent } => match self.calls.spawn(call, agent) {
                Some(agent) => shared.order_start(self.sink.agent(), call, agent),
                None => self.flushes.push(shared.flush(), After::Spawn(call)),
            },
            Effect::CancelCall(call) => inputs.extend(self.cancel(shared, call)),
            Effect::RequestApproval { id, request } => {
                inputs.extend(self.approvals.request(
                    shared,
                    &mut self.sink,
                    &mut self.flushes,
                    id,
                    request,
                )?);
            }
            Effect::CloseApproval(id) => self.approvals.close(shared, &mut self.sink, id),
            Effect::AnswerHost { id, allowed } => self.approvals.answer_host(id, allowed),
            Effect::AnswerForm { id, answer } => self.calls.answer_form(id, answer),
            Effect::Keep(setting) => {
                let text = shared.keep(&setting);
                self.sink.notice(shared, NoticeCode::Settings, &text)?;
            }
            Effect::ReplaceWorker { rights } => {
                shared.rights_changed = true;
                let confined = self.modes.confine_next(shared, self.worker.confinement(), rights)?;
                self.worker.replace(Ok(confined));
            }
            Effect::Log { kind, observed_by } => self.sink.record(shared, kind, observed_by)?,
            Effect::Show(kind) => self.sink.show(shared, kind),
            Effect::Finish(end) => {
                shared.rest(self.sink.agent());
                let is_top_level = self.id().is_top_level();
                let owes_plan = is_top_level
                    && self.account.has_one_turn()
                    && self.agent.activity() == Activity::Plan
                    && !self.sink.has_plan();
                let mut end = if owes_plan { without_plan(end) } else { end };
                if is_top_level {
                    add_below(&mut end, shared.budget.take_below());
                }
                if let Some(finished) = self.account.end_turn(end, self.agent.is_closed()) {
                    shared.tripwire.iter_mut().for_each(TripwireWatch::end_turn);
                    self.record(shared, EventKind::TurnFinished(finished))?;
                }
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, shared: &mut Shared, call: CallId, held: Held) -> Result<(), SessionError> {
        let standing = self.worker.confinement();
        if let Some(held) = self.calls.admit(shared, &mut self.sink, standing, call, held)? {
            self.begin_call(shared, call, held);
        }
        Ok(())
    }

    /// Begins the waiting calls that can begin now, for example because a write turn is free or the tripwire is set.
    pub(in crate::engine::driver) fn release(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
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

    fn begin_call(&mut self, shared: &mut Shared, call: CallId, held: Held) {
        match held {
            Held::Run(tool) => {
                let _span = info_span!("call", id = %call, generation = %self.worker.generation()).entered();
                tracing::debug!(tool = tool.name(), "dispatched");
                self.calls.run(call, &tool, &self.worker.confinement().project);
                shared.sent(self.sink.agent(), call, &tool);
                self.worker.call(call, Work::Run(tool));
            }
            Held::CarryOut(effect, grant) => self.carry_out(call, effect, grant),
        }
    }

    /// Starts to carry out an approved effect, with the access of the standing worker and the access in `grant`.
    fn carry_out(&mut self, call: CallId, effect: Arc<ipc::effect::Effect>, grant: Grant) {
        let standing = self.worker.confinement();
        let standing = match &*effect {
            ipc::effect::Effect::Exec(_) => self.modes.approved(standing, &grant),
            ipc::effect::Effect::Patch(_) => standing.clone(),
        };
        let standing = Confinement { asks_hosts: self.agent.asks_hosts(), ..standing };
        let shot = OneShot {
            agent: self.id().clone(),
            generation: self.worker.reserve_generation(),
            standing,
            watch: self.modes.watched().cloned(),
            asked: grant.clone(),
            granted: grant,
            call: Some(call),
            effect,
            guests: self.guests.log().of_call(call),
        };
        self.calls.carry_out(call, shot, self.worker.boundary());
    }

    fn cancel(&mut self, shared: &mut Shared, call: CallId) -> Option<Input> {
        let is_unsent = match self.calls.cancel(call) {
            CallPlace::Elsewhere => return None,
            CallPlace::Held => true,
            CallPlace::Dispatched => self.worker.cancel(call) == Cancelled::BeforeItWasSent,
        };
        // The order has no effect if the call started no sub-agent.
        shared.orders.push_back(TreeOrder::End { parent: self.id().clone(), call });
        is_unsent.then_some(Input::CallFinished { call, outcome: CallOutcome::Cancelled, duration_ms: 0 })
    }

    /// Does the work that waited for a sync of the log. If the disk was full, keeps the work for the next sync.
    pub(super) fn on_flushed(
        &mut self,
        shared: &mut Shared,
        flushed: Result<(), LogError>,
        after: After,
    ) -> Result<(), SessionError> {
        // Another run may have reported the full disk already.
        if let Err(error) = flushed
            && !shared.log.is_full()
            && !shared.log.take_back(&error)?
        {
            return Err(error.into());
        }
        if shared.log.is_full() {
            self.flushes.put_back(after);
            return Ok(());
        }
        match after {
            After::Ask(id) => self.approvals.ask(shared, &mut self.sink, id),
            After::Serve(call) => self.calls.serve_approved(self.sink.agent(), call),
            After::Spawn(call) => {
                if let Some(agent) = self.calls.spawn_approved(call) {
                    shared.order_start(self.sink.agent(), call, agent);
                }
            }
            // An error means that the effect's task has ended.
            After::GoOn(logged) => drop(logged.send(())),
        }
        Ok(())
    }
}
