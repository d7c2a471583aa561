//! The tools of an agent.

use std::sync::Arc;

use ipc::tool::ToolCall;

use super::{Risk, Tool, ToolDefinition, ToolUseError, builtin};

/// The tools of an agent, fixed for its life.
pub struct Registry {
    tools: Vec<Box<dyn Tool>>,
    definitions: Arc<[ToolDefinition]>,
}

/// A call that fits its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The call.
    pub call: ToolCall,
    /// How much it may change.
    pub risk: Risk,
}

/// Two tools have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is already a tool named `{0}`")]
pub struct DuplicateTool(pub &'static str);

impl Registry {
    /// A registry of these tools, in this order.
    pub fn new(tools: Vec<Box<dyn Tool>>) -> Result<Self, DuplicateTool> {
        let definitions: Arc<[_]> = tools.iter().map(|tool| tool.definition().clone()).collect();
        for (place, definition) in definitions.iter().enumerate() {
            if definitions[..place].iter().any(|other| other.name == definition.name) {
                return Err(DuplicateTool(definition.name));
            }
        }
        Ok(Self { tools, definitions })
    }

    /// The six tools that every agent has.
    pub fn builtin() -> Self {
        let tools = builtin();
        let definitions = tools.iter().map(|tool| tool.definition().clone()).collect();
        Self { tools, definitions }
    }

    /// What the model is told: the same bytes at every call.
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.definitions)
    }

    /// Finds the tool and reads the arguments.
    pub fn parse(&self, name: &str, input: &str) -> Result<Invocation, ToolUseError> {
        let tool = self.tools.iter().find(|tool| tool.definition().name == name);
        let tool = tool.ok_or_else(|| self.unknown(name))?;
        let call = tool.parse(input)?;
        let risk = tool.risk(&call);
        Ok(Invocation { call, risk })
    }

    fn unknown(&self, name: &str) -> ToolUseError {
        let known: Vec<_> = self.definitions.iter().map(|definition| definition.name).collect();
        ToolUseError::Unknown { name: name.chars().take(64).collect(), known: known.join(", ") }
    }
}
