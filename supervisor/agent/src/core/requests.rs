//! The model's side of the loop: requests, retries, and what becomes of a reply.

use protocol::error_code::ErrorCode;
use protocol::event::{
    AssistantMessage, CompactionCause, EventKind, FailureKind, LeftOut, NoticeCode, TokenUsage,
};
use protocol::frontend::UiEventKind;
use serde_json::value::RawValue;

use super::agent::AgentState;
use super::conversation::{AfterSummary, INTERRUPTED, Then, is_too_long};
use super::reply::{ModelReply, ToolUse};
use super::tariff::Tariff;
use super::{Agent, Effect, EndReason, Estimate, RequestId, TimerId, Window};
use crate::conversation::{GiveUp, ModelRequest, ProviderError, StopReason, StreamEvent, Tried};

/// The most replies in a row that may be cut at their limit.
const MAX_CUTS: u32 = 3;

/// The most replies in a row that may say nothing.
const MAX_SILENCES: u32 = 1;

/// The model is told so after a reply with nothing in it.
const SILENT: &str =
    "Your reply was empty: no words, and no tool call. Go on with the task, or say in words what came of it.";

/// The most replies in a row that the provider may pause: a bound on a loop that only the provider controls.
const MAX_PAUSES: u32 = 16;

impl Agent {
    /// Ends the run if its budget allows no further request.
    pub(super) fn is_out_of_budget(&mut self) -> bool {
        let limits = self.config.limits;
        if let Some(max) = limits.max_steps.filter(|max| self.run.steps >= *max) {
            self.finish(EndReason::StepLimit, Some(format!("the limit of {max} steps is reached")));
            return true;
        }
        if let Some(max) = limits.max_tokens.filter(|max| self.run.usage.total() >= *max) {
            self.finish(EndReason::TokenLimit, Some(format!("the limit of {max} tokens is reached")));
            return true;
        }
        if let Some(max) = limits.max_usd.filter(|max| self.run.cost >= *max) {
            let message =
                format!("the limit of {max} is reached: what was asked so far cost {}", self.run.cost);
            self.finish(EndReason::CostLimit, Some(message));
            return true;
        }
        false
    }

    pub(super) fn begin_attempt(&mut self) {
        self.run.attempt = self.run.attempt.saturating_add(1);
        self.last_request = RequestId(self.last_request.0.saturating_add(1));
        let request = self.last_request;
        let (step, attempt) = (self.run.steps.saturating_add(1), self.run.attempt);
        self.out.log(EventKind::ModelRequested { step, attempt });
        self.state = AgentState::Streaming { request, reply: ModelReply::default() };
        let asked = self.conversation.asked(&mut self.out);
        let model = ModelRequest {
            model: self.config.model.clone(),
            system: self.config.system.clone(),
            tools: self.config.tools.definitions(),
            messages: asked.messages,
            max_tokens: asked.max_tokens,
            options: self.config.options,
        };
        let estimate = self.estimate(&model);
        self.out.push(Effect::StartStream { request, model, estimate });
    }

    /// The most that a request may come to.
    fn estimate(&self, model: &ModelRequest) -> Estimate {
        let (input, output) = (self.conversation.tokens(), u64::from(model.max_tokens));
        let usage = TokenUsage { input, output, ..TokenUsage::default() };
        Estimate { tokens: usage.total(), cost: self.tariff().cost(&usage) }
    }

    /// The session has nothing left for the request that waits.
    pub(super) fn on_out_of_budget(&mut self, id: RequestId, reason: EndReason, message: String) {
        if matches!(self.state, AgentState::Streaming { request, .. } if request == id) {
            self.finish(reason, Some(message));
        }
    }

