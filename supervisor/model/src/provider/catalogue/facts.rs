use protocol::cost::Prices;

use super::Entry;
use crate::provider::Effort;
use crate::provider::anthropic::ApiVersion;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub api: Api,
    pub api_version: ApiVersion,
    pub context: u64,
    pub max_output: u32,
    pub prices: Option<Prices>,
    pub thinking: ThinkingKind,
    /// Supported levels of effort; `None` if unknown.
    pub effort: Option<Vec<Effort>>,
    pub images: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Messages,
    Chat,
    Responses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingKind {
    None,
    /// Thinking with a budget of tokens.
    Budget,
    /// Thinking whose amount the model itself chooses, according to the level of effort.
    Adaptive,
}

impl Facts {
    /// Returns the properties of a model. Each is from the first entry that sets it, or else the default.
    pub fn of(entries: &[&Entry]) -> Self {
        let preset = Self::default();
        Self {
            api: first(entries, |entry| entry.api).unwrap_or(preset.api),
            api_version: first(entries, |entry| entry.api_version).unwrap_or(preset.api_version),
            context: first(entries, |entry| entry.context).unwrap_or(preset.context),
            max_output: first(entries, |entry| entry.max_output).unwrap_or(preset.max_output),
            prices: first(entries, |entry| entry.prices),
            thinking: first(entries, |entry| entry.thinking).unwrap_or(preset.thinking),
            effort: first(entries, |entry| entry.effort.clone()),
            images: first(entries, |entry| entry.images).unwrap_or(preset.images),
        }
    }
}

/// Properties of an unknown model. Most servers have a context of 128,000 tokens; a server with a smaller context
/// reports an error when the context is full.
impl Default for Facts {
    fn default() -> Self {
        Self {
            api: Api::Messages,
            api_version: ApiVersion::default(),
            context: 128_000,
            max_output: 32_000,
            prices: None,
            thinking: ThinkingKind::None,
            effort: None,
            images: true,
        }
    }
}

fn first<T>(entries: &[&Entry], fact: impl Fn(&Entry) -> Option<T>) -> Option<T> {
    entries.iter().find_map(|entry| fact(entry))
}

impl Api {
    pub const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }
}

impl ThinkingKind {
    pub const ALL: [Self; 3] = [Self::None, Self::Budget, Self::Adaptive];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Budget => "budget",
            Self::Adaptive => "adaptive",
        }
    }
}
