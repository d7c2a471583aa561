//! The agent: what it waits for, and what each input does to that.

use std::time::Duration;

use ipc::cost::Usd;
use ipc::event::{CompactionCause, EventKind, Observer, TokenUsage};
use ipc::frontend::{Op, UiEventKind};
use ipc::id::{AgentId, ApprovalId, CallId};
use ipc::image::Image;

use super::beside::Beside;
use super::calls::Calls;
use super::compaction::{Compacting, Next, Then};
use super::history::{History, in_block, of_image};
use super::ledger::Ledger;
use super::record::ends;
use super::reply::Reply;
use super::rights::Replacement;
use super::window::{Budget, bytes, tokens};
use super::{AgentConfig, ContextItem, Effect, EndReason, Input, RequestId, RunEnd, TimerId};
use crate::approval::SessionGrants;
use crate::gate::{AskKind, Change, Standing};
use crate::provider::{StreamEvent, UserBlock};
use crate::tools::ToolDefinition;

/// Where the context comes from that says where the agent is, and what it may do.
const ENVIRONMENT: &str = "environment";

/// One agent: a transcript, and what is waited for.
pub struct Agent {
    pub(super) config: AgentConfig,
    /// The standing rights as the worker sees them.
    pub(super) seen: Standing,
    pub(super) replacement: Replacement,
    pub(super) history: History,
    /// What a new context is told without the model's help.
    pub(super) ledger: Ledger,
    pub(super) budget: Budget,
    pub(super) state: State,
    pub(super) run: Run,
    /// True until the agent was told where it is: turns wait for that.
    starting: bool,
    /// True if a turn waits for the start.
    turn_waits: bool,
    /// The summary that is waited for: requests are for it.
    pub(super) compacting: Option<Compacting>,
    /// Whether the user wants a summary before the next request.
    pub(super) compaction_wanted: bool,
    /// What every context begins with besides the environment: the project's instructions.
    pub(super) instructions: Vec<ContextItem>,
    /// What joins the next user message: context, then words of the user that came while the agent was busy.
    pub(super) context: Vec<ContextItem>,
    pub(super) queue: Vec<Said>,
    pub(super) last_request: RequestId,
    pub(super) last_timer: TimerId,
    pub(super) last_call: CallId,
    pub(super) last_approval: ApprovalId,
    /// What was approved for the session.
    pub(super) grants: SessionGrants,
    /// What was refused beside the calls.
    pub(super) beside: Beside,
    pub(super) effects: Vec<Effect>,
}

/// A message of the user.
#[derive(Debug)]
pub(super) struct Said {
    text: String,
    images: Vec<Image>,
}

impl Said {
    /// About how many tokens its blocks have.
    pub(super) fn tokens(&self) -> u64 {
        self.images.iter().map(of_image).map(in_block).fold(in_block(tokens(&self.text)), u64::saturating_add)
    }
}

/// What the agent waits for.
#[derive(Debug)]
pub(super) enum State {
    /// The user.
    Resting,
    /// The model.
    Streaming { request: RequestId, reply: Reply },
    /// The time to try again.
    BackingOff { timer: TimerId, failure: String },
    /// The worker.
    Working(Calls),
    /// Nothing any more.
    Closed,
}

/// The account of the run that goes on.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Replies that came to their end.
    pub(super) steps: u32,
    /// Attempts at the present step.
    pub(super) attempt: u32,
    /// How long the run has waited between attempts, in all.
    pub(super) waited: Duration,
    pub(super) usage: TokenUsage,
    /// What the replies cost, as far as the prices are known.
    pub(super) cost: Usd,
    /// The model's last words.
    pub(super) text: String,
    /// The last denial, while no call has succeeded after it.
    pub(super) denial: Option<String>,
    /// Replies in a row that were cut at their limit.
    pub(super) cuts: u32,
    /// Replies in a row that the provider paused.
    pub(super) pauses: u32,
    /// Whether the context was left because the provider found it too long, and no reply has come since.
    pub(super) overflowed: bool,
}

