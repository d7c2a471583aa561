//! A tool that a server outside the sandbox serves: its name and its schema are known when the session begins, not before.

use super::typed::{object, signature};
use super::{ExternalCall, Invocation, Tool, ToolDefinition, ToolUseError};

/// A tool of an external server.
pub struct ExternalTool {
    server: String,
    tool: String,
    definition: ToolDefinition,
}

impl ExternalTool {
    /// The tool that `server` calls `tool`, as the model is told of it.
    pub const fn new(server: String, tool: String, definition: ToolDefinition) -> Self {
        Self { server, tool, definition }
    }
}

impl Tool for ExternalTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Takes every JSON object, byte for byte: whether its arguments fit is the server's to say.
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
