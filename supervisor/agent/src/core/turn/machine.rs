use std::sync::Arc;

use gate::tools::Registry;
use ipc::id::ToolUseId;
use protocol::error_code::ErrorCode;
use protocol::event::{EventKind, ModelChanged, NoticeCode, PromptFixed, TokenUsage, ToolCallStatus};
use protocol::frontend::UiEventKind;

use super::account::RunAccount;
use super::answer::AnswerCheck;
use super::loops::Course;
use super::reply::ModelReply;
use crate::conversation::{ModelRequest, RequestOptions, StopReason, StreamEvent, UserBlock};
use crate::core::call::CallResult;
use crate::core::conversation::{Asked, UserSaid, quoted};
use crate::core::end::Ending;
use crate::core::outbox::Outbox;
use crate::core::phase::Phase;
use crate::core::tariff::Tariff;
use crate::core::{
    Backoff, Effect, EndReason, Estimate, ModelChoice, RequestId, RunEnd, RunLimits, TimerId, Window,
};

pub(in crate::core) struct Turn {
    state: TurnState,
    pub(super) run: RunAccount,
    /// True until the description of the agent's surroundings arrives. A turn cannot begin before.
    starting: bool,
    /// True if a turn waits, and begins as soon as `starting` is false.
    waits: bool,
    earlier_plan: Option<String>,
    own_command: Option<String>,
    last_request: RequestId,
    last_timer: TimerId,
    pub(super) settings: TurnSettings,
}

/// Settings of an agent's turns. The model may change between two turns.
pub(in crate::core) struct TurnSettings {
    pub(in crate::core) model: String,
    pub(in crate::core) system: Arc<str>,
    pub(in crate::core) tools: Arc<Registry>,
    pub(in crate::core) options: RequestOptions,
    pub(in crate::core) tariff: Tariff,
    pub(in crate::core) limits: RunLimits,
    pub(in crate::core) backoff: Box<dyn Backoff>,
    pub(in crate::core) answer: Option<Arc<dyn AnswerCheck>>,
    /// True if a turn counts as failed when its last call was denied.
    pub(in crate::core) fails_when_denied: bool,
}

#[derive(Debug)]
enum TurnState {
    Resting,
    Streaming { request: RequestId, reply: ModelReply },
    BackingOff { timer: TimerId, failure: String, code: ErrorCode },
    Working,
    Closed,
}

pub(in crate::core) struct Whole {
    pub(in crate::core) reply: ModelReply,
    pub(in crate::core) stop: StopReason,
    pub(in crate::core) usage: TokenUsage,
}

pub(in crate::core) enum Stopped {
    Nothing,
    Ends(Ending),
    /// A reply was being received. The value is the part that has arrived.
    Asking(ModelReply),
    Working,
}

impl Turn {
    pub(in crate::core) fn new(settings: TurnSettings) -> Self {
        Self {
            state: TurnState::Resting,
            run: RunAccount::default(),
            starting: false,
            waits: false,
            earlier_plan: None,
            own_command: None,
            last_request: RequestId(0),
            last_timer: TimerId(0),
            settings,
        }
    }

    pub(in crate::core) const fn wait_for_start(&mut self) {
        self.starting = true;
    }

    pub(in crate::core) const fn is_starting(&self) -> bool {
        self.starting
    }

    pub(in crate::core) const fn phase(&self) -> Phase {
        match self.state {
            TurnState::Resting if self.waits => Phase::Waiting,
            TurnState::Resting => Phase::Resting,
            TurnState::Streaming { .. } | TurnState::BackingOff { .. } => Phase::Asking,
            TurnState::Working => Phase::Working,
            TurnState::Closed => Phase::Closed,
        }
    }

    /// Returns the system prompt and the tools, which are in every request, for the log.
    pub(in crate::core) fn prompt(&self) -> PromptFixed {
        fixed_prompt(&self.settings.system, &self.settings.tools)
    }

    pub(in crate::core) const fn tariff(&self) -> Tariff {
        self.settings.tariff
    }

    #[cfg(test)]
    pub(in crate::core) const fn last_request(&self) -> RequestId {
        self.last_request
    }

    #[cfg(test)]
    pub(in crate::core) const fn last_timer(&self) -> TimerId {
        self.last_timer
    }

