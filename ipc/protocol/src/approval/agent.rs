//! The request for a sub-agent with more access than the agent that starts it.

use serde::{Deserialize, Serialize};

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Rights};

use super::{NamedServer, TurnAccess};

/// The access with which a sub-agent starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum AgentAccess {
    /// No write access except to the sub-agent's own temp directory.
    #[default]
    Read,
    /// Read and write access.
    Write,
}

/// Asks to start a sub-agent with exactly this access for exactly this task. An answer for the session is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct AgentRightsApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks: the parent.
    pub agent: AgentId,
    /// The tool call that needs the approval.
    pub call_id: CallId,
    /// The sub-agent's task, whole; at most 32 KiB.
    pub task: String,
    /// The sub-agent's role, if it has one. The sub-agent also gets the instructions of that role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The access that the parent asks for.
    pub access: AgentAccess,
    /// Writable paths as the parent wrote them: relative to the project, or absolute.
    pub write: Vec<WirePath>,
    /// The network that the parent asks for.
    pub network: Network,
    /// All access of the sub-agent except that to its own private temp directory.
    pub rights: Rights,
    /// The part of the access that the parent does not have.
    pub grant: Grant,
    /// MCP servers that the parent passes on, for calls within the sub-agent's own access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<NamedServer>,
    /// SHA-256 of the task, the role, the servers and the access, in hexadecimal.
    pub digest: String,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason in its own words (untrusted), if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Access that the answer `approved_for_turn` gives until the turn ends; absent if that answer is not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnAccess>,
}
