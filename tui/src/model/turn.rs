//! Running turn of an agent, and the summary that is shown after the turn.

use std::fmt::Write;
use std::time::Duration;

use protocol::event::{Account, EndReason, TurnFinished};

use crate::moment::UiTime;

#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub began: Option<UiTime>,
    pub doing: TurnActivity,
    pub account: Account,
    pub below: Account,
    pub interrupted: bool,
    pub model_after: Option<String>,
    pub is_review: bool,
    /// Index of the block about a failed model request, which the report of the next failure replaces.
    pub retry: Option<usize>,
    /// Index of the block about replies that were cut off, and the number of these since the last complete reply.
    pub discarded: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TurnActivity {
    #[default]
    Asking,
    Thinking,
    Answering,
    Working,
    AwaitingWriteTurn,
    /// Pause before a failed model request is repeated.
    BackingOff {
        until: UiTime,
    },
}

impl TurnActivity {
    /// Returns the activity in words, with its duration. `began` is the start of the turn.
    pub(crate) fn words(self, began: UiTime, now: UiTime) -> String {
        match self {
            Self::BackingOff { until } => {
                format!("{} in {} s", self.word(), until.since(now).as_millis().div_ceil(1000))
            }
            _ => format!("{} {} s", self.word(), now.since(began).as_secs()),
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Asking => "waiting",
            Self::Thinking => "thinking",
            Self::Answering => "answering",
            Self::Working => "working",
            Self::AwaitingWriteTurn => "waiting to write",
            Self::BackingOff { .. } => "trying again",
        }
    }

    /// Returns the time until the next model request; `None` unless a failed request will be repeated.
    pub(crate) fn remaining(self, now: UiTime) -> Option<Duration> {
        match self {
            Self::BackingOff { until } => Some(until.since(now)).filter(|left| !left.is_zero()),
            _ => None,
        }
    }
}

impl Turn {
    pub(crate) const fn is_running(&self) -> bool {
        self.began.is_some()
    }

    pub(crate) fn begin(&mut self, at: UiTime) {
        *self = Self { began: Some(at), ..Self::default() };
    }

    pub(crate) fn end(&mut self) {
        self.began = None;
    }
}

pub(crate) fn summary(turn: &TurnFinished, account: &Account) -> String {
    let mut line = match (turn.reason, &turn.message) {
        // The denial has its own block.
        (EndReason::DeniedAtEnd, _) => "ended after a denial".to_owned(),
        (reason, None) => reason.to_string(),
        _ if tells_apart(turn) => "ended by the error above".to_owned(),
        // The message contains the reason.
        (
            EndReason::Refusal
            | EndReason::StepLimit
            | EndReason::TokenLimit
            | EndReason::CostLimit
            | EndReason::TimeLimit,
            Some(message),
        ) => message.clone(),
        (reason, Some(message)) => format!("{reason}: {message}"),
    };
    // A user's own command sends no request to a model. Writing to a string cannot fail.
    if account.usage.total() > 0 {
        let _ = write!(line, " · {account}");
    }
    let _ = write!(line, " · {}", lasted(Duration::from_millis(turn.duration_ms)));
    line
}

/// True if the error message of a failed turn is shown in a separate block, since it may be long and contain a hint.
pub(crate) fn tells_apart(turn: &TurnFinished) -> bool {
    matches!(turn.reason, EndReason::Provider | EndReason::ContextFull) && turn.message.is_some()
}

pub(crate) const fn account(turn: &TurnFinished) -> Account {
    Account::of(turn.usage, turn.cost_usd)
}

fn lasted(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use protocol::event::TokenUsage;

    use super::*;

    #[test]
    fn a_turn_is_summed_up_and_priced_only_where_prices_are_known() {
        let usage = TokenUsage {
            input: 1_500,
            cache_creation: 500,
            cache_read: 40_000,
            output: 912,
            ..TokenUsage::default()
        };
        let turn = TurnFinished {
            reason: EndReason::Done,
            message: None,
            steps: 3,
            usage,
            cost_usd: None,
            duration_ms: 4_250,
        };
        assert_eq!(summary(&turn, &account(&turn)), "done · 42.0k in, 95% cached, 912 out · 4.2 s");
        let turn = TurnFinished { cost_usd: "0.0321".parse().ok(), ..turn };
        assert_eq!(summary(&turn, &account(&turn)), "done · 42.0k in, 95% cached, 912 out, $0.032 · 4.2 s");
        let turn = TurnFinished {
            reason: EndReason::Provider,
            message: Some("no key".into()),
            cost_usd: None,
            duration_ms: 61_000,
            ..turn
        };
        assert_eq!(
            summary(&turn, &account(&turn)),
            "ended by the error above · 42.0k in, 95% cached, 912 out · 1 min 1 s"
        );
        let usage = TokenUsage::default();
        assert_eq!(summary(&turn, &Account::of(usage, None)), "ended by the error above · 1 min 1 s");
        let message = Some("the model refused to go on".into());
        let turn = TurnFinished { reason: EndReason::Refusal, message, duration_ms: 0, ..turn };
        assert_eq!(summary(&turn, &Account::of(usage, None)), "the model refused to go on · 0.0 s");
    }
}
