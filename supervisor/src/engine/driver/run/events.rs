//! Updates from the worker, other calls and the session. They are handled here, and converted to inputs for the core.

use agent::core::{ContextItem, EndReason, Input, ReadyWorker};
use agent::prompt::environment_context;
use boundary::monitor::WorkerEvent;
use gate::Change;
use ipc::id::{ApprovalId, CallId, Generation};
use ipc::message::{CallOutcome, Chunk};
use protocol::approval::ApprovalAnswer;
use protocol::event::{EventKind, NoticeCode, SessionEvent};
use protocol::frontend::{AgentAction, Op, UiEventKind};
use protocol::server_prompt::WantedPrompt;

use super::super::actions::{begins_turn, resolved, warning};
use super::super::calls::CallUpdate;
use super::super::flushes::After;
use super::super::one_shots::OneShotUpdate;
use super::super::own_calls::{CallOrigin, OwnOrder, ProjectWords};
use super::super::started::{lost_with, worker_started};
use super::super::tripwire::{TripwireCheck, events, remark};
use super::super::worker::WorkerUpdate;
use super::super::{SessionError, Shared};
use super::AgentRun;

const USERS: &str = "the user's AGENTS.md";

pub(in crate::engine::driver) enum Request {
    Act(AgentAction),
    /// An answer to an approval request; `for_us` is true if the answer names this session.
    Answer {
        id: ApprovalId,
        answer: ApprovalAnswer,
        for_us: bool,
    },
    ChangeModel(String),
    ListFiles,
    FindBranch,
    ExpandPrompt(WantedPrompt),
    TakeBack(Change),
    /// Part of the budget was released by another agent, so that the waiting request of this agent may be allowed.
    AskForBudget,
    /// Result of a check by the tripwire after a call of the agent.
    TakeCheck(TripwireCheck),
}

impl AgentRun {
    pub(in crate::engine::driver) fn take(
        &mut self,
        shared: &mut Shared,
        request: Request,
    ) -> Result<(), SessionError> {
        match request {
            Request::Act(action) => self.act(shared, action),
            Request::Answer { id, answer, for_us } => self
                .approvals
                .answer(id, answer, for_us)
                .or_else(|why| self.sink.notice(shared, NoticeCode::ApprovalIgnored, &why)),
            Request::ChangeModel(name) => {
                let models =
                    self.models.as_ref().ok_or_else(|| "this session can use only one model".to_owned());
                match models.and_then(|models| models.choose(&name)) {
                    Ok(choice) => self.feed(shared, Input::Model(Box::new(choice))),
                    Err(why) => {
                        let message = format!("cannot change the model: {why}");
                        self.sink.notice(shared, NoticeCode::ModelRefused, &message)
                    }
                }
            }
            Request::ListFiles => {
                let orders = self.own_calls.list_files();
                self.do_own(shared, orders)
            }
            Request::FindBranch => {
                let order = self.own_calls.find_branch();
                self.do_own(shared, order)
            }
            Request::ExpandPrompt(wanted) => {
                self.calls.expand(wanted);
                Ok(())
            }
            Request::TakeBack(change) => {
                self.calls.take_back(&change);
                let has_plan = self.agent.planning().is_some() || self.agent.execution().is_some();
                if has_plan { self.feed(shared, Input::TakenBack(change)) } else { Ok(()) }
            }
            Request::AskForBudget => {
                let input = self.stream.fund(self.sink.agent(), &mut shared.budget);
                input.map_or(Ok(()), |input| self.feed(shared, input))
            }
            Request::TakeCheck(TripwireCheck { after, beside, report }) => {
                let call = after.call;
                if let Some(text) = remark(&beside, &report.changes) {
                    self.feed(shared, Input::Remark { call, text })?;
                }
                for event in events(Some(call), &beside, report) {
                    self.record(shared, event)?;
                }
                self.calls.checked(call).map_or(Ok(()), |input| self.feed(shared, input))
            }
        }
    }

    fn act(&mut self, shared: &mut Shared, action: AgentAction) -> Result<(), SessionError> {
        match resolved(self.worker.confinement().project.as_path(), action) {
            Ok(action) => {
                if let Some(warning) = warning(&action) {
                    self.sink.notice(shared, NoticeCode::Settings, &warning)?;
                }
                if begins_turn(&action) && !self.agent.is_busy() {
                    self.account.begin_turn();
                    shared.begin_turn(self.sink.agent());
                }
                self.feed(shared, Input::Op(Op::Act(action)))
            }
            Err(why) => {
                let message = format!("the access was not changed: {why}");
                self.sink.notice(shared, NoticeCode::RightsRefused, &message)
            }
        }
    }

