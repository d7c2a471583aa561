//! A call with valid arguments, by the component that carries it out.

use std::borrow::Cow;
use std::sync::Arc;

use ipc::tool::ToolCall;

use super::external::GuestTool;
use super::{FetchCall, PermittedFetch, PlanCall, SpawnAgent, TaskList};

/// A call with valid arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Carried out by a worker in its sandbox.
    Worker(ToolCall),
    /// Carried out by the supervisor.
    Supervisor(SupervisorCall),
    /// Carried out by a server outside of the sandbox.
    External(ExternalCall),
    /// Carried out by a guest that fetches a page.
    Fetch(FetchCall),
    /// Carried out by a new sub-agent.
    Agent(SpawnAgent),
    /// Carried out by the supervisor, and about the plan.
    Plan(PlanCall),
    /// Carried out by the supervisor, and about the list of tasks.
    Tasks(TaskList),
}

impl From<ToolCall> for Invocation {
    fn from(call: ToolCall) -> Self {
        Self::Worker(call)
    }
}

/// A call that no worker carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedCall {
    Supervisor(SupervisorCall),
    External(ExternalCall),
    Fetch(PermittedFetch),
}

/// A call of a tool that the supervisor carries out. It needs no approval, since such a tool gives an agent nothing beyond its rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorCall {
    pub tool: Cow<'static, str>,
    /// The arguments in the model's own text, a JSON object.
    pub json: String,
}

/// A call of a tool of an external server. The agent's rights do not bind that server. So each call needs an approval of exactly
/// these bytes, unless the server is confined and its rights are within those of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalCall {
    /// The name of the server in the configuration.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// The arguments in the model's own text, a JSON object.
    pub json: String,
    /// The confinement of the server; nothing if it has none.
    pub guest: Option<Arc<GuestTool>>,
}
