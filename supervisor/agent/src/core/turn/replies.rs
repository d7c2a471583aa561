//! Complete and interrupted replies: the blocks that are kept, and the next step.

use gate::tools::ToolUseError;
use protocol::event::{AssistantMessage, EventKind, NoticeCode, TokenUsage};
use serde_json::value::RawValue;

use super::machine::{Turn, Whole};
use super::reply::ModelReply;
use super::written_call;
use crate::conversation::{ProviderError, StopReason};
use crate::core::EndReason;
use crate::core::call::ToolUse;
use crate::core::conversation::INTERRUPTED;
use crate::core::end::Ending;
use crate::core::outbox::Outbox;

/// Maximum number of consecutive replies that are cut at the token limit.
const MAX_CUTS: u32 = 3;

/// Maximum number of consecutive empty replies.
const MAX_SILENCES: u32 = 1;

/// Maximum number of consecutive replies with a call as text.
const MAX_WRITTEN: u32 = 1;

/// Maximum number of consecutive replies that do not fit a schema.
const MAX_MISFITS: u32 = 1;

/// Maximum number of consecutive paused replies: a bound on a loop that only the provider controls.
const MAX_PAUSES: u32 = 16;

/// Text for the model after an empty reply.
const SILENT: &str =
    "Your reply was empty: no words, and no tool call. Go on with the task, or say in words what came of it.";

pub(in crate::core) struct Kept {
    /// The blocks that are sent back to the model; `None` if the reply does not become a part of the conversation.
    pub(in crate::core) echo: Option<Vec<Box<RawValue>>>,
    pub(in crate::core) then: Replied,
}

#[derive(Debug)]
pub(in crate::core) enum Replied {
    /// A request follows. The text, if any, is added to it for the model.
    Step(Option<String>),
    Calls(Vec<ToolUse>),
    TurnEnds,
    Ends(Ending),
    TooLong,
}

#[derive(Debug)]
pub(in crate::core) enum TurnEnd {
    /// The model is asked for another answer. The text says why.
    AsksAgain(String),
    Ends(Ending),
}

impl Turn {
    pub(in crate::core) fn count_summary(&mut self, usage: TokenUsage) {
        self.run.count(usage, self.settings.tariff);
    }

