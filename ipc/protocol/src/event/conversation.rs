//! Events about the start of a session, the replies of a model, and the ends of turns and sessions.

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
    /// The kind of work that the session's first agent does.
    pub activity: Activity,
    /// The approval mode at the start. The event `mode_changed` reports each change.
    pub mode: ApprovalMode,
    /// The model's name.
    pub model: String,
    /// The provider's name, as in the settings.
    pub provider: String,
    /// The address of the model's server. Absent in logs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Access that the agent has without any approval.
    pub rights: Recorded<RightsSummary>,
    /// True if the session continues after an earlier run.
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
    /// Maximum number of tokens of a prompt and its reply together, for the next model. Absent in older logs.
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
    /// The tokens of the prompt and the reply.
    pub usage: TokenUsage,
    /// True if at least a part of the tokens is estimated, since providers do not count an interrupted reply.
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
    /// The part of `cache_creation` that is kept for an hour instead of five minutes.
    #[serde(default)]
    pub cache_creation_1h: u64,
    /// Prompt tokens that were read from the cache.
    pub cache_read: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// The estimated part of all these tokens; providers do not count an interrupted reply.
    #[serde(default, skip_serializing_if = "is_none")]
    pub estimated: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

impl TokenUsage {
    /// Returns the number of all tokens of the prompt.
    pub const fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_creation).saturating_add(self.cache_read)
    }

    /// Returns the sign before displayed numbers: `~` if a part is estimated.
    pub const fn mark(&self) -> &'static str {
        if self.estimated == 0 { "" } else { "~" }
    }

    /// Returns the number of all tokens of prompt and reply.
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
    /// Number of requests that the model answered.
    pub steps: u32,
    /// Tokens of all requests in the turn.
    pub usage: TokenUsage,
    /// The cost, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Duration of the turn in milliseconds.
    pub duration_ms: u64,
}

/// The end of a session, with the totals of all its agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunResult {
    /// Exit code of `bailiwick exec` for this reason.
    pub exit_code: u8,
    /// The reason why the agent stopped; `message` has the details, if there are any.
    pub reason: EndReason,
    /// A sentence for people, if the reason needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The stable code of the error, if the message has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
    /// Reason that the first worker's tier is not `full`, if the best tier was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_full_tier: Option<String>,
    /// Parts of the access that this kernel does not enforce, one sentence each.
    #[serde(default, alias = "missing", skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<String>,
    /// The model's last message.
    pub text: String,
    /// The answer as JSON, if the run has a schema for answers and the answer fits the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Number of requests that the model answered.
    pub steps: u32,
    /// Tokens of all agents of the session.
    pub usage: TokenUsage,
    /// The cost, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Duration of the run in milliseconds.
    pub duration_ms: u64,
}
