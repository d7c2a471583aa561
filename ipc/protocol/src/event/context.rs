//! Events about a context that becomes too long, and about the new context that replaces it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{TokenUsage, counted};
use crate::cost::Usd;

/// A context is about to be summarised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CompactionStarted {
    /// Reason for summarising the context.
    pub cause: CompactionCause,
    /// Estimated number of tokens of the next prompt.
    pub tokens: u64,
    /// Maximum number of tokens of a prompt and its reply together.
    pub window: u64,
}

/// A new context has begun: the model gets nothing of the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContextCompacted {
    /// Reason for the new context.
    pub cause: CompactionCause,
    /// The author of the summary.
    pub summary: SummaryFrom,
    /// Estimated number of tokens that the next prompt would have had.
    pub tokens_before: u64,
    /// Estimated number of tokens that the new context begins with.
    pub tokens_after: u64,
    /// Tokens of the request for the summary and of its reply.
    pub usage: TokenUsage,
    /// Cost of the summary, if the prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// The first message of the new context, as the model gets it: its blocks of text, in order.
    pub first_message: Vec<String>,
}

/// Reason for summarising a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum CompactionCause {
    /// The next prompt would not leave enough tokens for a reply and the results of its calls.
    Limit,
    /// The provider said that the prompt is too long.
    Overflow,
    /// The user requested the summary.
    Request,
    /// The user requested an empty conversation without a summary.
    Clear,
}

/// Author of the summary of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum SummaryFrom {
    /// The model, at the end of the whole conversation.
    Conversation,
    /// The model, from a shortened record of the conversation.
    Record,
    /// Nobody: only facts that need no model were carried over.
    Nobody,
}

impl fmt::Display for CompactionStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, tokens, window } = self;
        let why = match cause {
            CompactionCause::Limit => "the context is nearly full",
            CompactionCause::Overflow => "the provider finds the context too long",
            CompactionCause::Request | CompactionCause::Clear => "as you asked",
        };
        let (tokens, window) = (counted(*tokens), counted(*window));
        write!(f, "{why}: the conversation is summarised (about {tokens} of {window} tokens)")
    }
}

impl fmt::Display for ContextCompacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, summary, tokens_before, tokens_after, .. } = self;
        match (cause, summary) {
            (CompactionCause::Clear, _) => {
                f.write_str("an empty conversation begins: the model knows nothing of what is above")?;
                return write!(f, " (about {} → {} tokens)", counted(*tokens_before), counted(*tokens_after));
            }
            _ => write!(f, "a new context continues with ")?,
        }
        match summary {
            SummaryFrom::Conversation => write!(f, "the model's summary")?,
            SummaryFrom::Record => write!(f, "the model's summary of a shortened conversation")?,
            SummaryFrom::Nobody => write!(f, "what Bailiwick recorded; the model wrote no summary")?,
        }
        write!(f, " (about {} → {} tokens)", counted(*tokens_before), counted(*tokens_after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_events_are_a_line_each() {
        let started = CompactionStarted { cause: CompactionCause::Limit, tokens: 850_000, window: 1_000_000 };
        assert_eq!(
            started.to_string(),
            "the context is nearly full: the conversation is summarised (about 850k of 1.0M tokens)"
        );
        let compacted = ContextCompacted {
            cause: CompactionCause::Limit,
            summary: SummaryFrom::Conversation,
            tokens_before: 850_000,
            tokens_after: 12_000,
            usage: TokenUsage::default(),
            cost_usd: None,
            first_message: Vec::new(),
        };
        assert_eq!(
            compacted.to_string(),
            "a new context continues with the model's summary (about 850k → 12.0k tokens)"
        );
    }
}
