//! The model of a session: how it is asked, and what is known of it.

use crate::config::Effective;
use crate::core::RunLimits;
use crate::provider::anthropic::ApiVersion;
use crate::provider::catalogue::{Facts, ThinkingKind};
use crate::provider::{
    CacheLifetime, Effort, RequestOptions, RetryPolicy, Thinking, ThinkingDisplay, Timeouts,
};

/// The most tokens of one reply that are asked for (WIRE R9: always sent, and big, with streaming).
const REPLY_TOKENS: u32 = 32_000;

/// The model of a session.
#[derive(Clone, Debug)]
pub(super) struct ModelOptions {
    /// Its name.
    pub name: String,
    /// What is known of it.
    pub facts: Facts,
    /// How much work a reply is worth, if it is said.
    pub effort: Option<Effort>,
    /// How long its provider keeps what does not change.
    pub cache: CacheLifetime,
    /// How long its provider may take.
    pub timeouts: Timeouts,
    /// When it is asked again.
    pub retries: RetryPolicy,
}

/// The model cannot be asked so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ModelError {
    /// The level of effort is none of its own.
    #[error("the model {model:?} does not know the effort {:?}: it knows {known}\n  next: change `effort` in the settings, or leave it out", .effort.as_str())]
    Effort {
        /// The model.
        model: String,
        /// What was asked for.
        effort: Effort,
        /// What it knows.
        known: String,
    },
    /// What it costs cannot be bounded.
    #[error(
        "the cost of {model:?} cannot be limited: nobody knows its price\n  next: say it in config.toml, as in [models.{model:?}] prices = {{ input = 3, output = 15 }}, or limit its tokens"
    )]
    NoPrice {
        /// The model.
        model: String,
    },
}

impl ModelOptions {
    /// What the settings say. A person who `watches` can end a wait that is too long.
    pub(super) fn new(effective: &Effective, watches: bool) -> Self {
        Self {
            name: effective.model().to_owned(),
            facts: effective.facts(),
            effort: effective.effort(),
            cache: effective.cache(watches),
            timeouts: effective.timeouts(),
            retries: effective.retries(watches),
        }
    }

    /// Whether it can be asked within these limits.
    pub(super) fn check(&self, limits: &RunLimits) -> Result<(), ModelError> {
        let model = self.name.clone();
        if limits.max_usd.is_some() && self.facts.prices.is_none() {
            return Err(ModelError::NoPrice { model });
        }
        match (self.effort, &self.facts.effort) {
            (Some(effort), Some(known)) if !known.contains(&effort) => {
                let known: Vec<_> = known.iter().map(|effort| effort.as_str()).collect();
                let known =
                    if known.is_empty() { "no levels of effort".to_owned() } else { known.join(", ") };
                Err(ModelError::Effort { model, effort, known })
            }
            _ => Ok(()),
        }
    }

    /// What every request asks for. What is said nowhere is the model's own choice.
    pub(super) fn request_options(&self) -> RequestOptions {
        let thinking = match self.facts.thinking {
            // Newer models say nothing between tool calls but in their thinking, which they leave out unless it is asked for.
            ThinkingKind::Adaptive if self.facts.api_version == ApiVersion::V2026_10_21 => {
                Thinking::Adaptive { display: Some(ThinkingDisplay::Summarized) }
            }
            // Some of the older ones think only when they are told to.
            ThinkingKind::Adaptive => Thinking::Adaptive { display: None },
            ThinkingKind::Budget | ThinkingKind::None => Thinking::ByModel,
        };
        RequestOptions { effort: self.effort, thinking, cache: self.cache, temperature: None }
    }

    /// The most tokens of one reply.
    pub(super) fn reply_tokens(&self) -> u32 {
        self.facts.max_output.min(REPLY_TOKENS)
    }
}
