//! Carrying out what the core decided.

use std::collections::VecDeque;
use std::sync::Arc;

use agent::core::{Effect, EndReason, Input, NewAgent, RunEnd};
use gate::activity::Activity;
use ipc::confinement::Confinement;
use ipc::id::{AgentCall, CallId};
use ipc::message::{CallOutcome, Work};
use ipc::path::WirePath;
use ipc::rights::Grant;
use ipc::tool::{EditFile, ToolCall, WriteFile};
use protocol::event::{EventKind, NoticeCode, ObservedBy, WriteTurnAwaited, WriteTurnTaken};
use tokio::time::Instant;
use tracing::info_span;

use super::flushes::After;
use super::looks::Looks;
use super::tree::TreeOrder;
use super::worker::Cancelled;
use super::{AgentRun, ChangeTracker, SessionError, Shared, TripwireWatch, Turns, millis};
use crate::process::messages::one_line;

/// What begins when the base is taken and the tripwire set.
pub(super) enum Held {
    /// A call of the standing worker.
    Run(ToolCall),
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
            Effect::StartStream { request, model, estimate } => {
                shared.turns.give_back(self.sink.agent());
                self.stream.ask(request, model, estimate);
                inputs.extend(self.stream.fund(self.sink.agent(), &mut shared.budget));
            }
            Effect::CancelStream(request) => {
                shared.budget_freed |= shared.budget.settle(self.sink.agent());
                self.stream.cancel(request);
            }
            Effect::Dispatch { call, tool } => self.hold_or_begin(shared, call, Held::Run(tool))?,
            Effect::Prepare { call, tool } => self.prepare(call, tool),
            Effect::Locate { call, path } => self.preparations.locate(call, path),
            Effect::RequestApproval { id, request } => {
                inputs.extend(self.request_approval(shared, id, request)?);
            }
            Effect::AnswerHost { id, allowed } => self.answer_host(id, allowed),
            Effect::AnswerForm { id, answer } => self.served.answer(id, answer),
            Effect::CloseApproval(id) => self.close_approval(shared, id),
            Effect::Keep(setting) => self.keep_approval(shared, &setting)?,
            Effect::CarryOut { call, effect, grant } => {
                self.hold_or_begin(shared, call, Held::CarryOut(effect, grant))?;
            }
            Effect::Serve { call, served, timeout } => self.serve(shared, call, served, timeout),
            Effect::SpawnAgent { call, agent } => self.spawn(shared, call, agent),
            Effect::ReplaceWorker { rights } => {
                shared.rights_changed = true;
                let confined = self.modes.confine_next(shared, self.worker.confinement(), rights)?;
                self.worker.replace(Ok(confined));
            }
            Effect::CancelCall(call) => self.cancel(shared, call, inputs),
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

    /// Has a sub-agent started: one that was approved when that is on the disk.
    fn spawn(&mut self, shared: &mut Shared, call: CallId, agent: Box<NewAgent>) {
        self.begins(call);
        if agent.grant.is_empty() {
            let parent = self.sink.agent().clone();
            shared.orders.push_back(TreeOrder::Start { parent, call, agent });
        } else {
            self.unspawned.insert(call, agent);
            self.flushes.push(shared.flush(), After::Spawn(call));
        }
    }

    /// The log is on the disk: an approved sub-agent starts, unless its call was ended meanwhile.
    pub(super) fn spawn_approved(&mut self, shared: &mut Shared, call: CallId) {
        if let Some(agent) = self.unspawned.remove(&call) {
            let parent = self.sink.agent().clone();
            shared.orders.push_back(TreeOrder::Start { parent, call, agent });
        }
    }

    /// Begins a call; what may write waits until the base is taken, the tripwire set and no other agent writes the same
    /// places, and so does what follows it.
    fn hold_or_begin(&mut self, shared: &mut Shared, call: CallId, held: Held) -> Result<(), SessionError> {
        if !self.held.is_empty() || !self.may_begin(shared, call, &held)? {
            self.held.push_back((call, held));
        } else {
            self.begin_call(shared, call, held);
        }
        Ok(())
    }

