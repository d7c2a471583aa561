//! The tools as the model sees them: names, schemas, argument checks, risks, and results as text.
//!
//! A [`Tool`] turns JSON that a model wrote into a typed [`ToolCall`](ipc::tool::ToolCall); what carries the call out
//! lives in a worker. The [`Registry`] holds an agent's tools, fixed for its life. An adapter for another protocol
//! (MCP) is one more implementation of [`Tool`]. Nothing here does any I/O.

mod arguments;
mod builtin;
mod definition;
mod error;
mod registry;
mod render;
mod risk;
mod schema;
mod typed;

pub use builtin::builtin;
pub use definition::ToolDefinition;
pub use error::ToolUseError;
pub use registry::{DuplicateTool, Invocation, Registry};
pub use render::{Rendered, render, whole_output};
pub use risk::Risk;
pub use typed::Arguments;

use ipc::tool::ToolCall;

/// Something that the model can call.
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn definition(&self) -> &ToolDefinition;

    /// Reads the model's arguments: the text of a JSON value.
    fn parse(&self, input: &str) -> Result<ToolCall, ToolUseError>;

    /// How much the call may change, by its arguments.
    fn risk(&self, call: &ToolCall) -> Risk {
        Risk::of(call)
    }
}

#[cfg(test)]
mod tests;
