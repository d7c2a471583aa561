//! The request to fetch a page from a host that the agent may not reach.

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::rights::Grant;
use serde::{Deserialize, Serialize};

/// Asks to fetch exactly this URL. The host receives everything in it.
///
/// An answer for the session can have the scope `exact` or `host` only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct FetchApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool call that needs the approval.
    pub call_id: CallId,
    /// The whole URL as it is requested: printable ASCII.
    pub url: String,
    /// The host, and its port unless that is 443.
    pub host: String,
    /// SHA-256 of the URL, in hexadecimal.
    pub digest: String,
    /// Access that the call gets in addition to the permanent one.
    pub grant: Grant,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason in its own words (untrusted), if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
