//! Replaces a context that is too long by a new one that begins with a summary.
//!
//! The model writes the summary at the end of the conversation, because the provider has cached the conversation. If
//! this request fails, the model gets a shortened record of the conversation. If that request fails, too, the new
//! context contains the facts that are known without the model. The same reply is never summarised twice.

use std::sync::Arc;

use gate::StandingRights;
use protocol::event::{
    AssistantMessage, CompactionCause, CompactionStarted, ContextCompacted, EventKind, NoticeCode,
    SummaryFrom, TokenUsage,
};

use super::Conversation;
use super::history::{History, in_block};
use super::restore::INTERRUPTED;
use super::summary::{INSTRUCTION, Known, record};
use super::window::tokens;
use crate::conversation::{Message, ProviderError, StopReason, UserBlock};
use crate::core::Window;
use crate::core::outbox::Outbox;
use crate::core::phase::Phase;
use crate::core::tariff::Tariff;

/// The summary that the model is writing, and the user's request for a summary.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    underway: Option<Compacting>,
    /// True if the user wants a summary before the next request.
    wanted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Compacting {
    cause: CompactionCause,
    from: SummaryFrom,
    then: Then,
    /// Estimated tokens of the prompt before the summary.
    before: u64,
    usage: TokenUsage,
}

/// The step that follows a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum Then {
    /// The step that waited for the summary.
    Step,
    End,
}

/// Decision about the context before a step.
#[derive(Debug)]
pub(in crate::core) enum Next {
    /// The context has space for the step.
    Step,
    /// A summary comes first.
    Compact(CompactionCause),
    /// No context has space for the step. The sentence tells the user what to do.
    Full(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum AfterSummary {
    /// The model is asked for a summary again, now with a record of the conversation.
    Ask,
    Begun(Then),
}

/// Way to continue after a request that failed permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum Mended {
    Summary(AfterSummary),
    /// The same request is sent without the interrupted reply: the provider rejects that reply.
    WithoutInterrupted,
    /// A summary may make the context short enough for the provider.
    Shortened,
    Nothing,
}

pub(in crate::core) struct Asked {
    pub(in crate::core) messages: Vec<Arc<Message>>,
    pub(in crate::core) max_tokens: u32,
}

impl Conversation {
    pub(in crate::core) const fn is_compacting(&self) -> bool {
        self.compaction.underway.is_some()
    }

    /// Handles the user's request for a summary. Returns true if the summary begins now, else false.
    pub(in crate::core) fn on_compact(&mut self, phase: Phase, out: &mut Outbox) -> bool {
        match phase {
            Phase::Closed => false,
            Phase::Resting | Phase::Waiting => {
                let begins = self.history.has_replies() && self.summary_is_shorter(out);
                if !begins {
                    self.nothing_to_compact(out);
                }
                begins
            }
            Phase::Asking | Phase::Working => {
                let message = if self.is_compacting() {
                    "the conversation is being summarised already"
                } else {
                    self.compaction.wanted = true;
                    "the conversation will be summarised before the next request"
                };
                out.notice(NoticeCode::CompactionQueued, message);
                false
            }
        }
    }

    /// Takes the user's request for a summary at the end of a turn. Returns true if a summary follows.
    pub(in crate::core) fn takes_wish(&mut self, out: &mut Outbox) -> bool {
        if !std::mem::take(&mut self.compaction.wanted) || !self.history.has_replies() {
            return false;
        }
        let wins = self.summary_is_shorter(out);
        if !wins {
            self.nothing_to_compact(out);
        }
        wins
    }

    /// Decides on the next step. Its prompt must leave tokens for a reply, and for the results after the reply.
    pub(in crate::core) fn next(&mut self, out: &mut Outbox) -> Next {
        let next = self.history.tokens().saturating_add(self.unsaid.tokens());
        let wanted = std::mem::take(&mut self.compaction.wanted);
        let budget = self.budget;
        if !self.history.has_replies() {
            return if next <= budget.prompt() { Next::Step } else { Next::Full(self.full(next)) };
        }
        if wanted && self.summary_is_shorter(out) {
            return Next::Compact(CompactionCause::Request);
        } else if wanted {
            self.nothing_to_compact(out);
        }
        if next <= budget.compact_at() {
            return Next::Step;
        }
        if self.history.began_too_long(budget.compact_at()) {
            return Next::Full(self.full(next));
        }
        Next::Compact(CompactionCause::Limit)
    }

