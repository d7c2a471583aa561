//! The agents of a conversation, as a front end lists them.

use ipc::id::{AgentId, CallId, ConversationId, Generation, GuestId};
use ipc::rights::{Hosts, RightsSummary};
use serde::{Deserialize, Serialize};

use super::Attachment;
use crate::cost::Usd;
use crate::event::{GuestEnd, GuestRole, GuestTotals, SubAgentStatus, TokenUsage};

/// Result of [`LIST_AGENTS_METHOD`](super::LIST_AGENTS_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ListAgentsResponse {
    /// Every agent that the conversation has had, each before its sub-agents.
    pub agents: Vec<AgentInfo>,
}

/// An agent of a conversation, as the events so far describe it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct AgentInfo {
    /// The agent, by its id in this session.
    pub agent: AgentId,
    /// Parent of the agent; absent for an agent that is not a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The task that the parent gave the agent; absent without a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Model of the agent.
    pub model: String,
    /// The access of the agent's worker; absent before its first worker has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<RightsSummary>,
    /// The work that the agent does now, if any.
    pub state: AgentState,
    /// The reason for a sub-agent's end; absent while the sub-agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SubAgentStatus>,
    /// The calls of the agent that are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<OpenCall>,
    /// The guests of the agent that run, and the last that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestInfo>,
    /// Number of complete replies of the agent's model.
    pub steps: u64,
    /// Tokens of the agent, without those of its sub-agents.
    pub usage: TokenUsage,
    /// Cost of the tokens in `usage`, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Start of the agent's last turn, in milliseconds since 1970; absent before the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ms: Option<u64>,
    /// End of the agent's last turn, in milliseconds since 1970; absent while the turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
}

/// An agent's work at the time of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum AgentState {
    /// No turn of the agent runs.
    #[default]
    AtRest,
    /// The model's reply is awaited or arrives.
    Model,
    /// Tool calls of the agent run.
    Calls,
    /// A call waits for an approval.
    Approval,
    /// A call that may write waits for another agent.
    WriteTurn,
    /// The agent is a sub-agent, and has ended.
    Over,
}

/// A call that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct OpenCall {
    /// Id of the call.
    pub call: CallId,
    /// Name of the tool.
    pub name: String,
}

/// A guest of an agent: a confined process with separate access that is no worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct GuestInfo {
    /// Number of the guest among those of its agent in this run.
    pub guest: GuestId,
    /// The task of the guest.
    pub kind: GuestRole,
    /// The server's name in the settings, or the host that a page is fetched from; absent for a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The worker that the gateway serves; absent for other guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Generation>,
    /// The other guest that the gateway serves; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<GuestId>,
    /// The call for which the guest was started, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Access that the sandbox allows the guest.
    pub rights: RightsSummary,
    /// Hosts to which the guest's own program limits its connections, if the access includes the whole network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Time of the guest's start, in milliseconds since 1970.
    pub began_ms: u64,
    /// Time of the guest's end, in milliseconds since 1970; absent while the guest runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// The reason for the guest's end; absent while the guest runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<GuestEnd>,
    /// Counts of the guest's work, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<GuestTotals>,
}

/// Parameters of [`SEND_TO_AGENT_METHOD`](super::SEND_TO_AGENT_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct SendToAgentParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The agent to which the message is sent.
    pub agent: AgentId,
    /// The user's message, without pictures.
    pub text: String,
    /// The pictures before the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Attachment>,
}

/// Parameters of [`STOP_AGENT_METHOD`](super::STOP_AGENT_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct StopAgentParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// The agent whose turn ends, with every agent below it.
    pub agent: AgentId,
}
