//! Model of a session: facts about the model, and options of requests to it.

use agent::core::{ModelChoice, RunLimits, Window};
use model::provider::anthropic::ApiVersion;
use model::provider::catalogue::{Facts, ThinkingKind};
use model::provider::{
    CacheLifetime, Effort, RequestOptions, RetryPolicy, Thinking, ThinkingDisplay, Timeouts,
};

use crate::settings::config::Effective;

/// Maximum number of tokens that a request allows for the reply (WIRE R9: always sent, and big, with streaming).
const REPLY_TOKENS: u32 = 32_000;

#[derive(Clone, Debug)]
pub(crate) struct ModelOptions {
    pub name: String,
    pub facts: Facts,
    /// Effort that requests ask of the model; `None` for the model's default.
    pub effort: Option<Effort>,
    /// True if thinking is on; `None` for the model's default.
    pub thinking: Option<bool>,
    /// Time for which the provider caches the unchanged part of requests.
    pub cache: CacheLifetime,
    /// Reason for the choice of the API; `None` if the user chose it.
    pub chosen_by: Option<String>,
    pub timeouts: Timeouts,
    pub retries: RetryPolicy,
}

/// Error because of which the settings of a model cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("the model {model:?} does not support the effort {:?}; supported: {known}\n  hint: change `effort` in the settings, or leave it out", .effort.as_str())]
    Effort {
        model: String,
        effort: Effort,
        /// The levels that the model supports, separated by commas.
        known: String,
    },
    #[error(
        "it is not known how to turn on the thinking of the model {model:?}\n  hint: leave out `thinking` in the settings, or name the way in config.toml, as in:\n    [models.{model:?}]\n    thinking = \"adaptive\""
    )]
    Thinking { model: String },
    #[error(
        "the cost of {model:?} cannot be limited: its price is not known\n  hint: limit its tokens instead, or write the price into config.toml, as in:\n    [models.{model:?}]\n    prices = {{ input = 3, output = 15 }}"
    )]
    NoPrice { model: String },
}

impl ModelOptions {
    /// Derives the options from settings. `watches` is true if a user is present, who can interrupt a long wait.
    pub(crate) fn new(effective: &Effective, watches: bool) -> Self {
        Self {
            name: effective.model().to_owned(),
            facts: effective.facts(),
            effort: effective.effort(),
            thinking: effective.thinking(),
            cache: effective.cache(watches),
            chosen_by: effective.reason_of_provider(),
            timeouts: effective.timeouts(),
            retries: effective.retries(watches),
        }
    }

    /// Checks that the model can be used with these limits.
    pub(crate) fn check(&self, limits: &RunLimits) -> Result<(), ModelError> {
        let model = self.name.clone();
        if limits.max_usd.is_some() && self.facts.prices.is_none() {
            return Err(ModelError::NoPrice { model });
        }
        if self.thinking == Some(true) && self.facts.thinking == ThinkingKind::None {
            return Err(ModelError::Thinking { model });
        }
        match (self.effort, &self.facts.effort) {
            (Some(effort), Some(known)) if !known.contains(&effort) => {
                let known: Vec<_> = known.iter().map(|effort| effort.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(ModelError::Effort { model, effort, known })
            }
            _ => Ok(()),
        }
    }

    /// Returns the options of every request. The model's defaults apply to unset ones.
    pub(crate) fn request_options(&self) -> RequestOptions {
        let Self { effort, cache, .. } = *self;
        RequestOptions { effort, thinking: self.asked_thinking(), cache, temperature: None }
    }

    fn asked_thinking(&self) -> Thinking {
        match (self.facts.thinking, self.thinking) {
            (_, Some(false)) => Thinking::Off,
            // Newer models write between tool calls only in their thinking, which they omit unless requested.
            (ThinkingKind::Adaptive, _) if self.facts.api_version == ApiVersion::V2026_10_21 => {
                Thinking::Adaptive { display: Some(ThinkingDisplay::Summarized) }
            }
            // Some older models think only if requested.
            (ThinkingKind::Adaptive, _) => Thinking::Adaptive { display: None },
            // Half of the reply is left for the answer.
            (ThinkingKind::Budget, Some(true)) => Thinking::Budget { tokens: self.reply_tokens() / 2 },
            (ThinkingKind::Budget | ThinkingKind::None, _) => Thinking::ByModel,
        }
    }

    /// Returns the model for an agent whose context window is limited to `window`.
    pub(crate) fn choice(&self, window: Window) -> ModelChoice {
        ModelChoice {
            name: self.name.clone(),
            max_tokens: self.reply_tokens(),
            options: self.request_options(),
            sees_images: self.facts.images,
            prices: self.facts.prices,
            window: window.within(self.facts.context),
        }
    }

    pub(crate) fn reply_tokens(&self) -> u32 {
        self.facts.max_output.min(REPLY_TOKENS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(kind: ThinkingKind, thinking: Option<bool>) -> ModelOptions {
        ModelOptions {
            name: "m".into(),
            facts: Facts { thinking: kind, ..Facts::default() },
            effort: None,
            thinking,
            cache: CacheLifetime::default(),
            chosen_by: None,
            timeouts: Timeouts::default(),
            retries: RetryPolicy::default(),
        }
    }

    #[test]
    fn a_model_is_told_to_think_in_its_own_way_and_not_to_in_every_way() {
        let asked = |kind, thinking| model(kind, thinking).request_options().thinking;
        for kind in ThinkingKind::ALL {
            assert_eq!(asked(kind, Some(false)), Thinking::Off);
        }
        let adaptive = asked(ThinkingKind::Adaptive, None);
        assert!(matches!(adaptive, Thinking::Adaptive { .. }));
        assert_eq!(asked(ThinkingKind::Adaptive, Some(true)), adaptive);
        assert_eq!(asked(ThinkingKind::Budget, None), Thinking::ByModel);
        assert_eq!(asked(ThinkingKind::Budget, Some(true)), Thinking::Budget { tokens: 16_000 });
    }

    #[test]
    fn a_model_that_nobody_knows_to_think_is_not_told_to() {
        let limits = RunLimits::default();
        let refused = model(ThinkingKind::None, Some(true)).check(&limits).unwrap_err();
        insta::assert_snapshot!(refused, @r#"
        it is not known how to turn on the thinking of the model "m"
          hint: leave out `thinking` in the settings, or name the way in config.toml, as in:
            [models."m"]
            thinking = "adaptive"
        "#);
        assert_eq!(model(ThinkingKind::None, Some(false)).check(&limits), Ok(()));
    }
}
