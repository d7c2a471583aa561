//! The account of a run: what it has spent, and what came of it so far.

use std::time::Duration;

use protocol::cost::Usd;
use protocol::event::{LeftOut, TokenUsage};
use serde_json::Value;

use super::loops::Steps;
use crate::core::end::Ending;
use crate::core::tariff::Tariff;
use crate::core::{EndReason, RunLimits};

/// The account of the run that goes on.
#[derive(Debug, Default)]
pub(super) struct RunAccount {
    /// Number of replies that came to their end.
    pub(super) steps: u32,
    /// Number of attempts at the present step.
    pub(super) attempt: u32,
    /// Time that the run has waited between attempts, in all.
    pub(super) waited: Duration,
    pub(super) usage: TokenUsage,
    /// Cost of the replies, as far as the prices are known.
    pub(super) cost: Usd,
    /// Text of the model's latest reply.
    pub(super) text: String,
    /// The answer that fits the schema.
    pub(super) output: Option<Value>,
    /// The last denial, while no call has succeeded after it.
    pub(super) denial: Option<String>,
    /// The reason why the last plan was not executed to its end, if it was not.
    pub(super) unexecuted: Option<String>,
    /// True if the run is a command of the user's own, and no turn of the model's.
    pub(super) is_own_command: bool,
    pub(super) in_a_row: Odd,
    /// The steps so far, kept to notice that the model repeats itself.
    pub(super) past: Steps,
    /// The part of the conversation that was left out, since the provider refused it, and no reply has come since.
    pub(super) left_out: Option<LeftOut>,
    /// True if the context was left because the provider found it too long, and no reply has come since.
    pub(super) overflowed: bool,
}

/// Numbers of odd replies in a row.
#[derive(Debug, Default)]
pub(super) struct Odd {
    /// Replies that were cut at their limit.
    pub(super) cuts: u32,
    /// Replies without a word and without a call.
    pub(super) silences: u32,
    /// Replies with a call as text, since the last call that was one.
    pub(super) written_calls: u32,
    /// Replies that the provider paused.
    pub(super) pauses: u32,
    /// Replies that did not fit the schema.
    pub(super) misfits: u32,
}

impl RunAccount {
    /// Counts tokens that the run has spent.
    pub(super) fn spend(&mut self, usage: TokenUsage, tariff: Tariff) {
        self.usage += usage;
        self.cost += tariff.cost(&usage).unwrap_or_default();
    }

    /// Counts a reply that came to its end.
    pub(super) fn count(&mut self, usage: TokenUsage, tariff: Tariff) {
        self.steps = self.steps.saturating_add(1);
        self.spend(usage, tariff);
    }

    /// Returns the end of the run, if its limits allow no further request.
    pub(super) fn spent(&self, limits: RunLimits) -> Option<Ending> {
        if let Some(max) = limits.max_steps.filter(|max| self.steps >= *max) {
            return Some(Ending::because(
                EndReason::StepLimit,
                format!("the limit of {max} steps is reached"),
            ));
        }
        if let Some(max) = limits.max_tokens.filter(|max| self.usage.total() >= *max) {
            return Some(Ending::because(
                EndReason::TokenLimit,
                format!("the limit of {max} tokens is reached"),
            ));
        }
        let max = limits.max_usd.filter(|max| self.cost >= *max)?;
        let message = format!("the limit of {max} is reached: what was asked so far cost {}", self.cost);
        Some(Ending::because(EndReason::CostLimit, message))
    }
}