    /// Rewinds the agent's conversation to `conversation`, the remaining events; `None` leaves the conversation as it
    /// is. Shows the event `rewound`. The model gets the text `told`.
    pub(in crate::engine::driver) fn rewind(
        &mut self,
        shared: &mut Shared,
        rewound: UiEventKind,
        conversation: Option<&[SessionEvent]>,
        told: String,
    ) -> Result<(), SessionError> {
        self.sink.show(shared, rewound);
        match self.agent.rewind(conversation, told) {
            Some(tasks) => self.record(shared, tasks),
            None => Ok(()),
        }
    }

    /// Handles an update from the worker. Returns an input for the core; `None` if the core needs none.
    pub(super) fn on_worker(
        &mut self,
        shared: &mut Shared,
        update: WorkerUpdate,
    ) -> Result<Option<Input>, SessionError> {
        match update {
            WorkerUpdate::Started => self.worker_is_ready(shared)?,
            WorkerUpdate::NotStarted(error, _)
                if self.own_calls.awaits_worker() && !self.worker.is_closed() =>
            {
                self.own_calls.cannot_start();
                let message = error.code().mark(&error.to_string());
                return Ok(Some(Input::Broken { reason: EndReason::NoSandbox, message }));
            }
            WorkerUpdate::NotStarted(error, calls) => {
                let reason = format!("no worker could be started: {error}");
                if self.worker.is_closed() {
                    self.feed(shared, Input::NotReplaced { reason: error.to_string() })?;
                    let begin = self.own_calls.not_replaced();
                    self.do_own(shared, begin)?;
                } else {
                    self.sink.notice(shared, NoticeCode::NoWorker, &reason)?;
                }
                self.lose(shared, calls, &reason)?;
            }
            WorkerUpdate::Closed { reason, calls } => self.lose(shared, calls, &reason)?,
            WorkerUpdate::Event { generation, event } => {
                return self.on_worker_event(shared, generation, event);
            }
        }
        Ok(None)
    }

    fn on_worker_event(
        &mut self,
        shared: &mut Shared,
        generation: Generation,
        event: WorkerEvent,
    ) -> Result<Option<Input>, SessionError> {
        match event {
            WorkerEvent::Output { call, chunk: Chunk::Text(bytes) } => {
                if let Some(output) = self.calls.printed(call, &bytes) {
                    self.sink.show(shared, output);
                }
            }
            WorkerEvent::Output { call, chunk: Chunk::Entries(entries) } => {
                if let Some(CallOrigin::Own(call)) = CallOrigin::of(call) {
                    let orders = self.own_calls.entries(call, entries);
                    self.do_own(shared, orders)?;
                }
            }
            WorkerEvent::Outcome { call, outcome } => match CallOrigin::of(call) {
                Some(CallOrigin::Model(call)) => {
                    return Ok(self.calls.answered(shared, self.sink.agent(), call, outcome));
                }
                Some(CallOrigin::Own(call)) => {
                    let orders = self.own_calls.answered(call, &outcome);
                    self.do_own(shared, orders)?;
                }
                // The standing worker has no such call.
                Some(CallOrigin::Rewind) | None => {}
            },
            WorkerEvent::Ended { reason, violation, open } => {
                self.live.withdraw();
                if let Some(violation) = violation {
                    self.record(shared, EventKind::ProtocolViolation { generation, violation })?;
                }
                let ended = EventKind::WorkerEnded { generation, reason: reason.clone().into() };
                self.record(shared, ended)?;
                self.lose(shared, open, &lost_with(&reason))?;
                let begin = self.own_calls.worker_ended(self.worker.is_being_replaced());
                self.do_own(shared, begin)?;
            }
            WorkerEvent::Refused(refused) => return Ok(Some(Input::Refused(refused))),
            WorkerEvent::HostAsked(question) => {
                return Ok(Some(self.approvals.ask_host(generation, None, question)));
            }
            WorkerEvent::HostsUsed(uses) => {
                self.record(shared, EventKind::HostsUsed { generation, uses })?;
            }
            WorkerEvent::Prepared { call, part } => self.calls.take_part(call, part),
            // The worker connection rejects output that does not fit the call.
            WorkerEvent::Output { .. } => {}
        }
        Ok(None)
    }

