//! How a run ends.

use protocol::cost::Usd;
use protocol::event::TokenUsage;

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
            steps: 0,
            usage: TokenUsage::default(),
            cost: None,
        }
    }
}
