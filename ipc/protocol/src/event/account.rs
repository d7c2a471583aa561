//! Tokens and money in short form, the same for every front end.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{EventKind, TokenUsage};
use crate::cost::Usd;

/// Tokens and cost of one or many requests: `12.3k in, 94% cached, 1.2k out, $0.08`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Tokens of the requests and their replies.
    pub usage: TokenUsage,
    /// The whole cost; `None` if the price of some tokens is unknown.
    pub cost: Option<Usd>,
    /// The known part of the cost; the whole cost if `cost` is known.
    #[serde(default)]
    pub known: Usd,
}

impl Account {
    /// Returns the account of tokens with this cost.
    pub const fn of(usage: TokenUsage, cost: Option<Usd>) -> Self {
        let known = match cost {
            Some(cost) => cost,
            None => Usd::ZERO,
        };
        Self { usage, cost, known }
    }

    /// Returns the cost in short form: `$0.08`; `~$0.08` if a part is estimated; `≥ $0.08` if only a part is known.
    /// `None` if no cost is known.
    pub fn money(&self) -> Option<String> {
        let mark = self.usage.mark();
        let at_least = || (self.known > Usd::ZERO).then(|| format!("≥ {mark}{}", self.known));
        self.cost.map(|cost| format!("{mark}{cost}")).or_else(at_least)
    }

    /// Returns the percentage of prompt tokens that came from the cache, rounded down.
    pub fn hits(&self) -> u128 {
        u128::from(self.usage.cache_read) * 100 / u128::from(self.usage.prompt().max(1))
    }
}

impl EventKind {
    /// Returns tokens and cost of this event alone; `None` if the event reports no request to a model.
    pub const fn spent(&self) -> Option<Account> {
        match self {
            Self::AssistantMessage(message) => Some(Account::of(message.usage, message.cost_usd)),
            Self::ContextCompacted(compacted) => Some(Account::of(compacted.usage, compacted.cost_usd)),
            _ => None,
        }
    }
}

impl std::ops::AddAssign for Account {
    fn add_assign(&mut self, other: Self) {
        self.cost = match (self.cost, other.cost) {
            (Some(ours), Some(theirs)) => Some(ours + theirs),
            (None, theirs) if self.usage == TokenUsage::default() => theirs,
            (ours, None) if other.usage == TokenUsage::default() => ours,
            _ => None,
        };
        self.usage += other.usage;
        self.known += other.known;
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { usage, .. } = self;
        let (mark, hits) = (usage.mark(), self.hits());
        let (prompt, output) = (counted(usage.prompt()), counted(usage.output));
        write!(f, "{mark}{prompt} in, {hits}% cached, {mark}{output} out")?;
        self.money().map_or(Ok(()), |money| write!(f, ", {money}"))
    }
}

/// Returns a number of tokens in few characters: `999`, `1.2k`, `12.3k`, `345k`, `5.6M`.
pub fn counted(tokens: u64) -> String {
    let tenths = |unit: u64, name| {
        let (whole, tenth) = (tokens / unit, tokens % unit * 10 / unit);
        if whole < 100 { format!("{whole}.{tenth}{name}") } else { format!("{whole}{name}") }
    };
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        _ => tenths(1_000_000, "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_in_few_characters() {
        let counts = [0, 999, 1_000, 1_999, 12_300, 100_500, 999_999, 1_000_000, 12_345_678];
        assert_eq!(
            counts.map(counted),
            ["0", "999", "1.0k", "1.9k", "12.3k", "100k", "999k", "1.0M", "12.3M"]
        );
        assert_eq!(counted(u64::MAX), "18446744073709M");
    }

    #[test]
    fn an_account_says_how_much_came_from_the_cache_and_what_it_cost() {
        let usage = TokenUsage { input: 600, cache_read: 11_700, output: 1_234, ..TokenUsage::default() };
        let account = |cost| Account::of(usage, cost).to_string();
        assert_eq!(account(None), "12.3k in, 95% cached, 1.2k out");
        assert_eq!(account("0.084".parse().ok()), "12.3k in, 95% cached, 1.2k out, $0.084");
        assert_eq!(Account::default().to_string(), "0 in, 0% cached, 0 out");
        let mut sum = Account::of(TokenUsage { estimated: 9, ..usage }, "0.084".parse().ok());
        assert_eq!(sum.to_string(), "~12.3k in, 95% cached, ~1.2k out, ~$0.084");
        sum += Account::of(usage, "0.084".parse().ok());
        assert!(sum.to_string().starts_with('~'), "{sum}");
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let usage = TokenUsage { input: 1, ..TokenUsage::default() };
        let (known, unknown) = (Account::of(usage, Some("0.5".parse().unwrap())), Account::of(usage, None));
        let sum = |parts: &[Account]| {
            let mut sum = Account::default();
            for part in parts {
                sum += *part;
            }
            sum
        };
        let money = |parts: &[Account]| sum(parts).money();
        let sum = |parts: &[Account]| sum(parts).cost.map(|cost| cost.to_string());
        assert_eq!(sum(&[known, known]).as_deref(), Some("$1.00"));
        assert_eq!(sum(&[known, Account::default()]).as_deref(), Some("$0.50"));
        assert_eq!((sum(&[known, unknown]), sum(&[unknown, known]), sum(&[])), (None, None, None));
        // The known part is displayed, with a mark.
        assert_eq!(money(&[known, known]).as_deref(), Some("$1.00"));
        assert_eq!(money(&[known, unknown, known]).as_deref(), Some("≥ $1.00"));
        assert_eq!((money(&[unknown]), money(&[])), (None, None));
    }
}
