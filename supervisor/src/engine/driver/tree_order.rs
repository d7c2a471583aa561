//! Orders of agents to start or end their sub-agents.

use agent::core::NewAgent;
use ipc::id::{AgentId, CallId};

/// An order of an agent to start or end one of its sub-agents.
pub(super) enum TreeOrder {
    /// Starts a sub-agent for a call of its parent.
    Start { parent: AgentId, call: CallId, agent: Box<NewAgent> },
    /// Ends the sub-agent that this call started.
    End { parent: AgentId, call: CallId },
}