    /// Handles a complete reply. `has_executed` is true if an executor has no step left. `unread` is true if the user
    /// has written more, so that the turn goes on. `limit` is the token limit of a reply.
    pub(in crate::core) fn on_reply(
        &mut self,
        whole: Whole,
        has_executed: bool,
        unread: bool,
        limit: u32,
        out: &mut Outbox,
    ) -> Kept {
        let Whole { reply, stop, usage } = whole;
        self.run.left_out = None;
        self.run.count(usage, self.settings.tariff);
        if !has_executed
            && let Some(tool) = written_call::of(&reply, &stop, &self.settings.tools)
            && !self.is_answer(&reply.text())
        {
            return self.on_written_call(&Whole { reply, stop, usage }, &tool, unread, out);
        }
        self.remember_words(&reply);
        match &stop {
            StopReason::PauseTurn if reply.call_names().is_empty() => {
                let (echo, _) = reply.complete();
                self.keep(&reply, echo, &stop, usage, out, Self::after_pause)
            }
            StopReason::MaxTokens | StopReason::PauseTurn => {
                let calls = reply.call_names().join(", ");
                self.keep(&reply, reply.cut(), &stop, usage, out, |turn| turn.after_cut(limit, &calls))
            }
            StopReason::Refusal(details) => {
                out.log(EventKind::AssistantMessage(self.said(&reply, Vec::new(), "refusal", usage)));
                let details = details.as_ref().map_or_else(String::new, |details| format!(": {details}"));
                let message = format!("the model refused to continue{details}");
                // If the refusal were sent back, the model would refuse again.
                Kept { echo: None, then: Replied::Ends(Ending::because(EndReason::Refusal, message)) }
            }
            StopReason::ContextWindowExceeded => {
                self.keep(&reply, reply.cut(), &stop, usage, out, |_| Replied::TooLong)
            }
            StopReason::ToolUse | StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) => {
                let is_silent = says_nothing(&reply.text()) && !unread && !has_executed;
                let (echo, calls) = reply.complete();
                self.keep(&reply, echo, &stop, usage, out, |turn| turn.after_whole(calls, is_silent))
            }
        }
    }

    fn keep(
        &mut self,
        reply: &ModelReply,
        echo: Vec<Box<RawValue>>,
        stop: &StopReason,
        usage: TokenUsage,
        out: &mut Outbox,
        then: impl FnOnce(&mut Self) -> Replied,
    ) -> Kept {
        out.log(EventKind::AssistantMessage(self.said(reply, echo.clone(), stop.as_str(), usage)));
        Kept { echo: Some(echo), then: then(self) }
    }

    /// Returns the next step after a complete reply. Tool calls in the reply run, whatever its stop reason is.
    fn after_whole(&mut self, calls: Vec<ToolUse>, is_silent: bool) -> Replied {
        self.forget_trouble();
        if !calls.is_empty() {
            (self.run.in_a_row.silences, self.run.in_a_row.written_calls) = (0, 0);
            let is_known = |call: &ToolUse| {
                !matches!(call.read(&self.settings.tools), Err(ToolUseError::Unknown { .. }))
            };
            let known: Vec<_> = calls.iter().map(|call| (call, is_known(call))).collect();
            self.run.past.begin(known.into_iter());
            return Replied::Calls(calls);
        }
        if !is_silent {
            return Replied::TurnEnds;
        }
        // The reason for an empty reply is unknown, so the model is asked once more.
        self.run.in_a_row.silences = self.run.in_a_row.silences.saturating_add(1);
        if self.run.in_a_row.silences > MAX_SILENCES {
            let message = "the model said nothing, and called no tool, twice in a row";
            return Replied::Ends(Ending::because(EndReason::NothingSaid, message));
        }
        Replied::Step(Some(SILENT.to_owned()))
    }

    /// Returns the next step after a reply that the provider paused: the same history is sent again, with the reply.
    fn after_pause(&mut self) -> Replied {
        self.run.in_a_row.pauses = self.run.in_a_row.pauses.saturating_add(1);
        if self.run.in_a_row.pauses > MAX_PAUSES {
            let message = format!("the provider paused the reply {MAX_PAUSES} times in a row");
            return Replied::Ends(Ending::because(EndReason::GaveUp, message));
        }
        Replied::Step(None)
    }

    /// Returns the next step after a reply that was cut at the token limit: the model is told of the cut.
    fn after_cut(&mut self, limit: u32, calls: &str) -> Replied {
        self.run.in_a_row.cuts = self.run.in_a_row.cuts.saturating_add(1);
        let cuts = self.run.in_a_row.cuts;
        if cuts > MAX_CUTS {
            let message = format!("the reply was cut at {limit} tokens {cuts} times in a row");
            return Replied::Ends(Ending::because(EndReason::GaveUp, message));
        }
        Replied::Step(Some(cut_note(limit, calls)))
    }

    /// Asks the model once to repeat a call that it wrote as text.
    fn on_written_call(&mut self, whole: &Whole, tool: &str, unread: bool, out: &mut Outbox) -> Kept {
        self.forget_trouble();
        // The notice comes before the reply, so that no front end prints the reply as an answer.
        let said = format!(
            "the model wrote a call of {tool} as text; the model's server did not recognise the call, so it was not run"
        );
        out.notice(NoticeCode::CallAsText, &said);
        let (echo, _) = whole.reply.complete();
        self.keep(&whole.reply, echo, &whole.stop, whole.usage, out, |turn| {
            turn.run.in_a_row.written_calls = turn.run.in_a_row.written_calls.saturating_add(1);
            if turn.run.in_a_row.written_calls > MAX_WRITTEN && !unread {
                return Replied::Ends(Ending::because(EndReason::CallAsText, written_call::twice()));
            }
            Replied::Step(Some(written_call::told(tool)))
        })
    }

    fn forget_trouble(&mut self) {
        (self.run.in_a_row.cuts, self.run.in_a_row.pauses, self.run.overflowed) = (0, 0, false);
    }

    /// Ends the turn. `unexecuted` is the reason why an executor's plan is incomplete; `None` if it is complete.
    pub(in crate::core) fn end(&mut self, unexecuted: Option<String>, out: &mut Outbox) -> TurnEnd {
        if let Some(message) = self.run.unexecuted.clone().or(unexecuted) {
            return TurnEnd::Ends(Ending::because(EndReason::GaveUp, message));
        }
        if let Some(faults) = self.faults() {
            return self.ask_for_another_answer(&faults, out);
        }
        match self.run.denial.take() {
            // A user who typed the command sees what was denied.
            Some(denial) if self.settings.fails_when_denied && !self.run.is_own_command => {
                TurnEnd::Ends(Ending::because(EndReason::DeniedAtEnd, denial))
            }
            _ => TurnEnd::Ends(Ending::of(EndReason::Done)),
        }
    }

    fn is_answer(&self, reply: &str) -> bool {
        self.settings.answer.as_ref().is_some_and(|answer| answer.check(reply).is_ok())
    }

    /// Stores the last reply of a turn as the answer if it fits the schema. Otherwise returns the faults of the reply.
    fn faults(&mut self) -> Option<String> {
        let answer = self.settings.answer.as_ref().filter(|_| !self.run.is_own_command)?;
        match answer.check(&self.run.text) {
            Ok(value) => {
                self.run.output = Some(value);
                None
            }
            Err(faults) => Some(faults),
        }
    }

    fn ask_for_another_answer(&mut self, faults: &str, out: &mut Outbox) -> TurnEnd {
        let first = faults.lines().next().unwrap_or_default();
        if self.run.in_a_row.misfits >= MAX_MISFITS {
            let message = format!("the answer does not fit the schema, also on the second try: {first}");
            return TurnEnd::Ends(Ending::because(EndReason::SchemaUnmet, message));
        }
        self.run.in_a_row.misfits = self.run.in_a_row.misfits.saturating_add(1);
        let message = format!("the answer does not fit the schema: {first}; the model is asked once more");
        out.notice(NoticeCode::AnswerMisfit, &message);
        TurnEnd::AsksAgain(format!(
            "Your answer does not fit the JSON Schema that it has to fit:\n{faults}\nReply with the whole JSON value \
             once more, corrected, and with nothing else."
        ))
    }

    /// Logs an interrupted reply, with estimates for missing token counts. Returns the blocks that are sent back to the
    /// model, so that the text that the user has seen stays in the conversation.
    pub(in crate::core) fn cut_off(
        &mut self,
        reply: &ModelReply,
        prompt: u64,
        out: &mut Outbox,
    ) -> Vec<Box<RawValue>> {
        self.remember_words(reply);
        if !reply.has_begun() {
            return Vec::new();
        }
        let usage = self.estimated(reply, prompt);
        let echo = reply.interrupted();
        let said = self.said(reply, echo.clone(), INTERRUPTED, usage);
        out.log(EventKind::AssistantMessage(AssistantMessage { estimated: true, ..said }));
        echo
    }

    /// Counts the tokens of an interrupted summary, and returns them.
    pub(in crate::core) fn cut_summary_off(&mut self, reply: &ModelReply, prompt: u64) -> TokenUsage {
        if reply.has_begun() { self.estimated(reply, prompt) } else { TokenUsage::default() }
    }

    /// Completes the provider's token count of an interrupted reply. `prompt` is the estimated size of the prompt.
    fn estimated(&mut self, reply: &ModelReply, prompt: u64) -> TokenUsage {
        let told = reply.told;
        let input = if told.prompt() == 0 { prompt } else { told.input };
        let output = told.output.max(reply.tokens());
        let usage = TokenUsage { input, output, ..told };
        let estimated = usage.total().saturating_sub(told.total());
        let usage = TokenUsage { estimated, ..usage };
        self.run.spend(usage, self.settings.tariff);
        usage
    }

    fn said(
        &self,
        reply: &ModelReply,
        content: Vec<Box<RawValue>>,
        stop: &str,
        usage: TokenUsage,
    ) -> AssistantMessage {
        AssistantMessage {
            message_id: reply.message_id.clone(),
            model: reply.model.clone(),
            content,
            stop_reason: stop.to_owned(),
            usage,
            estimated: false,
            cost_usd: self.settings.tariff.cost(&usage),
        }
    }

    fn remember_words(&mut self, reply: &ModelReply) {
        let text = reply.text();
        if !text.is_empty() {
            self.run.text = text;
        }
    }
}

impl Whole {
    /// Returns an error if two tool calls of the reply have the same id; else `None`. Some gateways send such replies.
    pub(in crate::core) fn fault(&self) -> Option<ProviderError> {
        let twins = "the provider sent a reply with two tool calls of the same id";
        self.reply.has_twin_calls().then(|| ProviderError::new("invalid_response", twins).retryable())
    }
}

fn cut_note(limit: u32, calls: &str) -> String {
    let lost = match calls {
        "" => String::new(),
        calls => format!(" The tool calls in it ({calls}) were not run: make them again, smaller."),
    };
    format!("Your reply was cut at its limit of {limit} tokens.{lost} Go on from where it ends.")
}

/// True for a text without visible characters.
fn says_nothing(text: &str) -> bool {
    let is_unseen =
        |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    text.chars().all(|c| c.is_whitespace() || c.is_control() || is_unseen(c))
}
