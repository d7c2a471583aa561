//! From a context that is too long to a new one that begins with a summary: what was sent is never edited.
//!
//! The model is asked for the summary at the end of the conversation, which the provider has in its cache. Where that does
//! not fit or does not work, it is asked about a shortened record of it; where that does not work either, the new context
//! begins with what is known without the model. A run never summarises twice for the same reply, and a context that begins
//! too long is its end.

use std::sync::Arc;

use protocol::error_code::ErrorCode;
use protocol::event::{
    CompactionCause, CompactionStarted, ContextCompacted, EventKind, NoticeCode, SummaryFrom, TokenUsage,
};

use super::agent::AgentState;
use super::history::{History, in_block};
use super::message::UserSaid;
use super::reply::ModelReply;
use super::summary::{INSTRUCTION, Known, record};
use super::window::{Budget, tokens};
use super::{Agent, EndReason, Window};
use crate::conversation::{Message, ProviderError, StopReason, UserBlock};
use crate::prompt::environment_context;

/// A summary that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compacting {
    cause: CompactionCause,
    from: SummaryFrom,
    then: Then,
    /// About how many tokens the next prompt would have had.
    before: u64,
    /// What the summary has cost so far.
    usage: TokenUsage,
}

/// What follows a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The step that it was made for.
    Step,
    /// The end of the turn.
    End,
}

/// What becomes of the context before a step.
pub(super) enum Next {
    /// The step fits.
    Step,
    /// It is summarised first.
    Compact(CompactionCause),
    /// Nothing would help; a sentence says what to do.
    Full(String),
}

impl Agent {
    /// The user wants a summary: now at rest, else before the next request.
    pub(super) fn on_compact(&mut self) {
        match self.state {
            AgentState::Closed => {}
            AgentState::Resting if self.history.has_replies() && self.summary_is_shorter() => {
                self.run = super::agent::TurnRun::default();
                self.compact(CompactionCause::Request, Then::End);
            }
            AgentState::Resting => self.nothing_to_compact(),
            _ if self.compacting.is_some() => {
                self.notice(NoticeCode::CompactionQueued, "the conversation is being summarised already");
            }
            _ => {
                self.compaction_wanted = true;
                self.notice(
                    NoticeCode::CompactionQueued,
                    "the conversation is summarised before the next request",
                );
            }
        }
    }

    /// Whether the next prompt, with what joins it, leaves the room that its reply and the results after it need.
    pub(super) fn next(&mut self) -> Next {
        let next = self.history.tokens().saturating_add(self.pending_tokens());
        let wanted = std::mem::take(&mut self.compaction_wanted);
        let budget = self.budget;
        if !self.history.has_replies() {
            return if next <= budget.prompt() { Next::Step } else { Next::Full(self.full(next)) };
        }
        if wanted && self.summary_is_shorter() {
            return Next::Compact(CompactionCause::Request);
        } else if wanted {
            self.nothing_to_compact();
        }
        if next <= budget.compact_at() {
            return Next::Step;
        }
        if self.history.began_too_long(budget.compact_at()) {
            return Next::Full(self.full(next));
        }
        Next::Compact(CompactionCause::Limit)
    }

    pub(super) fn full(&self, next: u64) -> String {
        format!(
            "the context is full: even a new one has about {next} tokens, and the model's window holds {} with the reply; \
             shorten AGENTS.md, give a smaller task, or choose a model with a larger window",
            self.budget.context()
        )
    }

    /// Whether the user has asked for a summary that could be made.
    pub(super) fn takes_wish(&mut self) -> bool {
        if !std::mem::take(&mut self.compaction_wanted) || !self.history.has_replies() {
            return false;
        }
        let wins = self.summary_is_shorter();
        if !wins {
            self.nothing_to_compact();
        }
        wins
    }

    /// True if the new context would be shorter than this one: even without a word of the model's it repeats what the user
    /// said and the last messages.
    fn summary_is_shorter(&self) -> bool {
        let entries = self.history.said();
        let known = Known { ledger: &self.ledger, summary: None, entries: &entries };
        let least = in_block(tokens(&known.first_message(self.budget.first_message())));
        self.history.said_tokens() > least
    }

