//! The model that answers an agent: its name and its window, and how often it is asked.

use std::time::Duration;

use protocol::cost::{Prices, Usd};

use crate::conversation::{GiveUp, ProviderError, RequestOptions, Tried};

/// A model that may take the place of an agent's own, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelChoice {
    pub name: String,
    /// The most tokens of one reply.
    pub max_tokens: u32,
    /// Further demands of each request.
    pub options: RequestOptions,
    /// True if it sees pictures.
    pub sees_images: bool,
    /// Its prices, where they are known.
    pub prices: Option<Prices>,
    /// Size of its context.
    pub window: Window,
}

/// Size of a model's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The most tokens of a prompt and its reply together.
    pub context: u64,
}

impl Window {
    /// The smallest window that an agent works in: the system prompt and the tools alone take a fifth of it.
    pub const LEAST: u64 = 16_000;

    /// A window of this many tokens, or the smallest one.
    pub const fn new(context: u64) -> Self {
        Self { context: if context < Self::LEAST { Self::LEAST } else { context } }
    }

    /// The same, as far as the model's context of this many tokens goes.
    #[must_use]
    pub const fn within(self, context: u64) -> Self {
        if context < self.context { Self::new(context) } else { self }
    }
}

/// Today's models (WIRE §0.3).
impl Default for Window {
    fn default() -> Self {
        Self { context: 1_000_000 }
    }
}

/// Bounds on one run, from a user's message to the agent's rest. The wall clock is the driver's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// The most replies of the model.
    pub max_steps: Option<u32>,
    /// The most tokens in all, of prompts and replies.
    pub max_tokens: Option<u64>,
    /// The most that it may cost; counts only where the model's prices are known.
    pub max_usd: Option<Usd>,
}

/// Decides whether and when a failed request is sent again.
pub trait Backoff: Send {
    /// Returns the time until the next attempt, or the reason why there is none.
    fn delay(&self, tried: Tried, error: &ProviderError) -> Result<Duration, GiveUp>;
}
