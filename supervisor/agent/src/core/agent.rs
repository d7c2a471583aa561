use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use gate::activity::Activity;
use gate::approval::JudgedAnswer;
use gate::modes::{Position, Rank};
use gate::{Change, StandingRights};
use ipc::id::{AgentId, CallId};
use ipc::rights::Rights;
use protocol::event::{CompactionCause, PromptFixed};
use protocol::frontend::{AgentAction, Op};

use super::calls::{Bounds, CallEnd, Calls, Charter};
use super::conversation::{Conversation, ConversationSettings, Then, UserSaid, fixed_tokens};
use super::end::Ending;
use super::outbox::Outbox;
use super::phase::Phase;
use super::rights::RightsState;
use super::tariff::Tariff;
use super::turn::{Turn, TurnSettings};
use super::{AgentConfig, Effect, EndReason, Execution, Input, Planning};

/// One agent: four state machines, and the effects of the current input.
pub struct Agent {
    id: AgentId,
    pub(super) conversation: Conversation,
    pub(super) turn: Turn,
    pub(super) calls: Calls,
    pub(super) rights: RightsState,
    pub(super) out: Outbox,
}

/// Prints the state on which later behaviour depends, and nothing else: agents with equal output behave equally.
impl Debug for Agent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let instructions = self.conversation.instructions().iter();
        let instructions: Vec<_> = instructions.map(|item| (&item.source, &item.text)).collect();
        let (last_call, last_approval) = self.calls.last_ids();
        f.debug_struct("Agent")
            .field("messages", &self.conversation.messages())
            .field("last_call", &last_call)
            .field("last_approval", &last_approval)
            .field("grants", self.rights.grants())
            .field("instructions", &instructions)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// Returns an agent that waits for its first turn.
    pub fn new(config: AgentConfig) -> Self {
        let conversation = Conversation::new(ConversationSettings {
            window: config.window,
            max_tokens: config.max_tokens,
            fixed: fixed_tokens(&config.system, &config.tools),
            sees_images: config.sees_images,
            surroundings: config.surroundings,
            demand: config.answer.as_ref().map(|answer| answer.demand().to_owned()),
            project: config.standing.project().clone(),
        });
        let rank = if config.id.is_top_level() { Rank::Top } else { Rank::Sub };
        let standing = config.standing.with_confirm_shell(config.approvals.confirm_shell);
        let rights = RightsState::new(standing, Position { activity: config.activity, rank });
        let charter = Charter {
            conversation: config.conversation,
            agent: config.id.clone(),
            tools: Arc::clone(&config.tools),
            approvals: config.approvals,
        };
        let turn = Turn::new(TurnSettings {
            model: config.model,
            system: config.system,
            tools: config.tools,
            options: config.options,
            tariff: Tariff(config.prices),
            limits: config.limits,
            backoff: config.backoff,
            answer: config.answer,
            fails_when_denied: config.fails_when_denied,
        });
        Self {
            id: config.id,
            conversation,
            turn,
            calls: Calls::new(charter, config.planning, config.execution),
            rights,
            out: Outbox::default(),
        }
    }

    /// Delays the first turn until the first [`Input::Context`].
    #[must_use]
    pub fn starting(mut self) -> Self {
        self.turn.wait_for_start();
        self
    }

    pub const fn id(&self) -> &AgentId {
        &self.id
    }

    pub fn handle(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Op(Op::Act(action)) => self.on_action(action),
            Input::Op(Op::Answer { id, kind, decision, digest }) => {
                let answer = JudgedAnswer { kind, decision, digest };
                self.ask_calls(|calls, bounds, out| calls.on_answer(id, answer, bounds, out));
            }
            Input::Model(choice) => {
                let (window, max_tokens, sees_images) =
                    (choice.window, choice.max_tokens, choice.sees_images);
                if let Some(from) = self.turn.change_model(*choice, &mut self.out) {
                    let new_context = self.conversation.change_model(window, max_tokens, sees_images);
                    self.turn.log_model(from, new_context, window, &mut self.out);
                }
            }
            Input::Context(items) => {
                self.conversation.add_context(items, self.turn.start(), &mut self.out);
                if self.turn.takes_start() {
                    self.begin_step();
                }
            }
            Input::Stream { request, event } => self.on_stream(request, event),
            Input::StreamFailed { request, error } => {
                if let Some(has_begun) = self.turn.had_begun(request) {
                    self.on_failure(&error, has_begun);
                }
            }
            Input::CallFinished { call, outcome, duration_ms } => {
                self.on_call_end(call, CallEnd::OfWorker(outcome), duration_ms);
            }
            Input::OneShotFinished { call, outcome, duration_ms } => {
                self.on_call_end(call, CallEnd::OfOneShot(outcome), duration_ms);
            }
            Input::Served { call, outcome, duration_ms } => {
                self.on_call_end(call, CallEnd::OfServer(outcome), duration_ms);
            }
            Input::AgentFinished { call, report } => self.on_call_end(call, CallEnd::OfAgent(report), 0),
            Input::CallLost { call, reason } => self.on_call_end(call, CallEnd::Lost(reason), 0),
            input @ (Input::Progress { .. }
            | Input::Remark { .. }
            | Input::Refused(_)
            | Input::HostAsked(_)
            | Input::FormAsked(_)
            | Input::Prepared { .. }
            | Input::NotPrepared { .. }
            | Input::Located { .. }
            | Input::Lapsed { .. }) => self.ask_calls(|calls, bounds, out| calls.on(input, bounds, out)),
            Input::Narrowed { .. } if self.is_closed() => {}
            Input::Narrowed { rights } => self.take_access(self.rights.narrow(rights)),
            Input::TakenBack(change) => {
                self.ask_calls(|calls, bounds, out| calls.take_back_servers(&change, bounds, out));
                self.ask_calls(|calls, bounds, out| calls.on_taken_back(&change, bounds, out));
            }
            Input::OutOfBudget { request, reason, message } if self.turn.waits_for(request) => {
                self.finish(Ending::because(reason, message));
            }
            Input::WorkerReady(worker) => {
                self.calls.on_worker_ready();
                let told = self.rights.on_worker_ready(worker, &mut self.out);
                self.tell_of_rights(told);
            }
            Input::NotReplaced { reason } => {
                let told = self.rights.on_not_replaced(&reason, &mut self.out);
                self.tell_of_rights(told);
            }
            Input::FrontEndGone => {
                self.tell_calls(Calls::on_front_end_gone);
                self.close(Ending::of(EndReason::Terminated));
            }
            Input::Timer(timer) if self.turn.on_timer(timer) => self.ask_model(),
            Input::OutOfBudget { .. } | Input::Timer(_) => {}
            Input::TimeUp => {
                self.stop(Ending::because(EndReason::TimeLimit, "the time limit of this run is reached"));
            }
            Input::Broken { reason, message } => self.close(Ending::because(reason, message)),
        }
        self.conversation.read(&mut self.out);
        self.out.take()
    }

    fn on_action(&mut self, action: AgentAction) {
        match action {
            AgentAction::Prompt { text, images } => self.on_user_turn(UserSaid { text, images }),
            AgentAction::PromptReading { text, images, offline } => {
                self.on_reading_turn(UserSaid { text, images }, offline);
            }
            AgentAction::SetRights { change } => self.on_change(Change::Rights(change)),
            AgentAction::SetMode { mode } => self.on_change(Change::Mode(mode)),
            AgentAction::RevokeGrant { id } => self.rights.revoke(id, &mut self.out),
            AgentAction::Compact => {
                if self.conversation.on_compact(self.turn.phase(), &mut self.out) {
                    self.turn.begin_summary();
                    self.compact(CompactionCause::Request, Then::End);
                }
            }
            AgentAction::Clear => {
                let (phase, is_starting) = (self.turn.phase(), self.turn.is_starting());
                self.conversation.on_clear(phase, is_starting, self.rights.seen(), &mut self.out);
            }
            AgentAction::RunCommand { command } => self.on_own_command(command),
            AgentAction::EditPlan { id, markdown } => {
                self.ask_calls(|calls, bounds, out| calls.on_edit_plan(id, markdown, bounds, out));
            }
            AgentAction::RevisePlan { id, plan } => {
                self.ask_calls(|calls, bounds, out| calls.on_revise_plan(id, &plan, bounds, out));
            }
            AgentAction::ExecutePlan { markdown } => {
                let makes_plans = self.planning().is_some();
                if let Some(said) = self.turn.plan_ahead(markdown, makes_plans, &mut self.out) {
                    self.on_user_turn(said);
                }
            }
            AgentAction::AskTogether { id } => {
                self.ask_calls(|calls, bounds, out| calls.on_ask_together(id, bounds, out));
            }
            AgentAction::Interrupt => self.stop(Ending::of(EndReason::Interrupted)),
            AgentAction::Quit => self.close(Ending::of(EndReason::Closed)),
            AgentAction::InterruptSession => self.close(Ending::of(EndReason::Interrupted)),
            AgentAction::Terminate => self.close(Ending::of(EndReason::Terminated)),
            AgentAction::HangUp => self.close(Ending::of(EndReason::HungUp)),
        }
    }

    /// Calls a method of [`Calls`] with the current rights and the tokens that the context has left for results.
    pub(super) fn tell_calls<T>(&mut self, tell: impl FnOnce(&mut Calls, Bounds<'_>, &mut Outbox) -> T) -> T {
        let bounds = Bounds { rights: &self.rights, room: self.conversation.room_for_results() };
        tell(&mut self.calls, bounds, &mut self.out)
    }

    /// Reserves a call id for an action of the driver, such as a snapshot.
    pub fn reserve_call(&mut self) -> CallId {
        self.calls.next_call()
    }

    /// Returns system prompt and tools for the session log.
    pub fn prompt(&self) -> PromptFixed {
        self.turn.prompt()
    }

    pub const fn activity(&self) -> Activity {
        self.rights.activity()
    }

    /// Returns the conversation as text with `>` before every quoted line. The middle of a long text is left out.
    pub fn conversation(&self) -> String {
        self.conversation.text()
    }

    pub fn planning(&self) -> Option<&Planning> {
        self.calls.planning()
    }

    /// Returns the access that needs no approval. Its paths are those that the worker sees.
    pub const fn standing(&self) -> &StandingRights {
        self.rights.seen()
    }

    /// Returns the access that needs no approval. Its paths are those outside of the sandbox.
    pub const fn host_standing(&self) -> &StandingRights {
        self.rights.standing()
    }

    pub const fn rights(&self) -> &Rights {
        self.rights.standing().rights()
    }

    /// True while a turn runs or waits for the start of its agent.
    pub fn is_busy(&self) -> bool {
        match self.turn.phase() {
            Phase::Resting | Phase::Closed => false,
            Phase::Waiting | Phase::Asking | Phase::Working => true,
        }
    }

    /// True if no turn will follow.
    pub fn is_closed(&self) -> bool {
        self.turn.phase() == Phase::Closed
    }

    pub fn execution(&self) -> Option<&Execution> {
        self.calls.execution()
    }

    pub fn asks_hosts(&self) -> bool {
        self.calls.asks_hosts(&self.rights)
    }
}
