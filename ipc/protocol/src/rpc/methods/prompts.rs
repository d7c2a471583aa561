//! The prompts of MCP servers, as a front end lists and gets them.

use ipc::id::ConversationId;
use serde::{Deserialize, Serialize};

use crate::server_prompt::{ServerPrompt, WantedPrompt};

/// Result of [`LIST_PROMPTS_METHOD`](super::LIST_PROMPTS_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ListPromptsResponse {
    /// The prompts, grouped by server, in each server's order.
    pub prompts: Vec<ServerPrompt>,
}

/// Parameters of [`GET_PROMPT_METHOD`](super::GET_PROMPT_METHOD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct GetPromptParams {
    /// The open conversation that the request is about.
    pub conversation_id: ConversationId,
    /// Server, name and arguments of the prompt.
    pub prompt: WantedPrompt,
}
