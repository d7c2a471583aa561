//! What a request asks for besides a reply.

/// What every request of a context asks for. Fixed for the context's life: a change of effort or of thinking costs the
/// cached messages (WIRE R8), and the default leaves everything to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// How much work a reply is worth; the model's own default where it is not said.
    pub effort: Option<Effort>,
    /// Whether the model thinks before it answers.
    pub thinking: Thinking,
    /// How long the provider keeps what does not change.
    pub cache: CacheLifetime,
    /// How much chance there is in a reply. Only for models and API versions that still take it (WIRE 0.1).
    pub temperature: Option<Temperature>,
}

/// How much work a reply is worth (WIRE 0.4). Not every model knows every level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The quickest.
    Low,
    /// Between the two.
    Medium,
    High,
    /// More than thorough; some models refuse it.
    Xhigh,
    /// Everything the model has.
    Max,
}

/// Whether and how the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// As the model does by itself.
    #[default]
    ByModel,
    /// Not at all.
    Off,
    /// As much as the model finds right.
    Adaptive {
        /// What of it is shown; the model's own default where it is not said.
        display: Option<ThinkingDisplay>,
    },
    /// Up to this many tokens: how models before adaptive thinking take it.
    Budget {
        /// The most tokens of thinking.
        tokens: u32,
    },
}

/// What of the thinking comes with the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingDisplay {
    /// Nothing but the signature.
    Omitted,
    /// A summary.
    Summarized,
}

/// How long the provider keeps tools and system prompt for the next request. The messages are always kept for five
/// minutes: each request moves their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheLifetime {
    /// Five minutes after the last request: enough for a run that nobody interrupts.
    #[default]
    FiveMinutes,
    /// An hour: dearer to write, and still there when a person comes back to the terminal.
    OneHour,
}

/// A sampling temperature: a number from 0 to 2.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Temperature(f64);

impl Effort {
    /// Every level, the least first.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The APIs' word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl ThinkingDisplay {
    /// The API's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Omitted => "omitted",
            Self::Summarized => "summarized",
        }
    }
}

impl Temperature {
    /// The temperature, if it is one: every API takes a part of this range, and none takes more or NaN.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=2.0).contains(&value).then_some(Self(value))
    }

    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r2_a_temperature_is_a_number_that_json_can_hold() {
        for (value, expected) in [(0.0, true), (2.0, true), (-0.1, false), (2.1, false), (f64::NAN, false)] {
            assert_eq!(Temperature::new(value).is_some(), expected, "{value}");
        }
    }
}
