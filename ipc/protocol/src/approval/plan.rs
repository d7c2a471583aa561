//! The request for the execution of a plan.

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Rights};
use serde::{Deserialize, Serialize};

use super::NamedServer;
use crate::plan::{PlaceToCreate, Plan};

/// Asks to execute exactly this plan, by another agent with exactly this access, which asks nobody.
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
    /// The call that it is for.
    pub call_id: CallId,
    /// The plan's file.
    pub path: WirePath,
    /// The bytes of the plan.
    pub markdown: String,
    /// The plan as it was read from them.
    pub plan: Plan,
    /// Finished steps, which are not done again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<u32>,
    /// All access of the execution, without a private temp directory. Acceptance commands run with it without another
    /// request.
    pub rights: Rights,
    /// The writable directory of the project's package caches, outside of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<WirePath>,
    /// Paths that the plan asks for and that are to be created: access is to their directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_create: Vec<PlaceToCreate>,
    /// The part of the access that the asking agent does not have.
    pub grant: Grant,
    /// True if the plan asks for the network, which is off in this session and stays off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network_refused: bool,
    /// MCP servers that the plan lists, whose calls need no further request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<NamedServer>,
    /// True if each acceptance command needs a further approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms_commands: bool,
    /// SHA-256 of the bytes of the plan, of the access and of the servers' tools, in hexadecimal.
    pub digest: String,
    /// Time for an answer, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// The agent's reason, in its own words (untrusted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
