//! Orders of agents to the tree of their session.

use agent::core::NewAgent;
use ipc::id::{AgentId, CallId};

/// A request of an agent to start or end one of its sub-agents.
pub(super) enum TreeOrder {
    /// Starts a sub-agent for a call.
    Start { parent: AgentId, call: CallId, agent: Box<NewAgent> },
    /// Ends the sub-agent that a call started.
    End { parent: AgentId, call: CallId },
}
