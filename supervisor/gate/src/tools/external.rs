//! A tool of a server outside of the sandbox, whose name and schema are known only when the session begins.

use super::typed::{object, signature};
use super::{ExternalCall, Invocation, Tool, ToolDefinition, ToolUseError};

/// A tool of an external server.
pub struct ExternalTool {
    server: String,
    tool: String,
    definition: ToolDefinition,
}

impl ExternalTool {
    /// Wraps the tool that `server` calls `tool`, with its definition for the model.
    pub const fn new(server: String, tool: String, definition: ToolDefinition) -> Self {
        Self { server, tool, definition }
    }
}

impl Tool for ExternalTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Accepts every JSON object, byte for byte, since the server checks the arguments.
    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        object(input).map_err(|reason| ToolUseError::NotAnObject {
            tool: self.definition.name.clone().into_owned(),
            reason,
            arguments: signature(&self.definition.input_schema),
        })?;
        Ok(Invocation::External(ExternalCall {
            server: self.server.clone(),
            tool: self.tool.clone(),
            json: input.to_owned(),
        }))
    }
}
