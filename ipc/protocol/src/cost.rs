//! Cost of tokens.
//!
//! Amounts are whole numbers, so costs are never rounded: a price in millionths of a dollar per million tokens is a
//! price in millionths of a millionth per token. Sums saturate at 18 million dollars.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::event::TokenUsage;

/// An amount in US dollars; in JSON a decimal number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd {
    /// Millionths of a millionth of a dollar.
    picos: u64,
}

/// Price of a million tokens, in US dollars; in JSON a decimal number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price {
    /// Price of a million tokens in millionths of a dollar. One token costs as many millionths of a millionth.
    micros: u64,
}

/// Price of each kind of token, per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Price of prompt tokens that come from no cache.
    pub input: Price,
    /// Price of reply tokens.
    pub output: Price,
    /// Price of prompt tokens that are written to the cache for five minutes.
    pub cache_write_5m: Price,
    /// Price of prompt tokens that are written to the cache for an hour.
    pub cache_write_1h: Price,
    /// Price of prompt tokens that are read from the cache.
    pub cache_read: Price,
}

/// Prices of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Prices for prompts of usual length.
    pub rates: Rates,
    /// Prices of all tokens of a request with a long prompt, if they differ.
    pub long: Option<LongPrompt>,
}

/// Prices of requests with long prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongPrompt {
    /// Number of tokens that a prompt must exceed to count as long.
    pub above: u64,
    /// Prices of all tokens of a request with a long prompt.
    pub rates: Rates,
}

/// Error: a text is no amount in dollars with at most the given number of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount in US dollars with at most {0} decimals, as in 0.50")]
pub struct NotAnAmount(usize);

const DECIMALS: usize = 12;

const PRICE_DECIMALS: usize = 6;

impl Usd {
    /// An amount of zero dollars.
    pub const ZERO: Self = Self { picos: 0 };

    /// Returns the amount in millionths of a millionth of a dollar.
    pub const fn picos(self) -> u64 {
        self.picos
    }

    /// Returns the amount in dollars, exact to twelve decimals up to 9,000 dollars.
    #[expect(clippy::cast_precision_loss, reason = "sixteen digits of money are enough to show")]
    pub fn dollars(self) -> f64 {
        self.picos as f64 / 1e12
    }
}

impl std::ops::Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { picos: self.picos.saturating_add(other.picos) }
    }
}

impl std::ops::AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl FromStr for Usd {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        scaled(text, DECIMALS).map(|picos| Self { picos }).ok_or(NotAnAmount(DECIMALS))
    }
}

/// Displays two significant digits and at most four decimals: `$12.30`, `$0.08`, `$0.0032`.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CENT: u64 = 10_000_000_000;
        const TEN_CENTS: u64 = 10 * CENT;
        // Unit of the last decimal that is shown, and number of decimals.
        let (unit, decimals) = match self.picos {
            0 => (CENT, 2),
            1..CENT => (CENT / 100, 4),
            CENT..TEN_CENTS => (CENT / 10, 3),
            TEN_CENTS.. => (CENT, 2),
        };
        let shown = self.picos / unit + u64::from(self.picos % unit >= unit / 2);
        if shown == 0 && self.picos > 0 {
            return f.write_str("<$0.0001");
        }
        let one = 1_000_000_000_000 / unit;
        write!(f, "${}.{:0decimals$}", shown / one, shown % one)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        if !(0.0..=18_000_000.0).contains(&dollars) {
            return Err(serde::de::Error::custom(format!("{dollars} is not an amount of dollars")));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        Ok(Self { picos: (dollars * 1e12).round() as u64 })
    }
}

impl schemars::JsonSchema for Usd {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "number", "minimum": 0, "description": "An amount in US dollars."})
    }
}

impl Price {
    /// Returns a price per million tokens, from millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }

    /// Returns this percentage of the price, rounded down to a millionth of a dollar.
    #[must_use]
    pub const fn percent(self, percent: u64) -> Self {
        Self { micros: self.micros.saturating_mul(percent) / 100 }
    }

    const fn of(self, tokens: u64) -> Usd {
        Usd { picos: self.micros.saturating_mul(tokens) }
    }
}

impl FromStr for Price {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        scaled(text, PRICE_DECIMALS).map(|micros| Self { micros }).ok_or(NotAnAmount(PRICE_DECIMALS))
    }
}

