//! The turn that runs, and the line after it.

use std::fmt::Write;
use std::time::Duration;

use ipc::event::{TokenUsage, TurnFinished};

use crate::moment::Moment;
use crate::start::Prices;

/// The turn that runs.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// When it began; absent while the agent rests.
    pub began: Option<Moment>,
    pub doing: Doing,
    /// Its tokens so far.
    pub usage: TokenUsage,
    /// Whether the user asked for its end.
    pub interrupted: bool,
}

/// What the agent does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Waits for the model.
    #[default]
    Asking,
    /// The model thinks.
    Thinking,
    /// The model answers.
    Answering,
    /// Tools run.
    Working,
}

impl Doing {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Asking => "waiting",
            Self::Thinking => "thinking",
            Self::Answering => "answering",
            Self::Working => "working",
        }
    }
}

impl Turn {
    pub(crate) const fn is_running(&self) -> bool {
        self.began.is_some()
    }

    pub(crate) fn begin(&mut self, at: Moment) {
        *self = Self { began: Some(at), ..Self::default() };
    }

    pub(crate) fn end(&mut self) {
        self.began = None;
    }
}

/// The line after a turn.
pub(crate) fn summary(turn: &TurnFinished, prices: Option<Prices>) -> String {
    let mut line = match (turn.reason.as_str(), &turn.message) {
        // The denial has its card.
        (reason @ "denied", _) | (reason, None) => reason.to_owned(),
        (reason, Some(message)) => format!("{reason}: {message}"),
    };
    // Writing to a string cannot fail.
    let _ = write!(
        line,
        " · {} in ({} cached) · {} out",
        counted(turn.usage.prompt()),
        counted(turn.usage.cache_read),
        counted(turn.usage.output)
    );
    if let Some(prices) = prices {
        let _ = write!(line, " · ${:.4}", cost(turn.usage, prices));
    }
    let _ = write!(line, " · {}", lasted(Duration::from_millis(turn.duration_ms)));
    line
}

fn cost(usage: TokenUsage, prices: Prices) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "nobody pays for 2^52 tokens")]
    let of = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
    of(usage.input, prices.input)
        + of(usage.output, prices.output)
        + of(usage.cache_read, prices.cache_read)
        + of(usage.cache_creation, prices.cache_write)
}

/// A number of tokens in few characters: `999`, `1.2k`, `34k`, `5.6M`.
pub(crate) fn counted(tokens: u64) -> String {
    let tenths = |unit: u64, name| {
        let (whole, tenth) = (tokens / unit, tokens % unit * 10 / unit);
        if whole < 10 { format!("{whole}.{tenth}{name}") } else { format!("{whole}{name}") }
    };
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        _ => tenths(1_000_000, "M"),
    }
}

fn lasted(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_summed_up_and_priced_only_where_prices_are_known() {
        let usage = TokenUsage { input: 1_500, cache_creation: 500, cache_read: 40_000, output: 912 };
        let turn = TurnFinished { reason: "done".into(), message: None, steps: 3, usage, duration_ms: 4_250 };
        assert_eq!(summary(&turn, None), "done · 42k in (40k cached) · 912 out · 4.2 s");
        let prices = Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        assert_eq!(summary(&turn, Some(prices)), "done · 42k in (40k cached) · 912 out · $0.0321 · 4.2 s");
        let turn = TurnFinished {
            reason: "provider_error".into(),
            message: Some("no key".into()),
            duration_ms: 61_000,
            ..turn
        };
        assert_eq!(
            summary(&turn, None),
            "provider_error: no key · 42k in (40k cached) · 912 out · 1 min 1 s"
        );
    }

    #[test]
    fn tokens_are_counted_in_few_characters() {
        let counts = [0, 999, 1_000, 1_999, 10_500, 999_999, 1_000_000, 12_345_678, u64::MAX];
        assert_eq!(counts.map(counted)[..8], ["0", "999", "1.0k", "1.9k", "10k", "999k", "1.0M", "12M"]);
    }
}