    /// Begins a run. Returns true if a request can be sent now, false if the run waits for the agent's surroundings.
    pub(in crate::core) fn begin(&mut self) -> bool {
        self.run = RunAccount::default();
        self.waits = self.starting;
        !self.starting
    }

    /// Records that the agent's surroundings have arrived. Returns true if they arrive for the first time.
    pub(in crate::core) const fn start(&mut self) -> bool {
        std::mem::replace(&mut self.starting, false)
    }

    /// Returns true if a turn waited for the surroundings, and begins now.
    pub(in crate::core) const fn takes_start(&mut self) -> bool {
        std::mem::replace(&mut self.waits, false)
    }

    /// Begins a run that only replaces the context by a summary.
    pub(in crate::core) fn begin_summary(&mut self) {
        self.run = RunAccount::default();
    }

    /// Makes the next run begin with the execution of a plan from before the session. Returns the user's message of
    /// that run; `None` if the plan cannot be executed now.
    pub(in crate::core) fn plan_ahead(
        &mut self,
        markdown: String,
        makes_plans: bool,
        out: &mut Outbox,
    ) -> Option<UserSaid> {
        let why = match self.phase() {
            _ if !makes_plans => "this agent cannot make plans",
            Phase::Resting => {
                let text = format!(
                    "Here is a plan that was written earlier. Another agent executes the plan now, and the report of that agent comes after the plan:\n\n{markdown}"
                );
                self.earlier_plan = Some(markdown);
                return Some(UserSaid { text, images: Vec::new() });
            }
            Phase::Waiting | Phase::Asking | Phase::Working | Phase::Closed => "the agent is working",
        };
        out.notice(NoticeCode::PlanRefused, &format!("{NOT_EXECUTED}: {why}"));
        None
    }

    pub(in crate::core) const fn take_plan(&mut self) -> Option<String> {
        self.earlier_plan.take()
    }

    /// True if a command that the user typed may begin a run; else the user is told why it may not.
    pub(in crate::core) fn takes_command(&self, command: &str, out: &mut Outbox) -> bool {
        let why = match self.phase() {
            Phase::Closed => return false,
            _ if command.trim().is_empty() => "it is empty",
            Phase::Resting => return true,
            Phase::Waiting | Phase::Asking | Phase::Working => "a turn is running",
        };
        out.notice(NoticeCode::CommandNotRun, &format!("the command was not run: {why}"));
        false
    }

    pub(in crate::core) fn command_ahead(&mut self, command: String) {
        self.own_command = Some(command);
    }

    pub(in crate::core) const fn take_command(&mut self) -> Option<String> {
        self.own_command.take()
    }

    pub(in crate::core) fn work(&mut self) {
        self.state = TurnState::Working;
    }

    /// Waits for a command that the user typed.
    pub(in crate::core) fn work_for_user(&mut self) {
        self.run.is_own_command = true;
        self.work();
    }

    pub(in crate::core) const fn is_own_command(&self) -> bool {
        self.run.is_own_command
    }

    /// Returns the end of the run if its limits allow no further request, else `None`.
    pub(in crate::core) fn spent(&self) -> Option<Ending> {
        self.run.spent(self.settings.limits)
    }

    /// Begins a step or a summary, with a new count of attempts.
    pub(in crate::core) const fn begin_step(&mut self) {
        self.run.attempt = 0;
    }

    /// Sends a request to the model. `prompt` is its estimated number of tokens.
    pub(in crate::core) fn ask(&mut self, asked: Asked, prompt: u64, out: &mut Outbox) {
        self.run.attempt = self.run.attempt.saturating_add(1);
        self.last_request = RequestId(self.last_request.0.saturating_add(1));
        let request = self.last_request;
        let (step, attempt) = (self.run.steps.saturating_add(1), self.run.attempt);
        out.log(EventKind::ModelRequested { step, attempt });
        self.state = TurnState::Streaming { request, reply: ModelReply::default() };
        let usage =
            TokenUsage { input: prompt, output: u64::from(asked.max_tokens), ..TokenUsage::default() };
        let model = ModelRequest {
            model: self.settings.model.clone(),
            system: Arc::clone(&self.settings.system),
            tools: self.settings.tools.definitions(),
            messages: asked.messages,
            max_tokens: asked.max_tokens,
            options: self.settings.options,
        };
        let estimate = Estimate { tokens: usage.total(), cost: self.settings.tariff.cost(&usage) };
        out.push(Effect::StartStream { request, model, estimate });
    }