    fn may_begin(&mut self, shared: &mut Shared, call: CallId, held: &Held) -> Result<bool, SessionError> {
        if !held.may_write() {
            return Ok(true);
        }
        if shared.is_preparing() || shared.log.is_full() {
            return Ok(false);
        }
        let roots = self.written_roots(held);
        if roots.is_empty() {
            return Ok(true);
        }
        if shared.looks.as_mut().is_some_and(Looks::before_a_write) {
            return Ok(false);
        }
        match shared.turns.take(self.sink.agent(), roots.clone()) {
            Ok(()) => {
                if let Some((_, since)) = self.awaits_turn.take_if(|(waiting, _)| *waiting == call) {
                    let taken = WriteTurnTaken { call, waited_ms: millis(since.elapsed()) };
                    self.sink.record(shared, EventKind::WriteTurnTaken(taken), ObservedBy::Supervisor)?;
                }
                let looks = shared
                    .written
                    .as_mut()
                    .is_some_and(|files| files.before_a_write(self.sink.agent(), &roots));
                let is_watched = match held {
                    Held::Run(_) => shared.tripwire.as_mut().is_none_or(TripwireWatch::may_begin),
                    // A one-shot watches by itself.
                    Held::CarryOut(..) => true,
                };
                Ok(!looks && is_watched && !shared.log.is_full())
            }
            Err(holders) => {
                // Said once.
                if self.awaits_turn.is_none_or(|(waiting, _)| waiting != call) {
                    self.awaits_turn = Some((call, Instant::now()));
                    let waits = EventKind::WriteTurnAwaited(WriteTurnAwaited { call, holders });
                    self.sink.record(shared, waits, ObservedBy::Supervisor)?;
                }
                Ok(false)
            }
        }
    }

    /// The places that a call may write and that other agents may write as well: all but the agent's own temp.
    fn written_roots(&self, held: &Held) -> Vec<WirePath> {
        let Confinement { rights, temp, .. } = self.worker.confinement();
        let granted = match held {
            Held::Run(_) => [].as_slice(),
            Held::CarryOut(_, grant) => grant.write.as_slice(),
        };
        let roots = rights.write.iter().chain(granted);
        roots.filter(|root| Some(*root) != temp.as_ref()).cloned().collect()
    }

    /// The files that a call is about, of a file tool; none of a command.
    fn written_files(&self, held: &Held) -> Option<Vec<WirePath>> {
        match held {
            Held::Run(
                ToolCall::WriteFile(WriteFile { path, .. }) | ToolCall::EditFile(EditFile { path, .. }),
            ) => Some(vec![self.worker.confinement().project.as_path().join(path.as_path()).into()]),
            Held::CarryOut(effect, _) => match &**effect {
                ipc::effect::Effect::Patch(patch) => {
                    Some(patch.files.iter().map(|file| file.path.clone()).collect())
                }
                ipc::effect::Effect::Exec(_) => None,
            },
            Held::Run(_) => None,
        }
    }

    fn begin_call(&mut self, shared: &mut Shared, call: CallId, held: Held) {
        if held.may_write() {
            shared.turns.begin(self.sink.agent(), call);
            let (roots, only) = (self.written_roots(&held), self.written_files(&held));
            if let Some(looks) = shared.looks.as_mut().filter(|_| !roots.is_empty()) {
                looks.call_begins(AgentCall { agent: self.sink.agent().clone(), call }, roots, only);
            }
        }
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
        shared.sent(self.sink.agent(), call, &tool);
        if let ToolCall::WriteFile(WriteFile { path, .. }) | ToolCall::EditFile(EditFile { path, .. }) = &tool
        {
            let place = self.worker.confinement().project.as_path().join(path.as_path());
            self.changing.insert(call, place.into());
        }
        self.worker.call(call, Work::Run(tool));
    }

    /// The base is taken or the tripwire set: what waited for both begins.
    pub(super) fn release(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        for note in shared.changes.as_mut().map(ChangeTracker::take_notes).unwrap_or_default() {
            self.sink.notice(shared, NoticeCode::ChangeSet, &one_line(&note))?;
        }
        while let Some((call, held)) = self.held.pop_front() {
            if !self.may_begin(shared, call, &held)? {
                self.held.push_front((call, held));
                break;
            }
            self.begin_call(shared, call, held);
        }
        Ok(())
    }

    fn cancel(&mut self, shared: &mut Shared, call: CallId, inputs: &mut VecDeque<Input>) {
        self.preparations.forget(call);
        self.progress.end(call);
        if self.one_shots.cancel(call) || self.served.cancel(call) || self.unspawned.remove(&call).is_some() {
            return;
        }
        // Nothing happens where the call started no sub-agent.
        shared.orders.push_back(TreeOrder::End { parent: self.sink.agent().clone(), call });
        let held = self.held.len();
        self.held.retain(|(waiting, _)| *waiting != call);
        let unsent = self.held.len() < held || self.worker.cancel(call) == Cancelled::BeforeItWasSent;
        if unsent {
            inputs.push_back(Input::CallFinished { call, outcome: CallOutcome::Cancelled, duration_ms: 0 });
        }
    }
}
