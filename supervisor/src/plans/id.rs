//! Names of plans.

use std::fmt;

use jiff::Timestamp;

/// The name of a plan: the second in which it was made, in UTC, with a number if another plan has the name. Never chosen by a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanId(String);

impl PlanId {
    /// The length of a name without a number.
    const PLAIN: usize = 17;

    /// The name for the `count`-th plan of this second.
    pub(super) fn of(now: Timestamp, count: usize) -> Self {
        let second = now.strftime("%Y-%m-%d-%H%M%S").to_string();
        Self(if count == 1 { second } else { format!("{second}-{count}") })
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        let (second, rest) = text.split_at_checked(Self::PLAIN)?;
        let fits = |(at, byte): (usize, u8)| {
            if matches!(at, 4 | 7 | 10) { byte == b'-' } else { byte.is_ascii_digit() }
        };
        let count = rest.strip_prefix('-').filter(|count| (1..=6).contains(&count.len()));
        let is_numbered = count.is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit()));
        let is_name = second.bytes().enumerate().all(fits) && (rest.is_empty() || is_numbered);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key by which older plans come first.
    pub(super) fn age(&self) -> (&str, u32) {
        let (second, rest) = self.0.split_at_checked(Self::PLAIN).unwrap_or((&self.0, ""));
        (second, rest.trim_start_matches('-').parse().unwrap_or(1))
    }
}

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
