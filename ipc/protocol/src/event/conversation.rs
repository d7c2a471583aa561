//! Beginning of a session, results of a turn, and the ends of both.

use crate::error_code::ErrorCode;
use ipc::path::WirePath;
use ipc::rights::RightsSummary;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Activity, EndReason, Recorded};
use crate::approval::ApprovalMode;
use crate::cost::Usd;

/// The beginning of a session, or of another run of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionStarted {
    /// The version of Bailiwick.
    pub version: String,
    /// Root directory of the project.
    pub project: WirePath,
    /// The activity of its first agent.
    pub activity: Activity,
    /// The approval mode at the start; `mode_changed` follows each change.
    pub mode: ApprovalMode,
    /// The model's name.
    pub model: String,
    /// The provider's name, as in the settings.
    pub provider: String,
    /// The address of the model's server. Absent in older logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Access without any approval.
    pub rights: Recorded<RightsSummary>,
    /// True if the session was started by an earlier run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
}

/// Another model answers from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModelChanged {
    /// The model until now.
    pub from: String,
    /// The model of the next requests.
    pub to: String,
    /// True if the conversation continues in a new context, which has its messages, tool calls and results, but no
    /// thinking, signatures and blocks of the provider's own tools.
    pub new_context: bool,
    /// Maximum number of tokens of a prompt of the next model and its reply together. Absent in older logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// A complete reply of the model.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AssistantMessage {
    /// The model's id of the message.
    pub message_id: String,
    /// The model that answered.
    pub model: String,
    /// The content blocks, byte for byte as they go back to the model.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub content: Vec<Box<RawValue>>,
    /// The model's reason to stop.
    pub stop_reason: String,
    /// The tokens of the reply.
    pub usage: TokenUsage,
    /// True if the number of tokens is, at least in part, our estimate. Providers do not count an interrupted reply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The cost, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
}

/// Tokens of one or many replies. Sums saturate, since a provider's numbers are not trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TokenUsage {
    /// Prompt tokens that came from no cache.
    pub input: u64,
    /// Prompt tokens that were written to the cache.
    pub cache_creation: u64,
    /// The part of them that is kept for an hour instead of five minutes.
    #[serde(default)]
    pub cache_creation_1h: u64,
    /// Prompt tokens that were read from the cache.
    pub cache_read: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// The estimated part of all these tokens, of interrupted replies.
    #[serde(default, skip_serializing_if = "is_none")]
    pub estimated: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

impl TokenUsage {
    /// All tokens of the prompt.
    pub const fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_creation).saturating_add(self.cache_read)
    }

    /// The sign before estimated numbers.
    pub const fn mark(&self) -> &'static str {
        if self.estimated == 0 { "" } else { "~" }
    }

    /// All tokens.
    pub const fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_creation = self.cache_creation.saturating_add(other.cache_creation);
        self.cache_creation_1h = self.cache_creation_1h.saturating_add(other.cache_creation_1h);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.output = self.output.saturating_add(other.output);
        self.estimated = self.estimated.saturating_add(other.estimated);
    }
}

/// The end of one turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TurnFinished {
    /// The reason why the agent stopped; `message` has the details, if there are any.
    pub reason: EndReason,
    /// A sentence for people, if the reason needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Number of answered requests.
    pub steps: u32,
    /// The turn's tokens.
    pub usage: TokenUsage,
    /// The cost, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// The end of a session, with the totals of all its agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunResult {
    /// Exit code that `bailiwick exec` ends with for this reason.
    pub exit_code: u8,
    /// The reason why the agent stopped; `message` has the details, if there are any.
    pub reason: EndReason,
    /// A sentence for people, if the reason needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The stable code of the error, if the message has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
    /// Reason that the first worker's tier is not `full`, if the best was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_full_tier: Option<String>,
    /// Promises of the sandbox that this kernel does not enforce.
    #[serde(default, alias = "missing", skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<String>,
    /// The model's last words.
    pub text: String,
    /// The answer as JSON, if the run has a schema and the answer fits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Number of answered requests.
    pub steps: u32,
    /// Tokens in all.
    pub usage: TokenUsage,
    /// The cost, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}