    pub(super) fn on_stream(&mut self, id: RequestId, event: StreamEvent) {
        let AgentState::Streaming { request, reply } = &mut self.state else {
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
                if !self.conversation.is_compacting() {
                    self.out.push(Effect::Show(UiEventKind::TextDelta { text }));
                }
            }
            StreamEvent::ThinkingDelta { text, .. } => {
                reply.thinking_delta(&text);
                if !self.conversation.is_compacting() {
                    self.out.push(Effect::Show(UiEventKind::ThinkingDelta { text }));
                }
            }
            StreamEvent::UsageTold { usage } => reply.told = usage,
            StreamEvent::ToolUseStarted { .. } => {}
            StreamEvent::BlockClosed { index, block } => reply.close(index, block),
            StreamEvent::MessageCompleted { stop_reason, usage } => {
                let reply = std::mem::take(reply);
                self.on_reply(reply, &stop_reason, usage);
            }
        }
    }

    pub(super) fn on_timer(&mut self, fired: TimerId) {
        if matches!(self.state, AgentState::BackingOff { timer, .. } if timer == fired) {
            self.begin_attempt();
        }
    }

    pub(super) fn on_stream_failed(&mut self, id: RequestId, error: &ProviderError) {
        if let AgentState::Streaming { request, reply } = &self.state
            && *request == id
        {
            let has_begun = reply.has_begun();
            self.request_failed(error, has_begun);
        }
    }

    /// What came of the reply is void; the same request is sent again, or the run ends.
    fn request_failed(&mut self, error: &ProviderError, has_begun: bool) {
        let tried = Tried { attempt: self.run.attempt, waited: self.run.waited };
        let delay = self.config.backoff.delay(tried, error);
        let left_out = if delay.is_err() { self.leave_out(error) } else { None };
        self.out.log(EventKind::ModelFailed {
            kind: FailureKind::from(error.kind.as_str()),
            message: error.message.clone(),
            discarded: has_begun,
            retry_in_ms: delay.as_ref().ok().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            left_out,
        });
        if let Some(part) = left_out {
            self.out.notice(NoticeCode::PartLeftOut, without(part));
            return self.begin_attempt();
        }
        let after = match delay {
            Ok(after) => after,
            Err(why) => return self.given_up(error, &why),
        };
        self.run.waited = self.run.waited.saturating_add(after);
        self.last_timer = TimerId(self.last_timer.0.saturating_add(1));
        self.state = AgentState::BackingOff {
            timer: self.last_timer,
            failure: error.message.clone(),
            code: error.error_code(),
        };
        self.out.push(Effect::StartTimer { id: self.last_timer, after });
    }

    /// Leaves the part of the conversation out that a refusal names, once for a request (WIRE Z3).
    fn leave_out(&mut self, error: &ProviderError) -> Option<LeftOut> {
        let part = error.blames.filter(|_| self.run.left_out.is_none())?;
        if self.conversation.leave_out(part) {
            self.run.left_out = Some(part);
        }
        self.run.left_out
    }

    /// A request that is not sent again: without the conversation's length it might have gone well.
    fn given_up(&mut self, error: &ProviderError, why: &GiveUp) {
        if self.conversation.is_compacting() {
            let tariff = self.tariff();
            if let Some(after) = self.conversation.on_summary_failed(error, tariff, &self.seen, &mut self.out)
            {
                return self.after_summary(after);
            }
        }
        if is_refused(error) && self.conversation.drop_interrupted() {
            let message = format!("{}; it goes on without the interrupted reply", error.message);
            self.out.notice(NoticeCode::InterruptedReplyDropped, &message);
            return self.begin_attempt();
        }
        let overflow = is_too_long(error);
        if overflow {
            self.conversation.learn_window(error.named_window());
        }
        if overflow && self.can_shorten() {
            return self.compact_overflow();
        }
        let message = given_up(error, why);
        if overflow {
            let remedy = "give a smaller task, or choose a model with a larger window";
            return self.finish_full(hinted(message, Some(remedy)));
        }
        let message = error.error_code().mark_anew(&message);
        self.finish(EndReason::Provider, Some(hinted(message, error.hint.as_deref())));
    }

    /// A reply to the request for a summary. Calls in it do not run.
    fn on_summary(&mut self, reply: &ModelReply, stop: &StopReason, usage: TokenUsage) {
        let tariff = self.tariff();
        self.run.steps = self.run.steps.saturating_add(1);
        self.run.usage += usage;
        self.run.cost += tariff.cost(&usage).unwrap_or_default();
        let after =
            self.conversation.on_summary(&reply.text(), stop, usage, tariff, &self.seen, &mut self.out);
        self.after_summary(after);
    }

    fn after_summary(&mut self, after: AfterSummary) {
        match after {
            AfterSummary::Ask => self.ask_anew(),
            AfterSummary::Begun(Then::Step) => self.begin_step(),
            AfterSummary::Begun(Then::End) => self.end_turn(),
        }
    }

    /// Has the next request ask for a summary.
    pub(super) fn compact(&mut self, cause: CompactionCause, then: Then) {
        self.conversation.compact(cause, then, &mut self.out);
        self.ask_anew();
    }

    fn compact_overflow(&mut self) {
        self.run.overflowed = true;
        self.compact(CompactionCause::Overflow, Then::Step);
    }

    fn ask_anew(&mut self) {
        if !self.is_out_of_budget() {
            self.run.attempt = 0;
            self.begin_attempt();
        }
    }

    /// The user wants a summary: now at rest, else before the next request.
    pub(super) fn on_compact(&mut self) {
        let at_rest = match self.state {
            AgentState::Closed => return,
            AgentState::Resting => true,
            AgentState::Streaming { .. } | AgentState::BackingOff { .. } | AgentState::Working => false,
        };
        if self.conversation.wish(at_rest, &mut self.out) {
            self.run = super::agent::TurnRun::default();
            self.compact(CompactionCause::Request, Then::End);
        }
    }

    /// Ends the run, since no context could hold what is to be said.
    pub(super) fn finish_full(&mut self, message: String) {
        self.finish(EndReason::ContextFull, Some(ErrorCode::ContextTooLong.mark_anew(&message)));
    }

    /// Whether a new context could help against one that the provider finds too long.
    fn can_shorten(&self) -> bool {
        !self.run.overflowed && self.conversation.can_shorten()
    }

    /// A reply came to its end: WIRE, "Stop reasons".
    pub(super) fn on_reply(&mut self, reply: ModelReply, stop: &StopReason, usage: TokenUsage) {
        if self.conversation.is_compacting() {
            return self.on_summary(&reply, stop, usage);
        }
        if reply.has_twin_calls() {
            return self.request_failed(&twin_calls(), true);
        }
        self.run.left_out = None;
        self.run.steps = self.run.steps.saturating_add(1);
        self.run.usage += usage;
        self.run.cost += self.tariff().cost(&usage).unwrap_or_default();
        if let Some(tool) = self.written_call(&reply, stop)
            && !self.is_answer(&reply.text())
        {
            return self.on_written_call(reply, stop, usage, &tool);
        }
        self.remember_words(&reply);
        match stop {
            StopReason::PauseTurn if reply.call_names().is_empty() => self.on_pause(reply, usage),
            StopReason::MaxTokens | StopReason::PauseTurn => self.on_cut(reply, stop, usage),
            StopReason::Refusal(details) => self.on_refusal(&reply, details.as_deref(), usage),
            StopReason::ContextWindowExceeded => {
                self.keep_cut(reply, stop.as_str(), usage);
                self.conversation.narrow_window(Some(usage.total()).filter(|total| *total >= Window::LEAST));
                if self.can_shorten() {
                    self.compact_overflow();
                } else {
                    self.finish_full(self.conversation.full(usage.total()));
                }
            }
            StopReason::ToolUse | StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) => {
                self.on_whole(reply, stop, usage);
            }
        }
    }

    /// A reply that came to its own end: its calls are run, whatever the reason says that some servers give (WIRE Z5).
    fn on_whole(&mut self, reply: ModelReply, stop: &StopReason, usage: TokenUsage) {
        (self.run.cuts, self.run.pauses, self.run.overflowed) = (0, 0, false);
        let is_silent = says_nothing(&reply.text());
        let calls = self.keep_whole(reply, stop.as_str(), usage);
        if !calls.is_empty() {
            (self.run.silences, self.run.written_calls) = (0, 0);
            self.note_step(&calls);
            self.begin_calls(calls);
        } else if is_silent && !self.conversation.has_unread_words() && !self.has_executed() {
            self.on_silence();
        } else {
            self.end_turn();
        }
    }

    /// The model said nothing and called nothing: it is asked once more, since nobody knows what that means.
    fn on_silence(&mut self) {
        self.run.silences = self.run.silences.saturating_add(1);
        if self.run.silences > MAX_SILENCES {
            let message = "the model said nothing, and called no tool, twice in a row";
            return self.finish(EndReason::NothingSaid, Some(message.to_owned()));
        }
        self.conversation.note(SILENT.to_owned());
        self.begin_step();
    }

    /// The same history goes back with the reply, unchanged.
    fn on_pause(&mut self, reply: ModelReply, usage: TokenUsage) {
        self.keep_whole(reply, StopReason::PauseTurn.as_str(), usage);
        self.run.pauses = self.run.pauses.saturating_add(1);
        if self.run.pauses > MAX_PAUSES {
            let message = format!("the provider paused the reply {MAX_PAUSES} times in a row");
            return self.finish(EndReason::GaveUp, Some(message));
        }
        self.begin_step();
    }

    /// The reply reached its limit: the model is told, and goes on.
    fn on_cut(&mut self, reply: ModelReply, stop: &StopReason, usage: TokenUsage) {
        let calls = reply.call_names().join(", ");
        self.keep_cut(reply, stop.as_str(), usage);
        self.run.cuts = self.run.cuts.saturating_add(1);
        let limit = self.conversation.reply_limit();
        if self.run.cuts > MAX_CUTS {
            let message = format!("the reply was cut at {limit} tokens {} times in a row", self.run.cuts);
            return self.finish(EndReason::GaveUp, Some(message));
        }
        self.conversation.note(cut_note(limit, &calls));
        self.begin_step();
    }

    /// A refused reply is no part of the conversation: sent back, it would be refused again.
    fn on_refusal(&mut self, reply: &ModelReply, details: Option<&str>, usage: TokenUsage) {
        self.log_reply(reply, Vec::new(), "refusal", usage);
        let details = details.map_or_else(String::new, |details| format!(": {details}"));
        self.finish(EndReason::Refusal, Some(format!("the model refused to go on{details}")));
    }

    /// A reply that was interrupted: what was shown of it stays in the conversation. What nobody told of its cost is estimated, and
    /// counts.
    pub(super) fn keep_interrupted(&mut self, reply: &ModelReply) {
        self.remember_words(reply);
        if !reply.has_begun() {
            return;
        }
        let usage = self.estimated(reply);
        let echo = reply.interrupted();
        self.log_as(reply, echo.clone(), INTERRUPTED, usage, true);
        self.conversation.reply_in_part(echo);
    }

    /// About what a reply cost that was cut off, which the run has spent: the provider's own count as far as it was told.
    pub(super) fn estimated(&mut self, reply: &ModelReply) -> TokenUsage {
        let told = reply.told;
        let input = if told.prompt() == 0 { self.conversation.tokens() } else { told.input };
        let output = told.output.max(reply.tokens());
        let usage = TokenUsage { input, output, ..told };
        let estimated = usage.total().saturating_sub(told.total());
        let usage = TokenUsage { estimated, ..usage };
        self.run.usage += usage;
        self.run.cost += self.tariff().cost(&usage).unwrap_or_default();
        usage
    }

    pub(super) fn keep_whole(&mut self, reply: ModelReply, stop: &str, usage: TokenUsage) -> Vec<ToolUse> {
        let (echo, calls) = reply.complete();
        self.log_reply(&reply, echo.clone(), stop, usage);
        self.conversation.reply(echo, usage);
        calls
    }

    fn keep_cut(&mut self, reply: ModelReply, stop: &str, usage: TokenUsage) {
        let echo = reply.cut();
        self.log_reply(&reply, echo.clone(), stop, usage);
        self.conversation.reply(echo, usage);
    }

    fn log_reply(&mut self, reply: &ModelReply, content: Vec<Box<RawValue>>, stop: &str, usage: TokenUsage) {
        self.log_as(reply, content, stop, usage, false);
    }

    pub(super) fn log_as(
        &mut self,
        reply: &ModelReply,
        content: Vec<Box<RawValue>>,
        stop: &str,
        usage: TokenUsage,
        estimated: bool,
    ) {
        self.out.log(EventKind::AssistantMessage(AssistantMessage {
            message_id: reply.message_id.clone(),
            model: reply.model.clone(),
            content,
            stop_reason: stop.to_owned(),
            usage,
            estimated,
            cost_usd: self.tariff().cost(&usage),
        }));
    }

    pub(super) const fn tariff(&self) -> Tariff {
        Tariff(self.config.prices)
    }

    fn remember_words(&mut self, reply: &ModelReply) {
        let text = reply.text();
        if !text.is_empty() {
            self.run.text = text;
        }
    }
}

