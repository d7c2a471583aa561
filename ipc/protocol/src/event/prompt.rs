//! System prompt and tools, with which every request of an agent begins.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use ipc::id::EventId;

/// The system prompt and the tools of an agent's next requests. A continued session sends the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PromptFixed {
    /// The system prompt. Absent if the event `same_as` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools, in the order in which the model reads about them. Empty if the event `same_as` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<RecordedTool>,
    /// The earlier event that has the same prompt and the same tools in full, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<EventId>,
    /// Cause of a new context that starts here, if one does. The new context keeps messages, calls and results, but no
    /// thinking, signatures and blocks of the provider's own tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_context: Option<NewContext>,
}

/// A tool, as the model reads about it.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordedTool {
    /// Name of the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// The JSON schema of the tool's arguments, byte for byte.
    #[schemars(with = "serde_json::Value")]
    pub input_schema: Box<RawValue>,
}

/// Compares raw JSON by its bytes.
impl PartialEq for RecordedTool {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, description, input_schema } = self;
        *name == other.name
            && *description == other.description
            && input_schema.get() == other.input_schema.get()
    }
}

impl Eq for RecordedTool {}

/// The cause of a new context in a continued session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum NewContext {
    /// Another model, or another provider, answers.
    Model,
    /// The same model answers at another address.
    Server,
    /// A tool of earlier runs, with this name, is not offered any more.
    Tool(String),
    /// The session was imported, so its prompt was made elsewhere.
    Imported,
}

impl fmt::Display for NewContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("another model answers"),
            Self::Server => f.write_str("another server answers"),
            Self::Tool(name) => write!(f, "the session's tool {name} is no longer offered"),
            Self::Imported => f.write_str("the session's system prompt is from another version of Bailiwick"),
        }
    }
}
