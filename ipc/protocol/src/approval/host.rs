//! The request for a host that a running command connects to.

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::rights::{Grant, HostRule, RightsSummary};
use serde::{Deserialize, Serialize};

use crate::event::Recorded;

/// Asks about a host beyond the list, while connections of a running command wait for the answer.
///
/// There is one request for each name and port, however many connections wait. `approved` holds until the command ends. The one
/// scope for the session is `network`: the host joins the list once the command has ended. Without an answer in time the
/// connections end, and the call's result says which host was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct HostApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The call whose command connects. Of several commands that run at a time, the first.
    pub call_id: CallId,
    /// The command, as the agent wrote it.
    pub command: String,
    /// Name that the connecting process gives itself: a claim, escaped; empty if it is unknown.
    pub program: String,
    /// The host and port.
    pub host: HostRule,
    /// SHA-256 of the session, the agent, the worker's generation, the number of the question, and the host and port,
    /// in hexadecimal.
    pub digest: String,
    /// The rights beyond the standing ones: this host.
    pub grant: Grant,
    /// The access that the agent has without this approval.
    pub rights: Recorded<RightsSummary>,
    /// Time for an answer, in milliseconds from the request on.
    pub timeout_ms: u64,
    /// The agent's reason, in its own words: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
