//! How a run ends.

use protocol::cost::Usd;
use protocol::error_code::ErrorCode;
use protocol::event::TokenUsage;
use serde_json::Value;

pub use protocol::event::EndReason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub reason: EndReason,
    /// A sentence for people, where the reason needs one.
    pub message: Option<String>,
    /// The model's last words.
    pub text: String,
    /// The answer that fits the schema of the run, if it has one.
    pub output: Option<Value>,
    /// Number of requests that were answered.
    pub steps: u32,
    /// Tokens in all.
    pub usage: TokenUsage,
    /// Cost of them, where the model's prices are known.
    pub cost: Option<Usd>,
}

/// The reason for the end of a run, until its account is added.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) reason: EndReason,
    pub(super) message: Option<String>,
}

impl Ending {
    /// An end that needs no words.
    pub(super) const fn of(reason: EndReason) -> Self {
        Self { reason, message: None }
    }

    pub(super) fn because(reason: EndReason, message: impl Into<String>) -> Self {
        Self { reason, message: Some(message.into()) }
    }

    /// The end of a run since no context could hold what is to be said.
    pub(super) fn context_full(message: &str) -> Self {
        Self::because(EndReason::ContextFull, ErrorCode::ContextTooLong.mark_anew(message))
    }
}

impl RunEnd {
    /// The end of a run of which nothing else is known.
    pub fn without_account(reason: EndReason, message: String) -> Self {
        Self {
            reason,
            message: Some(message),
            text: String::new(),
            output: None,
            steps: 0,
            usage: TokenUsage::default(),
            cost: None,
        }
    }
}
