//! Tools as the model sees them: names, schemas, checks of arguments, and results as text.
//!
//! A [`Tool`] parses JSON from the model into an [`Invocation`]. A [`Registry`] holds the tools of an agent. They do
//! not change while the agent exists.

mod arguments;
mod builtin;
mod definition;
mod described;
mod error;
mod external;
mod fetch;
mod invocation;
mod meant_path;
mod plan;
mod planned;
mod registry;
mod render;
mod schema;
mod spawn;
mod tasks;
mod typed;

pub use arguments::{READ_FILE, SHELL_EXEC};
pub use definition::ToolDefinition;
pub use described::{LeftOut, diffs_of, diffs_told, how_to_get_less};
pub use error::ToolUseError;
pub use external::{ExternalTool, GuestTool, OfferedServer, OfferedTool};
pub use fetch::{FETCH_URL, FetchCall, PermittedFetch};
pub use invocation::{ExternalCall, Invocation, ServedCall, SupervisorCall};
pub use plan::{PlanCall, StepUpdate, WRITE_PLAN};
pub use planned::PlannedServer;
pub use registry::{Kit, PlanTool, Registry, UnfitTool};
pub use render::{Rendered, join_ends, render, seconds, whole_output};
pub use spawn::SpawnAgent;
pub use tasks::{TaskList, task_list};
pub use typed::Arguments;

pub trait Tool: Send + Sync {
    fn definition(&self) -> &ToolDefinition;

    /// Parses the arguments of a call, which are JSON.
    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError>;
}

#[cfg(test)]
mod tests;
