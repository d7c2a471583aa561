//! The request for a sub-agent with rights beyond those of the agent that starts it.

use serde::{Deserialize, Serialize};

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Rights};

use super::{NamedServer, TurnAccess};

/// The access that a sub-agent is started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum AgentAccess {
    /// No write right but the sub-agent's own temp directory.
    #[default]
    Read,
    /// Write rights as well.
    Write,
}

/// Asks to start a sub-agent with exactly these rights for exactly this task.
///
/// It is asked once, before the sub-agent starts. An answer for the session is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct AgentRightsApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks: the parent.
    pub agent: AgentId,
    /// The call that it is for.
    pub call_id: CallId,
    /// The sub-agent's task, whole; at most 32 KiB.
    pub task: String,
    /// The role that it would have, whose instructions it reads besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The access that the parent asks for.
    pub access: AgentAccess,
    /// The write roots as the parent wrote them: relative to the project, or absolute.
    pub write: Vec<WirePath>,
    /// The network that the parent asks for.
    pub network: Network,
    /// All rights of the sub-agent, without its own private temp directory.
    pub rights: Rights,
    /// The part of the rights that is beyond the parent's standing rights.
    pub grant: Grant,
    /// Servers of tools that the parent passes on. A call of one is carried out only within the sub-agent's own rights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<NamedServer>,
    /// SHA-256 of the task, the role, the servers and the rights, in hexadecimal.
    pub digest: String,
    /// Time for an answer, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// The agent's reason, in its own words: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Access until the end of the turn that the answer `approved_for_turn` gives; absent where that is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnAccess>,
}
