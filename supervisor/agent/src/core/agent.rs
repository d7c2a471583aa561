//! The agent: what it waits for, and what each input does to that.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use gate::activity::Activity;
use gate::approval::{ApprovalSettings, JudgedAnswer, SessionGrants};
use gate::tools::Registry;
use gate::{Change, StandingRights};
use ipc::id::{AgentId, ApprovalId, CallId, ConversationId};
use ipc::rights::Rights;
use protocol::event::PromptFixed;
use protocol::frontend::{AgentAction, Op};
use protocol::plan::{OnFailure, PlanStep};

use super::beside::OrphanDenials;
use super::calls::Calls;
use super::conversation::{Conversation, UserSaid};
use super::declined::Declined;
use super::end::Ending;
use super::forms::HeldForms;
use super::hosts::HeldHosts;
use super::outbox::Outbox;
use super::reading_turn::AccessAfter;
use super::rights::Replacement;
use super::tariff::Tariff;
use super::turn::{Phase, Turn, TurnSettings};
use super::{AgentConfig, Effect, EndReason, Execution, Input, Planning};

/// One agent: a transcript, and what is waited for.
pub struct Agent {
    pub(super) config: Charter,
    /// The standing rights as the worker sees them.
    pub(super) seen: StandingRights,
    pub(super) replacement: Replacement,
    pub(super) conversation: Conversation,
    pub(super) turn: Turn,
    /// The calls of the turn; there are none but while it waits for them.
    pub(super) calls: Calls,
    pub(super) last_call: CallId,
    pub(super) last_approval: ApprovalId,
    /// What was approved for the session.
    pub(super) grants: SessionGrants,
    /// Denials that the user has left.
    pub(super) declined: Declined,
    /// Hosts that somebody is asked about while connections wait.
    pub(super) held_hosts: HeldHosts,
    pub(super) held_forms: HeldForms,
    /// The plans that are executed, and what becomes of the rest after a failed step.
    pub(super) plans: BTreeMap<CallId, (Vec<PlanStep>, OnFailure)>,
    /// The access after the present turn, if that only reads.
    pub(super) access_after: Option<AccessAfter>,
    /// What was refused beside the calls.
    pub(super) beside: OrphanDenials,
    pub(super) out: Outbox,
}

/// Writes the state that a later process goes on with, and nothing else: two agents that are written alike go on alike.
impl Debug for Agent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let instructions = self.conversation.instructions().iter();
        let instructions: Vec<_> = instructions.map(|item| (&item.source, &item.text)).collect();
        f.debug_struct("Agent")
            .field("messages", &self.conversation.messages())
            .field("last_call", &self.last_call)
            .field("last_approval", &self.last_approval)
            .field("grants", &self.grants)
            .field("instructions", &instructions)
            .finish_non_exhaustive()
    }
}

/// Facts about the agent, which no machine changes, and its rights and plans.
pub(super) struct Charter {
    pub(super) id: AgentId,
    pub(super) activity: Activity,
    pub(super) conversation: ConversationId,
    pub(super) tools: Arc<Registry>,
    pub(super) approvals: ApprovalSettings,
    /// The standing rights, with the host's own paths.
    pub(super) standing: StandingRights,
    /// The planning that it does, if it does any.
    pub(super) planning: Option<Planning>,
    /// The plan that it executes, if it does.
    pub(super) execution: Option<Execution>,
}

impl Agent {
    /// An agent that waits for its first turn.
    pub fn new(mut config: AgentConfig) -> Self {
        config.standing.confirm_shell = config.approvals.confirm_shell;
        let seen = config.standing.clone();
        let conversation = Conversation::new(&config);
        let AgentConfig {
            id,
            activity,
            conversation: of,
            tools,
            approvals,
            standing,
            planning,
            execution,
            model,
            system,
            options,
            prices,
            limits,
            backoff,
            answer,
            fails_when_denied,
            ..
        } = config;
        let turn = Turn::new(TurnSettings {
            model,
            system,
            tools: Arc::clone(&tools),
            options,
            tariff: Tariff(prices),
            limits,
            backoff,
            answer,
            fails_when_denied,
        });
        let charter =
            Charter { id, activity, conversation: of, tools, approvals, standing, planning, execution };
        Self {
            seen,
            replacement: Replacement::default(),
            conversation,
            turn,
            config: charter,
            calls: Calls::default(),
            last_call: CallId(0),
            last_approval: ApprovalId(0),
            grants: SessionGrants::default(),
            declined: Declined::default(),
            held_hosts: HeldHosts::default(),
            held_forms: HeldForms::default(),
            plans: BTreeMap::new(),
            access_after: None,
            beside: OrphanDenials::default(),
            out: Outbox::default(),
        }
    }

    /// The same agent, which begins no turn before its first [`Input::Context`].
    #[must_use]
    pub fn starting(mut self) -> Self {
        self.turn.wait_for_start();
        self
    }

    /// Which agent it is.
    pub const fn id(&self) -> &AgentId {
        &self.config.id
    }

