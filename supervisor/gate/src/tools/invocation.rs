//! A call with valid arguments, by the component that carries it out.

use std::borrow::Cow;
use std::sync::Arc;

use ipc::tool::ToolCall;

use super::external::GuestTool;
use super::{FetchCall, PermittedFetch, PlanCall, SpawnAgent, TaskList};

/// A call with valid arguments, by the component that carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    Worker(ToolCall),
    Supervisor(SupervisorCall),
    External(ExternalCall),
    Fetch(FetchCall),
    Agent(SpawnAgent),
    Plan(PlanCall),
    Tasks(TaskList),
}

impl From<ToolCall> for Invocation {
    fn from(call: ToolCall) -> Self {
        Self::Worker(call)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedCall {
    Supervisor(SupervisorCall),
    External(ExternalCall),
    Fetch(PermittedFetch),
}

/// A call of a tool that the supervisor carries out. It needs no approval, since such a tool gives an agent nothing
/// beyond its access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorCall {
    pub tool: Cow<'static, str>,
    pub json: String,
}

/// A call of an MCP server's tool. It needs an approval of exactly these bytes, unless the server is confined and may
/// do no more than the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalCall {
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    pub json: String,
    /// `None` if the server is not confined.
    pub guest: Option<Arc<GuestTool>>,
}