    fn nothing_to_compact(&mut self) {
        let message = if self.history.has_replies() {
            "the conversation is not summarised: it is shorter than its summary would be"
        } else {
            "there is no conversation yet that could be summarised"
        };
        self.notice(NoticeCode::NothingToCompact, message);
    }

    /// Asks for a summary at the end of the conversation.
    pub(super) fn compact(&mut self, cause: CompactionCause, then: Then) {
        self.begin_compaction(cause, SummaryFrom::Conversation, then);
    }

    /// Learns from a refusal how large the window is, for the rest of the session.
    pub(super) fn narrow_window(&mut self, named: Option<u64>) {
        let refused = match self.compacting {
            Some(Compacting { from: SummaryFrom::Record, .. }) => self.budget.record(),
            Some(_) | None => self.history.tokens(),
        };
        self.set_window(self.budget.window_after(refused, named));
    }

    pub(super) fn set_window(&mut self, context: u64) {
        self.config.window = Window { context };
        self.budget = Budget::new(self.config.window, self.config.max_tokens, self.budget.fixed());
    }

    /// The provider has said that the conversation is too long: it is not asked about all of it again.
    pub(super) fn compact_overflow(&mut self) {
        self.run.overflowed = true;
        self.begin_compaction(CompactionCause::Overflow, SummaryFrom::Record, Then::Step);
    }

    fn begin_compaction(&mut self, cause: CompactionCause, from: SummaryFrom, then: Then) {
        let before = self.history.tokens().saturating_add(self.pending_tokens());
        let window = self.budget.context();
        self.log(EventKind::CompactionStarted(CompactionStarted { cause, tokens: before, window }));
        let fits = self.budget.can_ask_after(self.history.tokens());
        let from = if fits { from } else { SummaryFrom::Record };
        self.ask_for_summary(Compacting { cause, from, then, before, usage: TokenUsage::default() });
    }

    fn ask_for_summary(&mut self, compacting: Compacting) {
        self.compacting = Some(compacting);
        if !self.is_out_of_budget() {
            self.run.attempt = 0;
            self.begin_attempt();
        }
    }

    /// What is sent for a summary; it is in no history.
    pub(super) fn summary_request(&self, compacting: Compacting) -> Vec<Arc<Message>> {
        if compacting.from == SummaryFrom::Conversation {
            let mut asked = self.history.clone();
            asked.push_user(vec![UserBlock::Text(INSTRUCTION.trim_end().to_owned())]);
            return asked.messages();
        }
        let record = record(self.ledger.summary(), &self.history.said(), self.budget.record());
        vec![Arc::new(Message::User(vec![UserBlock::Text(record.trim_end().to_owned())]))]
    }

    /// A reply to the request for a summary. Calls in it do not run.
    pub(super) fn on_summary(
        &mut self,
        mut compacting: Compacting,
        reply: &ModelReply,
        stop: &StopReason,
        usage: TokenUsage,
    ) {
        self.run.steps = self.run.steps.saturating_add(1);
        self.run.usage += usage;
        self.run.cost += self.cost(&usage).unwrap_or_default();
        compacting.usage += usage;
        let words = reply.text();
        match stop {
            // Asked otherwise, it would refuse again.
            StopReason::Refusal(_) => self.begin_context(compacting, None),
            StopReason::ContextWindowExceeded => {
                self.narrow_window(Some(usage.total()).filter(|total| *total >= Window::LEAST));
                self.ask_otherwise(compacting);
            }
            _ if words.trim().is_empty() => self.ask_otherwise(compacting),
            StopReason::MaxTokens => {
                self.begin_context(compacting, Some(&format!("{words}\n[the summary was cut here]")));
            }
            _ => self.begin_context(compacting, Some(&words)),
        }
    }

