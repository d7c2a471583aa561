//! End of a run.

use protocol::cost::Usd;
use protocol::error_code::ErrorCode;
use protocol::event::TokenUsage;
use serde_json::Value;

pub use protocol::event::EndReason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub reason: EndReason,
    pub message: Option<String>,
    pub text: String,
    /// The answer that fits the schema of the run; `None` if the run has no schema, or no reply fits it.
    pub output: Option<Value>,
    pub steps: u32,
    pub usage: TokenUsage,
    pub cost: Option<Usd>,
}

#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) reason: EndReason,
    pub(super) message: Option<String>,
}

impl Ending {
    pub(super) const fn of(reason: EndReason) -> Self {
        Self { reason, message: None }
    }

    pub(super) fn because(reason: EndReason, message: impl Into<String>) -> Self {
        Self { reason, message: Some(message.into()) }
    }

    /// Returns the end of a run whose conversation fits into no context.
    pub(super) fn context_full(message: &str) -> Self {
        Self::because(EndReason::ContextFull, ErrorCode::ContextTooLong.mark_anew(message))
    }
}

impl RunEnd {
    /// Returns an end with reason and message. All other fields are empty.
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
