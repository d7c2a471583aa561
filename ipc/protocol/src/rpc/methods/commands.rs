//! Commands that the user or the project defines, as a front end lists them and gets their text.

use ipc::id::ConversationId;
use serde::{Deserialize, Serialize};

use crate::own_command::OwnCommand;

/// Result of [`LIST_COMMANDS_METHOD`](super::LIST_COMMANDS_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ListCommandsResponse {
    /// The user's commands, then the trusted ones of the project.
    pub commands: Vec<OwnCommand>,
}

/// Parameters of [`GET_COMMAND_METHOD`](super::GET_COMMAND_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct GetCommandParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// Name of the command, without the slash.
    pub name: String,
    /// The arguments, as they were typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
}

/// Result of [`GET_COMMAND_METHOD`](super::GET_COMMAND_METHOD). The text is not sent to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct GetCommandResponse {
    /// The text with the arguments, for the user to read, change and send.
    pub text: String,
    /// True if the command wants a turn that only reads: `reads` of `sendUserMessage`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
    /// Model that the command wants, if not the present one: send `setModel` before the message and after its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