impl Agent {
    /// An agent that waits for its first turn.
    pub fn new(mut config: AgentConfig) -> Self {
        config.standing.confirm_shell = config.approvals.confirm_shell;
        let budget = Budget::new(config.window, config.max_tokens, fixed_tokens(&config));
        Self {
            seen: config.standing.clone(),
            replacement: Replacement::default(),
            history: History::new(budget.fixed(), config.sees_images),
            config,
            ledger: Ledger::default(),
            budget,
            state: State::Resting,
            run: Run::default(),
            starting: false,
            turn_waits: false,
            compacting: None,
            compaction_wanted: false,
            instructions: Vec::new(),
            context: Vec::new(),
            queue: Vec::new(),
            last_request: RequestId(0),
            last_timer: TimerId(0),
            last_call: CallId(0),
            last_approval: ApprovalId(0),
            grants: SessionGrants::default(),
            beside: Beside::default(),
            effects: Vec::new(),
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
            Input::Context(items) => self.on_context(items),
            Input::Stream { request, event } => self.on_stream(request, event),
            Input::StreamFailed { request, error } => self.on_stream_failed(request, &error),
            Input::CallFinished { call, outcome, duration_ms } => {
                self.on_call_finished(call, outcome, duration_ms);
            }
            Input::Remark { call, text } => self.on_remark(call, text),
            Input::Refused(refused) => self.on_refused(&refused),
            Input::CallLost { call, reason } => self.on_call_lost(call, &reason),
            Input::Prepared { call, proposal } => self.on_prepared(call, proposal),
            Input::NotPrepared { call, reason } => self.on_not_prepared(call, reason),
            Input::Lapsed { id, by, cause } => self.on_lapsed(id, by, cause),
            Input::OneShotFinished { call, outcome, duration_ms } => {
                self.on_one_shot_finished(call, outcome, duration_ms);
            }
            Input::WorkerReady(worker) => self.on_worker_ready(worker),
            Input::NotReplaced { reason } => self.on_not_replaced(&reason),
            Input::FrontEndGone => self.on_front_end_gone(),
            Input::Timer(timer) => self.on_timer(timer),
            Input::TimeUp => self.stop(EndReason::TimeLimit, Some("the time of this run is spent")),
            Input::Broken { reason, message } => self.close(reason, Some(&message)),
        }
        std::mem::take(&mut self.effects)
    }

    /// Takes an id for a call of the driver's own, such as a snapshot: ids are unique within the session.
    pub fn reserve_call(&mut self) -> CallId {
        self.last_call = self.last_call.next();
        self.last_call
    }

    /// What the agent may do, as its worker sees it.
    pub const fn standing(&self) -> &Standing {
        &self.seen
    }

    /// Whether a run goes on.
    pub fn is_busy(&self) -> bool {
        self.turn_waits || !matches!(self.state, State::Resting | State::Closed)
    }

    fn on_op(&mut self, op: Op) {
        match op {
            Op::UserTurn { text, images } => self.on_user_turn(Said { text, images }),
            Op::SetRights { change } => self.on_change(Change::Rights(change)),
            Op::Compact => self.on_compact(),
            Op::Interrupt => self.stop(EndReason::Interrupted, None),
            Op::Shutdown => self.close(EndReason::Closed, None),
            Op::Terminate => self.close(EndReason::Terminated, None),
            Op::HangUp => self.close(EndReason::HungUp, None),
            Op::PatchApproval { id, decision } => self.on_answer(id, AskKind::Patch, decision),
            Op::ExecApproval { id, decision } => self.on_answer(id, AskKind::Command, decision),
            Op::NetworkApproval { id, decision } => self.on_answer(id, AskKind::Network, decision),
            Op::SetMode { mode } => self.on_change(Change::Mode(mode)),
            Op::RevokeGrant { id } => self.on_revoke(id),
        }
    }

