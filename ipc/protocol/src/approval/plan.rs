//! The request for the execution of a plan.

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::{Grant, Rights};
use serde::{Deserialize, Serialize};

use super::NamedServer;
use crate::plan::{PlaceToCreate, Plan};

/// Asks to execute exactly this plan, by an agent of its own that has exactly these rights and asks nobody.
///
/// It is asked once for these bytes. An answer for the session is rejected.
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
    /// The steps that an execution before has finished, which are not done again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<u32>,
    /// All rights of the execution, without a private temp directory. Acceptance commands run under them without
    /// another request.
    pub rights: Rights,
    /// The write root among them that is the project's package caches, which lie outside the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<WirePath>,
    /// The places that the plan asks for and that are to be created: the rights are on their directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_create: Vec<PlaceToCreate>,
    /// The part of the rights that is beyond those of the agent that asks.
    pub grant: Grant,
    /// True if the plan asks for the network, which is off in this session: execution will not have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network_refused: bool,
    /// Servers of tools that the plan lists. Their calls are carried out without another request, whatever the
    /// rights above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<NamedServer>,
    /// True if each acceptance command is asked for once more before it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms_commands: bool,
    /// SHA-256 of the bytes of the plan, of the rights and of the servers' tools, in hexadecimal.
    pub digest: String,
    /// Time for an answer, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// The agent's reason, in its own words: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