/// One line about what the provider does not take back.
const fn without(part: LeftOut) -> &'static str {
    match part {
        LeftOut::Thinking => {
            "the provider does not take back the model's thinking so far: the conversation goes on without it"
        }
        LeftOut::Message(_) => {
            "the provider does not take back a part of the conversation: it goes on without that part"
        }
    }
}

fn cut_note(limit: u32, calls: &str) -> String {
    let lost = match calls {
        "" => String::new(),
        calls => format!(" The tool calls in it ({calls}) were not run: make them again, smaller."),
    };
    format!("Your reply was cut at its limit of {limit} tokens.{lost} Go on from where it ends.")
}

/// What is said of a failure that is not tried again, though another time it might go well.
fn given_up(error: &ProviderError, why: &GiveUp) -> String {
    let message = &error.message;
    match why {
        GiveUp::Pointless | GiveUp::Attempts(1) => message.clone(),
        why => format!("{message}; {why}"),
    }
}

/// A message for people: the cause in one line, a step that helps in the next.
fn hinted(message: String, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{message}\n  hint: {hint}"),
        None => message,
    }
}

/// A gateway's fault; the API itself never sends such a reply.
fn twin_calls() -> ProviderError {
    ProviderError::new("invalid_response", "the provider sent a reply with two tool calls of the same id")
        .retryable()
}

/// Whether the provider finds fault with what was sent, and not with its length.
fn is_refused(error: &ProviderError) -> bool {
    matches!(error.status, Some(400 | 422)) && !is_too_long(error)
}

/// True of a text without anything that a person would see: blanks, control characters, characters of no width.
fn says_nothing(text: &str) -> bool {
    let is_unseen =
        |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    text.chars().all(|c| c.is_whitespace() || c.is_control() || is_unseen(c))
}
