//! The agent: what it waits for, and what each input does to that.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use gate::activity::Activity;
use gate::approval::{JudgedAnswer, SessionGrants};
use gate::{Change, StandingRights};
use ipc::id::{AgentId, ApprovalId, CallId};
use ipc::rights::Rights;
use protocol::cost::Usd;
use protocol::error_code::ErrorCode;
use protocol::event::{LeftOut, PromptFixed, TokenUsage};
use protocol::frontend::{AgentAction, Op};
use protocol::plan::{OnFailure, PlanStep};
use serde_json::Value;

use super::beside::OrphanDenials;
use super::calls::Calls;
use super::conversation::{Conversation, UserSaid};
use super::declined::Declined;
use super::forms::HeldForms;
use super::hosts::HeldHosts;
use super::loops::Steps;
use super::outbox::Outbox;
use super::reading_turn::AccessAfter;
use super::reply::ModelReply;
use super::rights::Replacement;
use super::{AgentConfig, Effect, EndReason, Input, Planning, RequestId, TimerId};

/// One agent: a transcript, and what is waited for.
pub struct Agent {
    pub(super) config: AgentConfig,
    /// The standing rights as the worker sees them.
    pub(super) seen: StandingRights,
    pub(super) replacement: Replacement,
    pub(super) conversation: Conversation,
    pub(super) state: AgentState,
    /// The calls of the turn; there are none but in [`AgentState::Working`].
    pub(super) calls: Calls,
    pub(super) run: TurnRun,
    /// True until the agent was told where it is: turns wait for that.
    pub(super) starting: bool,
    /// True if a turn waits for the start.
    pub(super) turn_waits: bool,
    pub(super) last_request: RequestId,
    pub(super) last_timer: TimerId,
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
    /// A plan that was made before the session, until its execution begins.
    pub(super) earlier_plan: Option<String>,
    /// A command of the user's own, until it begins.
    pub(super) own_command: Option<String>,
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

/// What the agent waits for.
#[derive(Debug)]
pub(super) enum AgentState {
    /// The user.
    Resting,
    /// The model.
    Streaming { request: RequestId, reply: ModelReply },
    /// The time to try again.
    BackingOff { timer: TimerId, failure: String, code: ErrorCode },
    /// The results of [`Agent::calls`].
    Working,
    /// Nothing any more.
    Closed,
}

/// The account of the run that goes on.
#[derive(Debug, Default)]
pub(super) struct TurnRun {
    /// Replies that came to their end.
    pub(super) steps: u32,
    /// Attempts at the present step.
    pub(super) attempt: u32,
    /// How long the run has waited between attempts, in all.
    pub(super) waited: Duration,
    pub(super) usage: TokenUsage,
    /// What the replies cost, as far as the prices are known.
    pub(super) cost: Usd,
    /// Text of the model's latest reply.
    pub(super) text: String,
    /// Replies in a row that did not fit the schema.
    pub(super) misfits: u32,
    /// The answer that fits the schema.
    pub(super) output: Option<Value>,
    /// The last denial, while no call has succeeded after it.
    pub(super) denial: Option<String>,
    /// True if the next plan revises the last one, whose finished steps it keeps.
    pub(super) must_keep: bool,
    /// The reason why the last plan was not executed to its end, if it was not.
    pub(super) unexecuted: Option<String>,
    /// True if the run is a command of the user's own, and no turn of the model's.
    pub(super) is_own_command: bool,
    /// Replies in a row that were cut at their limit.
    pub(super) cuts: u32,
    /// Replies in a row without a word and without a call.
    pub(super) silences: u32,
    /// Replies with a call as text, since the last call that was one.
    pub(super) written_calls: u32,
    /// The steps so far, kept to notice that the model repeats itself.
    pub(super) past: Steps,
    /// Replies in a row that the provider paused.
    pub(super) pauses: u32,
    /// The part of the conversation that was left out, since the provider refused it, and no reply has come since.
    pub(super) left_out: Option<LeftOut>,
    /// Whether the context was left because the provider found it too long, and no reply has come since.
    pub(super) overflowed: bool,
}

impl Agent {
    /// An agent that waits for its first turn.
    pub fn new(mut config: AgentConfig) -> Self {
        config.standing.confirm_shell = config.approvals.confirm_shell;
        Self {
            seen: config.standing.clone(),
            replacement: Replacement::default(),
            conversation: Conversation::new(&config),
            config,
            state: AgentState::Resting,
            calls: Calls::default(),
            run: TurnRun::default(),
            starting: false,
            turn_waits: false,
            last_request: RequestId(0),
            last_timer: TimerId(0),
            last_call: CallId(0),
            last_approval: ApprovalId(0),
            grants: SessionGrants::default(),
            declined: Declined::default(),
            held_hosts: HeldHosts::default(),
            held_forms: HeldForms::default(),
            plans: BTreeMap::new(),
            earlier_plan: None,
            own_command: None,
            access_after: None,
            beside: OrphanDenials::default(),
            out: Outbox::default(),
        }
    }

    /// The same agent, which begins no turn before its first [`Input::Context`].
    #[must_use]
    pub fn starting(self) -> Self {
        Self { starting: true, ..self }
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
                self.on_out_of_budget(request, reason, message);
            }
            Input::WorkerReady(worker) => self.on_worker_ready(worker),
            Input::NotReplaced { reason } => self.on_not_replaced(&reason),
            Input::FrontEndGone => self.on_front_end_gone(),
            Input::Timer(timer) => self.on_timer(timer),
            Input::TimeUp => self.stop(EndReason::TimeLimit, Some("the time of this run is spent")),
            Input::Broken { reason, message } => self.close(reason, Some(&message)),
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
        self.config.prompt()
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
        self.turn_waits || !matches!(self.state, AgentState::Resting | AgentState::Closed)
    }

    /// True if no turn will follow.
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, AgentState::Closed)
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
            AgentAction::Interrupt => self.stop(EndReason::Interrupted, None),
            AgentAction::Quit => self.close(EndReason::Closed, None),
            AgentAction::InterruptSession => self.close(EndReason::Interrupted, None),
            AgentAction::Terminate => self.close(EndReason::Terminated, None),
            AgentAction::HangUp => self.close(EndReason::HungUp, None),
        }
    }
}