    fn on_user_turn(&mut self, said: Said) {
        if said.text.trim().is_empty() && said.images.is_empty() {
            self.notice("empty_message", "an empty message was not sent");
            return;
        }
        let too_long = self.too_long(&said);
        match (&self.state, too_long) {
            (State::Closed, _) => {}
            (State::Resting, Some(why)) => self.finish_full(why),
            (_, Some(why)) => self.notice("message_too_long", &why),
            (State::Resting, None) => {
                self.queue.push(said);
                self.run = Run::default();
                self.turn_waits = self.starting;
                if !self.starting {
                    self.begin_step();
                }
            }
            (_, None) => self.queue.push(said),
        }
    }

    /// Context from outside the conversation. What is not about the surroundings holds in every context; with the first, a
    /// turn that waited for it begins.
    fn on_context(&mut self, items: Vec<ContextItem>) {
        // What changed before the agent was told where it is comes behind that.
        let changed = if self.starting { std::mem::take(&mut self.context) } else { Vec::new() };
        self.add_context(items);
        self.context.extend(changed);
        self.starting = false;
        if std::mem::take(&mut self.turn_waits) {
            self.begin_step();
        }
    }

    fn add_context(&mut self, items: Vec<ContextItem>) {
        for mut item in items {
            let most = self.budget.context_item();
            if tokens(&item.text) > most {
                item.text = ends(&item.text, bytes(&item.text, most));
                let message = format!("{} is too long for the context: its middle is left out", item.source);
                self.notice("context_cut", &message);
            }
            if item.source != ENVIRONMENT {
                self.instructions.push(item.clone());
            }
            self.context.push(item);
        }
    }

    /// Asks the model for the next reply, if the budget allows one and the context has room for it.
    pub(super) fn begin_step(&mut self) {
        if self.is_out_of_budget() {
            return;
        }
        match self.next() {
            Next::Full(message) => self.finish_full(message),
            Next::Compact(cause) => self.compact(cause, Then::Step),
            Next::Step => {
                self.say_what_waits();
                self.run.attempt = 0;
                self.begin_attempt();
            }
        }
    }

    /// What joins the user's message behind the results (WIRE R4): context, then what the user said meanwhile.
    fn say_what_waits(&mut self) {
        let is_first = self.history.is_empty();
        let mut blocks = Vec::new();
        for ContextItem { source, text } in std::mem::take(&mut self.context) {
            if !text.is_empty() {
                blocks.push(UserBlock::Text(text.clone()));
                self.log(EventKind::ContextAdded { source, text });
            }
        }
        if is_first {
            self.history.open(std::mem::take(&mut blocks));
        }
        for said in std::mem::take(&mut self.queue) {
            self.say(said, &mut blocks);
        }
        self.history.push_user(blocks);
    }

    /// What the user said: pictures before the words that are about them.
    fn say(&mut self, Said { mut text, images }: Said, blocks: &mut Vec<UserBlock>) {
        let (shown, left_out) = self.history.admit(images);
        for cause in left_out {
            self.notice("image_left_out", &cause);
            // The model should know what it does not see; and without pictures and words the message would be empty.
            let line = if text.is_empty() { "" } else { "\n" };
            text = format!("{text}{line}({cause})");
        }
        blocks.extend(shown.iter().cloned().map(UserBlock::Image));
        if !text.trim().is_empty() {
            blocks.push(UserBlock::Text(text.clone()));
        }
        self.ledger.hear(&text);
        self.log(EventKind::UserMessage { text, images: shown });
    }

    /// Tells the model something that it would not understand otherwise.
    pub(super) fn note(&mut self, text: String) {
        self.context.insert(0, ContextItem { source: "bailiwick".to_owned(), text });
    }

    fn on_stream(&mut self, id: RequestId, event: StreamEvent) {
        let State::Streaming { request, reply } = &mut self.state else {
            return;
        };
        if *request != id {
            return;
        }
        match event {
            StreamEvent::MessageStarted { message_id, model } => {
                reply.message_id = message_id;
                reply.model = model;
            }
            StreamEvent::TextDelta { index, text } => {
                reply.text_delta(index, &text);
                // A summary is no answer to the user: it is shown as what it is, when it is whole.
                if self.compacting.is_none() {
                    self.effects.push(Effect::Show(UiEventKind::TextDelta { text }));
                }
            }
            StreamEvent::ThinkingDelta { text, .. } if self.compacting.is_none() => {
                self.effects.push(Effect::Show(UiEventKind::ThinkingDelta { text }));
            }
            StreamEvent::ThinkingDelta { .. } | StreamEvent::ToolUseStarted { .. } => {}
            StreamEvent::BlockClosed { index, block } => reply.close(index, block),
            StreamEvent::MessageCompleted { stop_reason, usage } => {
                let reply = std::mem::take(reply);
                self.on_reply(reply, &stop_reason, usage);
            }
        }
    }