    /// Returns the sentence about a context that cannot be made short enough. A new context would have `next` tokens.
    pub(in crate::core) fn full(&self, next: u64) -> String {
        format!(
            "the context is full: even a new context has about {next} tokens, and the model's window has room for {} with the reply; \
             shorten AGENTS.md, give a smaller task, or choose a model with a larger window",
            self.budget.context()
        )
    }

    /// True if a new context would be shorter, although it repeats the user's words and the last messages.
    fn summary_is_shorter(&mut self, out: &mut Outbox) -> bool {
        self.read(out);
        let entries = self.history.said();
        let known = Known { ledger: &self.ledger, summary: None, entries: &entries };
        let least = in_block(tokens(&known.first_message(self.budget.first_message())));
        self.history.said_tokens() > least
    }

    fn nothing_to_compact(&self, out: &mut Outbox) {
        let message = if self.history.has_replies() {
            "the conversation is not summarised: a summary would be longer than the conversation"
        } else {
            "there is no conversation yet that could be summarised"
        };
        out.notice(NoticeCode::NothingToCompact, message);
    }

    /// Makes the next request a request for a summary. `then` is the step that follows the summary.
    pub(in crate::core) fn compact(&mut self, cause: CompactionCause, then: Then, out: &mut Outbox) {
        // The provider has rejected the conversation as too long, so that it does not get all of it again.
        let is_too_long = cause == CompactionCause::Overflow;
        let before = self.history.tokens().saturating_add(self.unsaid.tokens());
        let window = self.budget.context();
        out.log(EventKind::CompactionStarted(CompactionStarted { cause, tokens: before, window }));
        let fits = !is_too_long && self.budget.can_ask_after(self.history.tokens());
        let from = if fits { SummaryFrom::Conversation } else { SummaryFrom::Record };
        let usage = TokenUsage::default();
        self.compaction.underway = Some(Compacting { cause, from, then, before, usage });
    }

    /// True if a summary could make the context short enough for the provider.
    pub(in crate::core) fn can_shorten(&self) -> bool {
        !self.is_compacting() && self.history.has_replies()
    }

    /// Derives a smaller window from a rejected request, for the rest of the session. `named` is the size in the error.
    fn narrow_window(&mut self, named: Option<u64>) {
        let refused = match self.compaction.underway {
            Some(Compacting { from: SummaryFrom::Record, .. }) => self.budget.record(),
            Some(_) | None => self.history.tokens(),
        };
        self.budget = self.budget.in_window(self.budget.window_after(refused, named));
    }

    /// Derives a smaller window from a reply that ended because the window was full.
    pub(in crate::core) fn overflow(&mut self, usage: TokenUsage) {
        self.narrow_window(Some(usage.total()).filter(|total| *total >= Window::LEAST));
    }

    /// Finds a way to go on after a request that failed permanently.
    pub(in crate::core) fn mend(
        &mut self,
        error: &ProviderError,
        tariff: Tariff,
        seen: &StandingRights,
        out: &mut Outbox,
    ) -> Mended {
        if let Some(after) = self.on_summary_failed(error, tariff, seen, out) {
            return Mended::Summary(after);
        }
        if is_refused(error) && self.drop_interrupted() {
            let message =
                format!("{}; the conversation continues without the interrupted reply", error.message);
            out.notice(NoticeCode::InterruptedReplyDropped, &message);
            return Mended::WithoutInterrupted;
        }
        if !is_too_long(error) {
            return Mended::Nothing;
        }
        if self.history.has_replies() {
            self.narrow_window(error.named_window());
        }
        if self.can_shorten() { Mended::Shortened } else { Mended::Nothing }
    }

    /// Returns the next request: for a reply or a summary. The request for a summary is not a part of the history.
    pub(in crate::core) fn asked(&mut self, out: &mut Outbox) -> Asked {
        let Some(compacting) = self.compaction.underway else {
            return Asked { messages: self.history.messages(), max_tokens: self.budget.reply() };
        };
        let max_tokens = self.budget.summary();
        if compacting.from == SummaryFrom::Conversation {
            let mut asked = self.history.clone();
            asked.push_user(vec![UserBlock::Text(INSTRUCTION.trim_end().to_owned())]);
            return Asked { messages: asked.messages(), max_tokens };
        }
        self.read(out);
        let record = record(self.ledger.summary(), &self.history.said(), self.budget.record());
        let asked = Message::User(vec![UserBlock::Text(record.trim_end().to_owned())]);
        Asked { messages: vec![Arc::new(asked)], max_tokens }
    }