    /// Takes an input in; the effects are to be carried out in order.
    pub fn handle(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Op(op) => self.on_op(op),
            Input::Model(choice) => self.on_model(*choice),
            Input::Context(items) => self.on_context(items),
            Input::Stream { request, event } => self.on_stream(request, event),
            Input::StreamFailed { request, error } => self.on_stream_failed(request, &error),
            Input::CallFinished { call, outcome, duration_ms } => {
                self.on_call_finished(call, outcome, duration_ms);
            }
            Input::Progress { call, progress } => self.calls.note_progress(call, progress),
            Input::Remark { call, text } => self.on_remark(call, text),
            Input::Refused(refused) => self.on_refused(&refused),
            Input::HostAsked(asked) => self.on_host_asked(asked),
            Input::FormAsked(asked) => self.on_form_asked(asked),
            Input::CallLost { call, reason } => self.on_call_lost(call, &reason),
            Input::Prepared { call, proposal } => self.on_prepared(call, proposal),
            Input::NotPrepared { call, reason } => self.on_not_prepared(call, reason),
            Input::Located { call, place } => self.on_located(call, place),
            Input::Lapsed { id, by, cause } => self.on_lapsed(id, by, cause),
            Input::OneShotFinished { call, outcome, duration_ms } => {
                self.on_one_shot_finished(call, outcome, duration_ms);
            }
            Input::Served { call, outcome, duration_ms } => self.on_served(call, outcome, duration_ms),
            Input::AgentFinished { call, report } => self.on_agent_finished(call, &report),
            Input::Narrowed { rights } => self.on_narrowed(rights),
            Input::TakenBack(change) => self.on_taken_back(&change),
            Input::OutOfBudget { request, reason, message } => {
                self.on_out_of_budget(request, Ending::because(reason, message));
            }
            Input::WorkerReady(worker) => self.on_worker_ready(worker),
            Input::NotReplaced { reason } => self.on_not_replaced(&reason),
            Input::FrontEndGone => self.on_front_end_gone(),
            Input::Timer(timer) if self.turn.on_timer(timer) => self.ask_model(),
            Input::Timer(_) => {}
            Input::TimeUp => {
                self.stop(Ending::because(EndReason::TimeLimit, "the time of this run is spent"));
            }
            Input::Broken { reason, message } => self.close(Ending::because(reason, message)),
        }
        self.conversation.read(&mut self.out);
        self.out.take()
    }

    /// Takes an id for a call of the driver's own, such as a snapshot: ids are unique within the session.
    pub fn reserve_call(&mut self) -> CallId {
        self.last_call = self.last_call.next();
        self.last_call
    }

    /// The system prompt and the tools of each of its requests, for the log.
    pub fn prompt(&self) -> PromptFixed {
        self.turn.prompt()
    }

    /// What it is there for.
    pub const fn activity(&self) -> Activity {
        self.config.activity
    }

    /// The conversation so far as text, every line of it quoted: its beginning and its end, where it is long.
    pub fn conversation(&self) -> String {
        self.conversation.text()
    }

    /// The planning that it does, if it does any.
    pub const fn planning(&self) -> Option<&Planning> {
        self.config.planning.as_ref()
    }

    /// What the agent may do, as its worker sees it.
    pub const fn standing(&self) -> &StandingRights {
        &self.seen
    }

    /// What the agent may do, with the host's own paths.
    pub const fn host_standing(&self) -> &StandingRights {
        &self.config.standing
    }

    /// Its rights, with the host's own paths.
    pub const fn rights(&self) -> &Rights {
        &self.config.standing.rights
    }

    /// Whether a run goes on.
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

    fn on_op(&mut self, op: Op) {
        match op {
            Op::Act(action) => self.on_action(action),
            Op::Answer { id, kind, decision, digest } => {
                self.on_answer(id, JudgedAnswer { kind, decision, digest });
            }
        }
    }

    fn on_action(&mut self, action: AgentAction) {
        match action {
            AgentAction::Prompt { text, images } => self.on_user_turn(UserSaid { text, images }),
            AgentAction::PromptReading { text, images, offline } => {
                self.on_reading_turn(UserSaid { text, images }, offline);
            }
            AgentAction::SetRights { change } => self.on_change(Change::Rights(change)),
            AgentAction::SetMode { mode } => self.on_change(Change::Mode(mode)),
            AgentAction::RevokeGrant { id } => self.on_revoke(id),
            AgentAction::Compact => self.on_compact(),
            AgentAction::Clear => self.on_clear(),
            AgentAction::RunCommand { command } => self.on_own_command(command),
            AgentAction::EditPlan { id, markdown } => self.on_edit_plan(id, markdown),
            AgentAction::RevisePlan { id, plan } => self.on_revise_plan(id, &plan),
            AgentAction::ExecutePlan { markdown } => self.on_execute_plan(markdown),
            AgentAction::AskTogether { id } => self.on_ask_together(id),
            AgentAction::Interrupt => self.stop(Ending::of(EndReason::Interrupted)),
            AgentAction::Quit => self.close(Ending::of(EndReason::Closed)),
            AgentAction::InterruptSession => self.close(Ending::of(EndReason::Interrupted)),
            AgentAction::Terminate => self.close(Ending::of(EndReason::Terminated)),
            AgentAction::HangUp => self.close(Ending::of(EndReason::HungUp)),
        }
    }
}
