//! How a run ends.

use protocol::cost::Usd;
use protocol::event::TokenUsage;
use serde_json::Value;

pub use protocol::event::EndReason;

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// A sentence for people, where the reason needs one.
    pub message: Option<String>,
    /// The model's last words.
    pub text: String,
    /// The answer that fits the schema of the run, if it has one.
    pub output: Option<Value>,
    /// How many requests were answered.
    pub steps: u32,
    /// Tokens in all.
    pub usage: TokenUsage,
    /// What they cost, where the model's prices are known.
    pub cost: Option<Usd>,
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