/// Displays the price as in a settings file: `3.75`, `10`.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.micros / 1_000_000, self.micros % 1_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Prices {
    /// Returns the cost of a request and its reply.
    pub fn cost(&self, usage: &TokenUsage) -> Usd {
        let rates = match &self.long {
            Some(long) if usage.prompt() > long.above => &long.rates,
            _ => &self.rates,
        };
        rates.input.of(usage.input)
            + rates.output.of(usage.output)
            + rates.cache_write_5m.of(usage.cache_creation.saturating_sub(usage.cache_creation_1h))
            + rates.cache_write_1h.of(usage.cache_creation_1h)
            + rates.cache_read.of(usage.cache_read)
    }
}

/// Parses a decimal number without sign or exponent, times ten to the power of `decimals`, which must be an integer.
fn scaled(text: &str, decimals: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = is_number(whole) && is_number(fraction) && fraction.len() <= decimals;
    if !fits || whole.is_empty() || text.ends_with('.') {
        return None;
    }
    format!("{whole}{fraction:0<decimals$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(prompt: &str, reply: &str, five_minutes: &str, hour: &str, read: &str) -> Rates {
        let price = |text: &str| text.parse().unwrap();
        Rates {
            input: price(prompt),
            output: price(reply),
            cache_write_5m: price(five_minutes),
            cache_write_1h: price(hour),
            cache_read: price(read),
        }
    }

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    #[test]
    fn each_kind_of_token_has_its_price_and_nothing_is_rounded() {
        let prices = Prices { rates: rates("3", "15", "3.75", "6", "0.3"), long: None };
        let usage = TokenUsage {
            input: 1_500,
            cache_creation: 500,
            cache_creation_1h: 200,
            cache_read: 40_001,
            output: 912,
            estimated: 0,
        };
        assert_eq!(prices.cost(&usage), usd("0.0325053"));
        let one = TokenUsage { cache_read: 1, ..TokenUsage::default() };
        assert_eq!(prices.cost(&one).picos(), 300_000);
    }

    #[test]
    fn a_long_prompt_has_its_own_rates_for_all_of_the_request() {
        let long = LongPrompt { above: 100, rates: rates("2", "4", "2", "2", "2") };
        let prices = Prices { rates: rates("1", "1", "1", "1", "1"), long: Some(long) };
        let usage = |input| TokenUsage { input, cache_read: 50, output: 1, ..TokenUsage::default() };
        assert_eq!(prices.cost(&usage(50)), usd("0.000101"));
        assert_eq!(prices.cost(&usage(51)), usd("0.000206"));
    }

    #[test]
    fn numbers_without_end_saturate() {
        let prices = Prices { rates: rates("3", "15", "3", "6", "1"), long: None };
        let usage = TokenUsage { input: u64::MAX, output: u64::MAX, ..TokenUsage::default() };
        assert_eq!(prices.cost(&usage).picos(), u64::MAX);
        // Inconsistent numbers: more tokens were written for an hour than were written at all.
        let odd = TokenUsage { cache_creation: 1, cache_creation_1h: 2, ..TokenUsage::default() };
        assert_eq!(prices.cost(&odd), usd("0.000012"));
    }

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        assert_eq!(usd("0.000000000001").picos(), 1);
        assert_eq!(usd("12").picos(), 12_000_000_000_000);
        for text in
            ["", ".", ".5", "5.", "-1", "1e3", "+1", "1,5", "0x1", "0.0000000000001", "99999999", "NaN"]
        {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
        assert_eq!("3.750000".parse::<Price>().unwrap().to_string(), "3.75");
        assert_eq!(Price::from_micros(10_000_000).to_string(), "10");
        assert_eq!(Price::from_micros(3_000_000).percent(125).to_string(), "3.75");
    }

    #[test]
    fn amounts_are_shown_with_two_digits_that_count() {
        let shown = [
            "0", "12.3", "1", "0.996", "0.999", "0.1", "0.084", "0.0951", "0.0096", "0.00321", "0.00005",
            "0.00004",
        ];
        assert_eq!(
            shown.map(|text| usd(text).to_string()).join(" "),
            "$0.00 $12.30 $1.00 $1.00 $1.00 $0.10 $0.084 $0.095 $0.0096 $0.0032 $0.0001 <$0.0001"
        );
    }

    #[test]
    fn in_json_an_amount_is_a_number_of_dollars() {
        for text in ["0.0325053", "1234.567890123456", "0.000000000001", "0"] {
            let json = serde_json::to_string(&usd(text)).unwrap();
            assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), usd(text), "{json}");
        }
        assert_eq!(serde_json::to_string(&usd("0.0325053")).unwrap(), "0.0325053");
        for bad in ["-1", "1e300", "\"1\"", "null"] {
            assert!(serde_json::from_str::<Usd>(bad).is_err(), "{bad}");
        }
    }
}
