//! Options of a request.

/// Options of every request of a context. Fixed for the context's life: a change of effort or thinking invalidates
/// cached messages (WIRE R8).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// Amount of work for a reply; `None` for the model's default.
    pub effort: Option<Effort>,
    pub thinking: Thinking,
    /// Time for which the provider caches the unchanged part.
    pub cache: CacheLifetime,
    pub temperature: Option<Temperature>,
}

/// Amount of work for a reply (WIRE 0.4). Not every model has every level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Low,
    Medium,
    High,
    /// Some models reject this level.
    Xhigh,
    Max,
}

/// The model's thinking before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    #[default]
    ByModel,
    Off,
    /// As much as the model decides.
    Adaptive {
        /// Visible part of the thinking; `None` for the model's default.
        display: Option<ThinkingDisplay>,
    },
    /// At most this many tokens: for models before adaptive thinking.
    Budget {
        tokens: u32,
    },
}

/// Visible part of the thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingDisplay {
    /// The reply has the signature of the thinking, and not its text.
    Omitted,
    Summarized,
}

/// Time for which the provider caches tools and system prompt. Messages are always cached for five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheLifetime {
    /// Enough for a run that nobody interrupts.
    #[default]
    FiveMinutes,
    /// More expensive to write, but lasts until a person comes back to the terminal.
    OneHour,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Temperature(f64);

impl Effort {
    /// Every level, the least first.
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
    /// Accepts 0 to 2: no API takes more, or NaN.
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