    pub(in crate::core) fn waits_for(&self, id: RequestId) -> bool {
        matches!(self.state, TurnState::Streaming { request, .. } if request == id)
    }

    /// Handles an event of a reply, and shows its text unless the reply is a summary. Returns the reply once it is
    /// complete, else `None`.
    pub(in crate::core) fn on_stream(
        &mut self,
        id: RequestId,
        event: StreamEvent,
        is_summary: bool,
        out: &mut Outbox,
    ) -> Option<Whole> {
        let TurnState::Streaming { request, reply } = &mut self.state else { return None };
        if *request != id {
            return None;
        }
        // A summary is no answer to the user, so it is shown only when it is complete.
        let mut show = |event| {
            if !is_summary {
                out.push(Effect::Show(event));
            }
        };
        match event {
            StreamEvent::MessageStarted { message_id, model } => {
                reply.message_id = message_id;
                reply.model = model;
            }
            StreamEvent::TextDelta { index, text } => {
                reply.text_delta(index, &text);
                show(UiEventKind::TextDelta { text });
            }
            StreamEvent::ThinkingDelta { text, .. } => {
                reply.thinking_delta(&text);
                show(UiEventKind::ThinkingDelta { text });
            }
            StreamEvent::UsageTold { usage } => reply.told = usage,
            StreamEvent::ToolUseStarted { .. } => {}
            StreamEvent::BlockClosed { index, block } => reply.close(index, block),
            StreamEvent::MessageCompleted { stop_reason, usage } => {
                return Some(Whole { reply: std::mem::take(reply), stop: stop_reason, usage });
            }
        }
        None
    }

    /// True if a part of the failed reply had arrived; `None` if the turn does not await this request.
    pub(in crate::core) fn had_begun(&self, id: RequestId) -> Option<bool> {
        match &self.state {
            TurnState::Streaming { request, reply } if *request == id => Some(reply.has_begun()),
            _ => None,
        }
    }

    pub(super) fn back_off(&mut self, failure: String, code: ErrorCode) -> TimerId {
        self.last_timer = TimerId(self.last_timer.0.saturating_add(1));
        self.state = TurnState::BackingOff { timer: self.last_timer, failure, code };
        self.last_timer
    }

    /// True if the turn waits for this timer before the next attempt.
    pub(in crate::core) fn on_timer(&self, fired: TimerId) -> bool {
        matches!(self.state, TurnState::BackingOff { timer, .. } if timer == fired)
    }

    /// Returns results as blocks for the model, in the order of the calls.
    pub(in crate::core) fn take_results(
        &mut self,
        results: Vec<(Option<ToolUseId>, CallResult)>,
    ) -> Vec<UserBlock> {
        let block = |(tool_use, result): (Option<ToolUseId>, CallResult)| {
            self.note_result(&result);
            let is_own = tool_use.is_none() && self.run.is_own_command;
            if is_own { quoted(&result.content) } else { result.into_block(tool_use) }
        };
        results.into_iter().map(block).collect()
    }

    fn note_result(&mut self, result: &CallResult) {
        if let Some(denial) = &result.denial {
            self.run.denial = Some(denial.clone());
        } else if result.status == ToolCallStatus::Completed {
            self.run.denial = None;
        }
        self.run.past.add(result);
    }

    pub(in crate::core) fn end_step(&mut self) -> Course {
        self.run.past.end()
    }

    /// Records the end of a plan's execution. `unexecuted` says why the plan is incomplete; `None` if it is complete.
    pub(in crate::core) fn note_plan(&mut self, unexecuted: Option<String>) {
        self.run.unexecuted = unexecuted;
    }

    /// Waits for the execution of a plan from before the session.
    pub(in crate::core) fn begin_plan(&mut self) {
        self.work();
        self.run.unexecuted = Some(NOT_EXECUTED.to_owned());
    }

