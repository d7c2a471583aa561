//! The resources that a run has used, and its results.

use std::time::Duration;

use protocol::cost::Usd;
use protocol::event::{LeftOut, TokenUsage};
use serde_json::Value;

use super::loops::Steps;
use crate::core::end::Ending;
use crate::core::tariff::Tariff;
use crate::core::{EndReason, RunLimits};

#[derive(Debug, Default)]
pub(super) struct RunAccount {
    /// Number of complete replies.
    pub(super) steps: u32,
    pub(super) attempt: u32,
    pub(super) waited: Duration,
    pub(super) usage: TokenUsage,
    pub(super) cost: Usd,
    /// Text of the latest reply.
    pub(super) text: String,
    pub(super) output: Option<Value>,
    /// Text about the last denial; `None` if a call has succeeded after it.
    pub(super) denial: Option<String>,
    /// The reason why the last plan is incomplete; `None` if it is complete.
    pub(super) unexecuted: Option<String>,
    /// True if the run is a command that the user typed.
    pub(super) is_own_command: bool,
    pub(super) in_a_row: Odd,
    /// Steps so far, to detect repetition.
    pub(super) past: Steps,
    /// The part of the conversation that was left out after an error. The next reply sets it to `None`.
    pub(super) left_out: Option<LeftOut>,
    pub(super) overflowed: bool,
}

/// Counts of unusual replies in a row, one for each kind of reply.
#[derive(Debug, Default)]
pub(super) struct Odd {
    /// Number of replies that reached the token limit.
    pub(super) cuts: u32,
    pub(super) silences: u32,
    /// Number of replies that contain a call as text, since the last real call.
    pub(super) written_calls: u32,
    pub(super) pauses: u32,
    /// Number of replies that did not fit the schema.
    pub(super) misfits: u32,
}

impl RunAccount {
    pub(super) fn spend(&mut self, usage: TokenUsage, tariff: Tariff) {
        self.usage += usage;
        self.cost += tariff.cost(&usage).unwrap_or_default();
    }

    pub(super) fn count(&mut self, usage: TokenUsage, tariff: Tariff) {
        self.steps = self.steps.saturating_add(1);
        self.spend(usage, tariff);
    }

    /// Returns the end of the run if its limits allow no further request, else `None`.
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
        let message = format!("the limit of {max} is reached: the requests so far cost {}", self.cost);
        Some(Ending::because(EndReason::CostLimit, message))
    }
}