    /// A reply to the request for a summary was cut off: nobody counts it, and it cost something all the same.
    pub(super) fn count_interrupted_summary(&mut self, reply: &ModelReply) {
        if !reply.has_begun() {
            return;
        }
        let usage = self.estimated(reply);
        if let Some(compacting) = &mut self.compacting {
            compacting.usage += usage;
        }
    }

    /// Logs the cost of a summary that did not come, as a reply of which nothing is left.
    pub(super) fn log_given_up_summary(&mut self, Compacting { usage, .. }: Compacting) {
        if usage != TokenUsage::default() {
            self.log_as(&ModelReply::default(), Vec::new(), "interrupted", usage, true);
        }
    }

    /// A request for a summary failed for good.
    pub(super) fn on_summary_failed(&mut self, compacting: Compacting, error: &ProviderError) -> bool {
        // What the provider refuses for its form or length may go well otherwise; a bad key never does.
        let is_too_long = super::requests::is_too_long(error);
        if is_too_long {
            self.narrow_window(error.named_window());
        }
        let otherwise = error.status == Some(400) || is_too_long;
        if otherwise {
            self.ask_otherwise(compacting);
        }
        otherwise
    }

    fn ask_otherwise(&mut self, compacting: Compacting) {
        match compacting.from {
            SummaryFrom::Conversation => {
                self.ask_for_summary(Compacting { from: SummaryFrom::Record, ..compacting });
            }
            SummaryFrom::Record | SummaryFrom::Nobody => self.begin_context(compacting, None),
        }
    }

    /// Leaves the context and goes on in a new one.
    fn begin_context(&mut self, compacting: Compacting, summary: Option<&str>) {
        self.compacting = None;
        let entries = self.history.said();
        let known = Known { ledger: &self.ledger, summary, entries: &entries };
        let mut first_message = self.standing_context();
        first_message.extend(self.told_tasks());
        first_message.push(known.first_message(self.budget.first_message()).trim_end().to_owned());
        self.history =
            History::summarised(self.budget.fixed(), self.config.sees_images, first_message.clone());
        let Compacting { cause, from, then, before, usage } = compacting;
        self.log(EventKind::ContextCompacted(ContextCompacted {
            cause,
            summary: if summary.is_some() { from } else { SummaryFrom::Nobody },
            tokens_before: before,
            tokens_after: self.history.tokens(),
            usage,
            cost_usd: self.cost(&usage),
            first_message,
        }));
        match then {
            Then::Step => self.begin_step(),
            Then::End => self.end_turn(),
        }
    }

    /// Returns the beginning of every context: the surroundings as they are now, the project's instructions, and the demand on the answer.
    pub(super) fn standing_context(&self) -> Vec<String> {
        let mut texts = vec![environment_context(&self.config.surroundings, &self.seen)];
        texts.extend(self.instructions.iter().map(|item| item.text.clone()));
        texts.extend(self.config.answer.iter().map(|answer| answer.demand().to_owned()));
        texts
    }

    /// About how many tokens wait for the next message.
    pub(super) fn pending_tokens(&self) -> u64 {
        let context: u64 = self.context.iter().map(|item| in_block(tokens(&item.text))).sum();
        self.queue.iter().map(UserSaid::tokens).fold(context, u64::saturating_add)
    }

    /// What is too long for one message, if it is.
    pub(super) fn too_long(&self, said: &UserSaid) -> Option<String> {
        let context = self.standing_context().iter().map(|text| tokens(text)).sum();
        let (length, most) = (said.tokens(), self.budget.message(context));
        let waiting = self.queue.iter().map(UserSaid::tokens).fold(0, u64::saturating_add);
        let with = if waiting > 0 { " with those that wait" } else { "" };
        (length.saturating_add(waiting) > most).then(|| {
            format!(
                "the message was not sent: it has about {length} tokens, and the context takes {most}{with}; put it into a \
                 file of the project and name the file"
            )
        })
    }

    /// Ends the run, since no context could hold what is to be said.
    pub(super) fn finish_full(&mut self, message: String) {
        self.finish(EndReason::ContextFull, Some(ErrorCode::ContextTooLong.mark_anew(&message)));
    }
}