    /// Handles a reply with a summary. Tool calls in it do not run.
    pub(in crate::core) fn on_summary(
        &mut self,
        words: &str,
        stop: &StopReason,
        usage: TokenUsage,
        tariff: Tariff,
        seen: &StandingRights,
        out: &mut Outbox,
    ) -> AfterSummary {
        self.count_summary(usage);
        match stop {
            // The model would refuse another request for a summary too.
            StopReason::Refusal(_) => self.begin_context(None, tariff, seen, out),
            StopReason::ContextWindowExceeded => {
                self.overflow(usage);
                self.ask_otherwise(tariff, seen, out)
            }
            _ if words.trim().is_empty() => self.ask_otherwise(tariff, seen, out),
            StopReason::MaxTokens => {
                let cut = format!("{words}\n[the summary was cut here]");
                self.begin_context(Some(&cut), tariff, seen, out)
            }
            _ => self.begin_context(Some(words), tariff, seen, out),
        }
    }

    /// Handles a failed request for a summary. Returns `None` if the request was not for a summary, or if a summary of
    /// a record would fail, too.
    fn on_summary_failed(
        &mut self,
        error: &ProviderError,
        tariff: Tariff,
        seen: &StandingRights,
        out: &mut Outbox,
    ) -> Option<AfterSummary> {
        self.compaction.underway?;
        // A request that is rejected for its form or length may succeed in another form. With a bad key none succeeds.
        let is_too_long = is_too_long(error);
        if is_too_long {
            self.narrow_window(error.named_window());
        }
        let otherwise = error.status == Some(400) || is_too_long;
        otherwise.then(|| self.ask_otherwise(tariff, seen, out))
    }

    /// Adds the tokens of a summary, even if it is incomplete.
    pub(in crate::core) fn count_summary(&mut self, usage: TokenUsage) {
        if let Some(compacting) = &mut self.compaction.underway {
            compacting.usage += usage;
        }
    }

    /// Gives up the summary at the end of the run, and logs its cost in an empty reply.
    pub(in crate::core) fn give_summary_up(&mut self, tariff: Tariff, out: &mut Outbox) {
        self.compaction.wanted = false;
        let Some(Compacting { usage, .. }) = self.compaction.underway.take() else { return };
        if usage != TokenUsage::default() {
            out.log(EventKind::AssistantMessage(AssistantMessage {
                message_id: String::new(),
                model: String::new(),
                content: Vec::new(),
                stop_reason: INTERRUPTED.to_owned(),
                usage,
                estimated: true,
                cost_usd: tariff.cost(&usage),
            }));
        }
        // Messages that waited for the summary belong to the conversation all the same.
        self.say_what_waits(out);
    }

    fn ask_otherwise(&mut self, tariff: Tariff, seen: &StandingRights, out: &mut Outbox) -> AfterSummary {
        match &mut self.compaction.underway {
            Some(compacting) if compacting.from == SummaryFrom::Conversation => {
                compacting.from = SummaryFrom::Record;
                AfterSummary::Ask
            }
            Some(_) | None => self.begin_context(None, tariff, seen, out),
        }
    }

    fn begin_context(
        &mut self,
        summary: Option<&str>,
        tariff: Tariff,
        seen: &StandingRights,
        out: &mut Outbox,
    ) -> AfterSummary {
        let Some(compacting) = self.compaction.underway.take() else {
            return AfterSummary::Begun(Then::Step);
        };
        self.read(out);
        let entries = self.history.said();
        let known = Known { ledger: &self.ledger, summary, entries: &entries };
        let mut first_message = self.opening.texts(seen);
        first_message.extend(self.tasks.told());
        first_message.push(known.first_message(self.budget.first_message()).trim_end().to_owned());
        self.history = History::summarised(self.budget.fixed(), self.sees_images, first_message.clone());
        let Compacting { cause, from, then, before, usage } = compacting;
        out.log(EventKind::ContextCompacted(ContextCompacted {
            cause,
            summary: if summary.is_some() { from } else { SummaryFrom::Nobody },
            tokens_before: before,
            tokens_after: self.history.tokens(),
            usage,
            cost_usd: tariff.cost(&usage),
            first_message,
        }));
        AfterSummary::Begun(then)
    }
}

/// True if the provider rejects the request for its content, and not for its length.
fn is_refused(error: &ProviderError) -> bool {
    matches!(error.status, Some(400 | 422)) && !is_too_long(error)
}

/// True if the conversation has too many tokens or bytes for the provider.
pub(in crate::core) fn is_too_long(error: &ProviderError) -> bool {
    error.is_context_overflow() || error.status == Some(413)
}
