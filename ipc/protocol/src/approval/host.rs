//! The request to let a running command connect to a host.

use ipc::id::{AgentId, CallId, ConversationId};
use ipc::rights::{Grant, HostRule, RightsSummary};
use serde::{Deserialize, Serialize};

use crate::event::Recorded;

/// Asks about a host that is not on the agent's list. Meanwhile a running command's connections to the host wait.
///
/// There is one request for each name and port. `approved` holds until the command ends. With the scope `network`, the
/// only one for the session, the host joins the list once the command has ended. Without an answer in time the
/// connections end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct HostApprovalParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The call whose command connects. If several commands run at the same time, the first of their calls.
    pub call_id: CallId,
    /// The command, as the agent wrote it.
    pub command: String,
    /// Name that the connecting process has set for itself (untrusted), escaped; empty if unknown.
    pub program: String,
    /// The host and port that the command connects to.
    pub host: HostRule,
    /// Hexadecimal SHA-256 of session, agent, worker's generation, number of the question, host and port.
    pub digest: String,
    /// The access to this host, in addition to the permanent one.
    pub grant: Grant,
    /// The access that the agent has without this approval.
    pub rights: Recorded<RightsSummary>,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason in its own words (untrusted), if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
