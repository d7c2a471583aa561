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

/// An agent of a conversation, by the events so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct AgentInfo {
    /// The agent, by its id in this session.
    pub agent: AgentId,
    /// Parent of the agent; absent for an agent that is not a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The task that its parent gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Model of the agent.
    pub model: String,
    /// The access of its worker; absent before the first one has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<RightsSummary>,
    /// The work that the agent does now, or its end.
    pub state: AgentState,
    /// The kind of its end, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SubAgentStatus>,
    /// The calls that are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<OpenCall>,
    /// The guests that run, and the last that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestInfo>,
    /// The number of whole replies of its model.
    pub steps: u64,
    /// Tokens of the agent, without those of its sub-agents.
    pub usage: TokenUsage,
    /// Their price, if the model's prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// The beginning of its last turn, in milliseconds since 1970; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ms: Option<u64>,
    /// The end of that turn; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
}

/// An agent's work at the time of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum AgentState {
    /// No turn runs.
    #[default]
    AtRest,
    /// The model's reply is awaited or arrives.
    Model,
    /// Calls run.
    Calls,
    /// A call waits for your answer.
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
    /// The call.
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
    /// Its part in the session.
    pub kind: GuestRole,
    /// The server's name in the settings, or the host that a page is fetched from; absent for a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The worker that it connects for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Generation>,
    /// The guest that it connects for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<GuestId>,
    /// The call that it was started for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The access that its sandbox enforces.
    pub rights: RightsSummary,
    /// The hosts that its program respects, if its access includes the whole network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// The time of its start, in milliseconds since 1970.
    pub began_ms: u64,
    /// The time of its end; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Absent while the guest runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<GuestEnd>,
    /// Its account, once it has ended.
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
    /// The agent, by its id in this session.
    pub agent: AgentId,
    /// The user's message, without pictures.
    pub text: String,
    /// The pictures that go before it.
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
    /// The agent, by its id in this session.
    pub agent: AgentId,
}