    /// Records the result of a plan from before the session. The run fails if the plan was not executed.
    pub(in crate::core) fn conclude_plan(&mut self, result: &CallResult) {
        if self.run.is_own_command {
            return;
        }
        self.run.text.clone_from(&result.content);
        if result.denial.is_some() {
            self.run.unexecuted = None;
        } else if result.status == ToolCallStatus::Failed
            && self.run.unexecuted.as_deref() == Some(NOT_EXECUTED)
        {
            self.run.unexecuted = Some(result.content.clone());
        }
    }

    /// Ends the turn's request or calls. Does nothing between turns.
    pub(in crate::core) fn stop(&mut self, ending: &Ending, out: &mut Outbox) -> Stopped {
        let is_time = ending.reason == EndReason::TimeLimit;
        match std::mem::replace(&mut self.state, TurnState::Resting) {
            // A turn that waits for its start can be ended, and so can a start that takes too long.
            TurnState::Resting if self.waits || self.starting && is_time => Stopped::Ends(ending.clone()),
            TurnState::Resting => Stopped::Nothing,
            TurnState::Closed => {
                self.state = TurnState::Closed;
                Stopped::Nothing
            }
            // The provider's failure used up the time, so it is the reason.
            TurnState::BackingOff { failure, code, .. } if is_time => {
                let message =
                    format!("{failure}; the time limit of this run is reached before another attempt");
                Stopped::Ends(Ending::because(EndReason::Provider, code.mark_anew(&message)))
            }
            TurnState::BackingOff { .. } => Stopped::Ends(ending.clone()),
            TurnState::Streaming { request, reply } => {
                out.push(Effect::CancelStream(request));
                Stopped::Asking(reply)
            }
            TurnState::Working => Stopped::Working,
        }
    }

    pub(in crate::core) fn finish(&mut self, Ending { reason, message }: Ending, out: &mut Outbox) {
        self.state = TurnState::Resting;
        self.waits = false;
        self.earlier_plan = None;
        self.own_command = None;
        let RunAccount { steps, usage, cost, text, output, .. } = std::mem::take(&mut self.run);
        let cost = self.settings.tariff.0.map(|_| cost);
        out.push(Effect::Finish(RunEnd { reason, message, text, output, steps, usage, cost }));
    }

    pub(in crate::core) fn close(&mut self) {
        self.state = TurnState::Closed;
    }

    pub(in crate::core) fn change_model(&mut self, choice: ModelChoice, out: &mut Outbox) -> Option<String> {
        match self.phase() {
            Phase::Closed => None,
            Phase::Resting if choice.name == self.settings.model => {
                let message = format!("nothing changed: the model is {}", choice.name);
                out.notice(NoticeCode::ModelUnchanged, &message);
                None
            }
            Phase::Resting => {
                self.settings.options = choice.options;
                self.settings.tariff = Tariff(choice.prices);
                Some(std::mem::replace(&mut self.settings.model, choice.name))
            }
            Phase::Waiting | Phase::Asking | Phase::Working => {
                let message = "cannot change the model: a turn is running; interrupt it, or wait for its end";
                out.notice(NoticeCode::ModelRefused, message);
                None
            }
        }
    }

    pub(in crate::core) fn log_model(
        &self,
        from: String,
        new_context: bool,
        window: Window,
        out: &mut Outbox,
    ) {
        let to = self.settings.model.clone();
        let mut message = format!("model: {to}");
        if new_context {
            message.push_str(" · the new model reads the conversation without the earlier thinking");
        }
        if self.settings.tariff.0.is_none() {
            message.push_str(" · price unknown, so its cost is not counted");
        }
        let window = Some(window.context);
        out.log(EventKind::ModelChanged(ModelChanged { from, to, new_context, window }));
        out.notice(NoticeCode::ModelChanged, &message);
    }
}

/// Returns system prompt and tools for the log.
pub(in crate::core) fn fixed_prompt(system: &str, tools: &Registry) -> PromptFixed {
    PromptFixed {
        system: Some(system.to_owned()),
        tools: tools.definitions().iter().map(Into::into).collect(),
        same_as: None,
        new_context: None,
    }
}

/// The reason for the end of a plan that never began.
const NOT_EXECUTED: &str = "the plan was not executed";
