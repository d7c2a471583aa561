//! A call that fits its tool, by who serves it.

use std::borrow::Cow;

use ipc::tool::ToolCall;

use super::{PlanCall, SpawnAgent};

/// A call that fits its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// A worker serves it, under its ruleset.
    Worker(ToolCall),
    /// The supervisor serves it itself.
    Supervisor(SupervisorCall),
    /// A server outside the sandbox serves it.
    External(ExternalCall),
    /// The session serves it, by another agent.
    Agent(SpawnAgent),
    /// The supervisor serves it: it is about the plan.
    Plan(PlanCall),
}

impl From<ToolCall> for Invocation {
    fn from(call: ToolCall) -> Self {
        Self::Worker(call)
    }
}

/// A call that no worker serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedCall {
    /// Of a tool of the supervisor's own.
    Supervisor(SupervisorCall),
    /// Of an external tool.
    External(ExternalCall),
}

/// A call of a tool that the supervisor serves itself. It needs nobody's approval: such a tool gives an agent no more than the
/// agent's rights allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorCall {
    /// The tool.
    pub tool: Cow<'static, str>,
    /// The arguments as the model wrote them: a JSON object.
    pub json: String,
}

/// A call of a tool that a server outside the sandbox serves. The agent's rights do not bind that server, so that each call
/// takes an approval of exactly these bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalCall {
    /// The server, by its name in the configuration.
    pub server: String,
    /// The tool, by the server's own name for it.
    pub tool: String,
    /// The arguments as the model wrote them: a JSON object.
    pub json: String,
}
