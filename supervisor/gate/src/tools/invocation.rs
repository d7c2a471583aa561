//! Calls with valid arguments, sorted by the component that carries them out.

use std::borrow::Cow;
use std::sync::Arc;

use ipc::tool::ToolCall;

use super::external::GuestTool;
use super::{FetchCall, PermittedFetch, PlanCall, SpawnAgent, TaskList};

/// Call with valid arguments. The variant says which component carries it out.
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

/// Call of a tool that the supervisor carries out. It needs no approval, because it gives the agent no more access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorCall {
    pub tool: Cow<'static, str>,
    pub json: String,
}

/// Call of an MCP server's tool. It needs an approval of exactly these bytes, unless the kernel confines the server and
/// the server can do no more than the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalCall {
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    pub json: String,
    /// The tool's access and definition; `None` if the kernel does not confine the server.
    pub guest: Option<Arc<GuestTool>>,
}
