//! The model of an agent: its name, window and limits.

use std::time::Duration;

use protocol::cost::{Prices, Usd};

use crate::conversation::{GiveUp, ProviderError, RequestOptions, Tried};

/// A model that may replace the current model of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelChoice {
    pub name: String,
    /// Maximum tokens of one reply.
    pub max_tokens: u32,
    /// Options of each request.
    pub options: RequestOptions,
    pub sees_images: bool,
    pub prices: Option<Prices>,
    pub window: Window,
}

/// Size of a model's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Maximum tokens of a prompt and its reply together.
    pub context: u64,
}

impl Window {
    /// Minimum window of an agent. System prompt and tools alone take a fifth of it.
    pub const LEAST: u64 = 16_000;

    /// Returns a window of this size, or of [`Self::LEAST`] if `context` is smaller.
    pub const fn new(context: u64) -> Self {
        Self { context: if context < Self::LEAST { Self::LEAST } else { context } }
    }

    /// Returns this window, or a window of `context` tokens if that is smaller.
    #[must_use]
    pub const fn within(self, context: u64) -> Self {
        if context < self.context { Self::new(context) } else { self }
    }
}

impl Default for Window {
    fn default() -> Self {
        Self { context: 1_000_000 }
    }
}

/// Limits for a run, from a user's message until the agent waits for the next message. The driver limits the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLimits {
    pub max_steps: Option<u32>,
    pub max_tokens: Option<u64>,
    /// Maximum cost; `None` without a limit. It has no effect if the model's prices are unknown.
    pub max_usd: Option<Usd>,
}

/// Decides if and when a failed request is sent again.
pub trait Backoff: Send {
    /// Returns the delay until the next attempt, or the reason why there is no further attempt.
    fn delay(&self, tried: Tried, error: &ProviderError) -> Result<Duration, GiveUp>;
}