    /// Ends what goes on, keeps what is complete, and rests. Does nothing at rest.
    pub(super) fn stop(&mut self, reason: EndReason, message: Option<&str>) {
        match std::mem::replace(&mut self.state, State::Resting) {
            // A turn that waits for the start is one that can be stopped, and so is a start that takes too long.
            State::Resting if self.turn_waits || self.starting && reason == EndReason::TimeLimit => {
                self.finish(reason, message.map(str::to_owned));
            }
            State::Resting => {}
            State::Closed => self.state = State::Closed,
            // What the time was spent on was the provider's failure: that is the reason.
            State::BackingOff { failure, .. } if reason == EndReason::TimeLimit => {
                let message = format!("{failure}; the time of this run is spent before another attempt");
                self.finish(EndReason::Provider, Some(message));
            }
            State::BackingOff { .. } => self.finish(reason, message.map(str::to_owned)),
            State::Streaming { request, reply } => {
                self.effects.push(Effect::CancelStream(request));
                if self.compacting.is_none() {
                    self.keep_interrupted(reply);
                }
                self.finish(reason, message.map(str::to_owned));
            }
            State::Working(calls) => {
                self.interrupt_calls(calls, reason);
                self.finish(reason, message.map(str::to_owned));
            }
        }
    }

    /// Ends for good. An agent at rest ends too, so that whoever waits for its end hears of it.
    pub(super) fn close(&mut self, reason: EndReason, message: Option<&str>) {
        if matches!(self.state, State::Resting) {
            self.finish(reason, message.map(str::to_owned));
        } else {
            self.stop(reason, message);
        }
        self.state = State::Closed;
    }

    /// The model's turn is over: the run ends, or goes on with what the user said meanwhile.
    pub(super) fn end_turn(&mut self) {
        if !self.queue.is_empty() {
            return self.begin_step();
        }
        if self.takes_wish() {
            return self.compact(CompactionCause::Request, Then::End);
        }
        match self.run.denial.take() {
            Some(denial) if self.config.fails_when_denied => {
                self.finish(EndReason::DeniedAtEnd, Some(denial));
            }
            _ => self.finish(EndReason::Done, None),
        }
    }

    pub(super) fn finish(&mut self, reason: EndReason, message: Option<String>) {
        self.state = State::Resting;
        if self.compacting.take().is_some() {
            // What waited behind the summary was said all the same.
            self.say_what_waits();
        }
        self.compaction_wanted = false;
        self.turn_waits = false;
        let Run { steps, usage, cost, text, .. } = std::mem::take(&mut self.run);
        let cost = self.config.prices.map(|_| cost);
        self.effects.push(Effect::Finish(RunEnd { reason, message, text, steps, usage, cost }));
    }

    pub(super) fn log(&mut self, kind: EventKind) {
        self.log_seen_by(Observer::Supervisor, kind);
    }

    pub(super) fn log_seen_by(&mut self, observed_by: Observer, kind: EventKind) {
        self.effects.push(Effect::Log { kind, observed_by });
    }

    pub(super) fn notice(&mut self, code: &str, message: &str) {
        self.log(EventKind::Notice { code: code.to_owned(), message: message.to_owned() });
    }
}

/// About how many tokens the system prompt and the tools have.
pub(super) fn fixed_tokens(config: &AgentConfig) -> u64 {
    let of_tool = |tool: &ToolDefinition| {
        tokens(tool.name) + tokens(tool.description) + tokens(tool.input_schema.get())
    };
    tokens(&config.system) + config.tools.definitions().iter().map(of_tool).sum::<u64>()
}
