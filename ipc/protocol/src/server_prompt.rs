//! Prompts of the user's MCP servers. The user can request them as commands; no model can.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A prompt of an MCP server. All texts are the server's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ServerPrompt {
    /// Name of the server in the settings.
    pub server: String,
    /// The server's name for the prompt.
    pub name: String,
    /// The server's description of the prompt, at most one line.
    pub description: String,
    /// The arguments, in their order.
    pub arguments: Vec<ServerPromptArgument>,
}

/// An argument that the person can give to a prompt of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ServerPromptArgument {
    /// Name of the argument.
    pub name: String,
    /// True if the argument is required.
    pub required: bool,
}

/// A prompt that the user wants, with arguments by their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct WantedPrompt {
    /// Name of the server in the settings.
    pub server: String,
    /// The server's name for the prompt.
    pub name: String,
    /// Value of each argument, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
}

/// The text of a prompt, or the reason that there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ExpandedPrompt {
    /// Name of the server in the settings.
    pub server: String,
    /// The server's name for the prompt.
    pub name: String,
    /// The text for the user to read, change and send. Hidden characters are written as escapes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Reason that there is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}
