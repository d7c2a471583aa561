//! The request to execute a plan.

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Rights};
use serde::{Deserialize, Serialize};

use super::NamedServer;
use crate::plan::{PlaceToCreate, Plan};

/// Asks to let another agent execute exactly this plan. That agent has exactly this access, and requests no other.
///
/// An answer for the session is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct PlanApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks: the planner.
    pub agent: AgentId,
    /// The tool call that needs the approval.
    pub call_id: CallId,
    /// The plan's file.
    pub path: WirePath,
    /// The text of the plan file.
    pub markdown: String,
    /// The plan that was read from `markdown`.
    pub plan: Plan,
    /// Numbers of finished steps, which are not done again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<u32>,
    /// All access of the execution except its private temp directory. Acceptance commands run with this access, too.
    pub rights: Rights,
    /// The directory of the project's package caches, outside of the project, if the execution may write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<WirePath>,
    /// Paths in the plan that do not exist yet. The execution may write the directories in which they will be created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_create: Vec<PlaceToCreate>,
    /// The part of the access that the asking agent does not have.
    pub grant: Grant,
    /// True if the plan asks for the network, which is off in this session and which the approval does not turn on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network_refused: bool,
    /// MCP servers that the plan lists. The execution calls them without a further request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<NamedServer>,
    /// True if each acceptance command needs a further approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms_commands: bool,
    /// SHA-256 of the bytes of the plan, of the access and of the servers' tools, in hexadecimal.
    pub digest: String,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason in its own words (untrusted), if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
