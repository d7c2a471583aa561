//! Tools of MCP servers, which are known only when the session begins.

use std::sync::Arc;

use ipc::rights::Rights;
use protocol::approval::ServerAccess;

use super::typed::{object, signature};
use super::{ExternalCall, Invocation, Tool, ToolDefinition, ToolUseError};

#[derive(Clone)]
pub struct ExternalTool {
    server: String,
    tool: String,
    definition: ToolDefinition,
    guest: Option<Arc<GuestTool>>,
}

/// A tool of a server that the kernel confines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestTool {
    /// Access of the server, without the server's own directories.
    pub rights: Rights,
    pub access: ServerAccess,
    /// Digest of the tool's definition.
    pub definition: String,
    /// True if the person's settings let the first agent of this project call the tool without a request.
    pub always: bool,
}

/// A server that an agent may pass on to its sub-agents or list in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedServer {
    pub name: String,
    pub access: ServerAccess,
    pub tools: Vec<OfferedTool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedTool {
    pub name: String,
    /// The server's own name for the tool.
    pub tool: String,
    pub guest: Arc<GuestTool>,
}

impl ExternalTool {
    pub const fn new(server: String, tool: String, definition: ToolDefinition) -> Self {
        Self { server, tool, definition, guest: None }
    }

    #[must_use]
    pub fn confined(self, guest: GuestTool) -> Self {
        Self { guest: Some(Arc::new(guest)), ..self }
    }

    pub fn offered(&self) -> Option<OfferedTool> {
        let guest = self.guest.clone()?;
        Some(OfferedTool { name: self.definition.name.clone().into_owned(), tool: self.tool.clone(), guest })
    }
}

impl Tool for ExternalTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Accepts every JSON object and keeps its bytes, since the server checks the arguments.
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
            guest: self.guest.clone(),
        }))
    }
}