    fn worker_is_ready(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        let Some(worker) = self.worker.serving() else { return Ok(()) };
        let started = worker_started(worker, self.worker.confinement());
        let ready = ReadyWorker {
            generation: worker.generation,
            pid: worker.pid,
            tier: worker.ruleset.tier,
            rights_digest: started.rights_digest.clone(),
            ruleset_digest: started.ruleset_digest.clone(),
        };
        let digest = started.ruleset_digest.clone();
        self.record(shared, EventKind::WorkerStarted(started))?;
        self.feed(shared, Input::WorkerReady(ready))?;
        self.live.publish(&shared.conversation, &self.worker, self.agent.standing(), digest);
        let project = self.agent.host_standing().project();
        let orders = self.own_calls.worker_is_ready(self.sink.agent().is_top_level(), project);
        self.do_own(shared, orders)
    }

    fn lose(&mut self, shared: &mut Shared, calls: Vec<CallId>, reason: &str) -> Result<(), SessionError> {
        for call in calls {
            match CallOrigin::of(call) {
                Some(CallOrigin::Model(call)) => {
                    if let Some(input) = self.calls.lost(shared, self.sink.agent(), call, reason) {
                        self.feed(shared, input)?;
                    }
                }
                Some(CallOrigin::Own(call)) => {
                    let shown = self.own_calls.lost(call, reason);
                    self.do_own(shared, shown)?;
                }
                Some(CallOrigin::Rewind) | None => {}
            }
        }
        Ok(())
    }

    pub(super) fn do_own(
        &mut self,
        shared: &mut Shared,
        orders: impl IntoIterator<Item = OwnOrder>,
    ) -> Result<(), SessionError> {
        for order in orders {
            match order {
                OwnOrder::Send(call, work) => self.worker.call(call.id(), work),
                OwnOrder::Cancel(call) => _ = self.worker.cancel(call.id()),
                OwnOrder::Show(kind) => self.sink.show(shared, kind),
                OwnOrder::Remark(text) => self.sink.notice(shared, NoticeCode::NoInstructions, &text)?,
                OwnOrder::ReplaceWorker => self.worker.replace(Ok(self.worker.watched().clone())),
                OwnOrder::Begin(words) => self.tell_place(shared, words)?,
            }
        }
        Ok(())
    }

    /// Passes the agent's environment and instructions to the core, and remarks about unread files to the user.
    fn tell_place(&mut self, shared: &mut Shared, words: ProjectWords) -> Result<(), SessionError> {
        let text = environment_context(&self.surroundings, self.agent.standing());
        let mut items = vec![ContextItem { source: "environment".to_owned(), text }];
        let users = self.surroundings.instructions.clone();
        items.extend(users.map(|text| ContextItem { source: USERS.to_owned(), text }));
        items.extend(words.items);
        for remark in words.remarks {
            self.sink.notice(shared, NoticeCode::NoInstructions, &remark)?;
        }
        self.feed(shared, Input::Context(items))
    }

    /// Handles an update of a call that no worker serves. Returns an input for the core; `None` if it needs none.
    pub(super) fn on_call(
        &mut self,
        shared: &mut Shared,
        update: CallUpdate,
    ) -> Result<Option<Input>, SessionError> {
        let told = match update {
            CallUpdate::Input(input) => return Ok(Some(input)),
            CallUpdate::Show(kind) => {
                self.sink.show(shared, kind);
                return Ok(None);
            }
            CallUpdate::Record(kind) => {
                self.record(shared, kind)?;
                return Ok(None);
            }
            CallUpdate::OneShot(told) => told,
        };
        match told {
            OneShotUpdate::Log { kind, logged } => {
                let starts = matches!(kind, EventKind::WorkerStarted(_));
                self.record(shared, kind)?;
                if starts {
                    // The effect follows, so the approval has to be on the disk first.
                    self.flushes.push(shared.flush(), After::GoOn(logged));
                } else {
                    let _ = logged.send(());
                }
            }
            OneShotUpdate::Output { call, bytes } => {
                if let Some(output) = self.calls.printed(call, &bytes) {
                    self.sink.show(shared, output);
                }
            }
            OneShotUpdate::Number(number) => {
                let _ = number.send(self.worker.reserve_generation());
            }
            OneShotUpdate::HostAsked { call, generation, question } => {
                return Ok(Some(self.approvals.ask_host(generation, Some(call), question)));
            }
            OneShotUpdate::Remark { call, text } => return Ok(Some(Input::Remark { call, text })),
            OneShotUpdate::Finished { call, outcome, brought } => {
                if brought {
                    self.worker.renew();
                }
                let (duration_ms, files) = self.calls.finish_one_shot(call);
                if let (Some(files), Ok(CallOutcome::Done(_))) = (files, &outcome) {
                    shared.accept(self.modes.watched(), files);
                }
                return Ok(Some(Input::OneShotFinished { call, outcome, duration_ms }));
            }
        }
        Ok(None)
    }
}
