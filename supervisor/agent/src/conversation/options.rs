//! Options of a request to the model.

/// Options of all requests in one context. Fixed until the next context: a change of effort or thinking invalidates the
/// messages that the provider has cached.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// Amount of work that the model puts into a reply; `None` for the model's default.
    pub effort: Option<Effort>,
    pub thinking: Thinking,
    /// Time for which the provider caches system prompt and tools.
    pub cache: CacheLifetime,
    pub temperature: Option<Temperature>,
}

/// Amount of work that a model puts into a reply. Not every model has every level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Low,
    Medium,
    High,
    /// A level that some models reject.
    Xhigh,
    Max,
}

/// Setting for the model's thinking before its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    #[default]
    ByModel,
    Off,
    /// The model decides how much it thinks.
    Adaptive {
        /// Form in which a reply shows the thinking; `None` for the model's default.
        display: Option<ThinkingDisplay>,
    },
    /// Thinking of at most this many tokens, for models without adaptive thinking.
    Budget {
        tokens: u32,
    },
}

/// Form in which a reply shows the model's thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingDisplay {
    /// The reply has the signature of the thinking, but not its text.
    Omitted,
    Summarized,
}

/// Time for which the provider caches tools and system prompt. Messages are always cached for five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheLifetime {
    /// Lifetime for runs without a person, whose requests follow each other closely.
    #[default]
    FiveMinutes,
    /// Lifetime for a person who reads between two turns. Writing to the cache costs more than with five minutes.
    OneHour,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Temperature(f64);

impl Effort {
    /// All levels in ascending order.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Omitted => "omitted",
            Self::Summarized => "summarized",
        }
    }
}

impl Temperature {
    /// Returns the temperature; `None` for NaN, and for a value outside of 0 to 2: no API accepts more.
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
