//! The tools as the model sees them: names, schemas, argument checks, and results as text.
//!
//! A [`Tool`] turns JSON that a model wrote into an [`Invocation`], which says who serves the call: a worker, the supervisor
//! itself, another agent, or a server outside. The [`Registry`] holds an agent's tools, fixed for its life. Nothing here does any I/O.

mod arguments;
mod builtin;
mod definition;
mod described;
mod error;
mod external;
mod invocation;
mod meant_path;
mod plan;
mod registry;
mod render;
mod schema;
mod spawn;
mod typed;

pub use arguments::{READ_FILE, SHELL_EXEC};
pub use definition::ToolDefinition;
pub use described::{LeftOut, diffs_of, diffs_told, how_to_get_less};
pub use error::ToolUseError;
pub use external::ExternalTool;
pub use invocation::{ExternalCall, Invocation, ServedCall, SupervisorCall};
pub use plan::{PlanCall, StepUpdate, WRITE_PLAN};
pub use registry::{Kit, PlanTool, Registry, UnfitTool};
pub use render::{Rendered, join_ends, render, seconds, whole_output};
pub use spawn::SpawnAgent;
pub use typed::Arguments;

/// Something that the model can call.
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn definition(&self) -> &ToolDefinition;

    /// Reads the model's arguments: the text of a JSON value.
    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError>;
}

#[cfg(test)]
mod tests;
