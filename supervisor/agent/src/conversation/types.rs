//! Requests and replies between the core and a provider, in the terms of the Messages API.

use std::sync::Arc;
use std::time::Duration;

use gate::tools::ToolDefinition;
use ipc::id::ToolUseId;
use ipc::image::Image;
use protocol::error_code::ErrorCode;
use protocol::event::{LeftOut, TokenUsage};
use serde_json::value::RawValue;

use super::RequestOptions;

/// One request to the model. Cheap to clone: the messages are shared and never change.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub model: String,
    /// The system prompt, fixed for an agent's life.
    pub system: Arc<str>,
    /// Tools that the model may call, fixed for an agent's life.
    pub tools: Arc<[ToolDefinition]>,
    pub messages: Vec<Arc<Message>>,
    /// Maximum number of tokens of the reply.
    pub max_tokens: u32,
    /// Options of the request, fixed while the model is the same.
    pub options: RequestOptions,
}

#[derive(Clone, Debug)]
pub enum Message {
    User(Vec<UserBlock>),
    /// The blocks of a reply, byte for byte as they were received.
    Assistant(Vec<Box<RawValue>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserBlock {
    Text(String),
    Image(Image),
    ToolResult {
        tool_use: ToolUseId,
        /// Text for the model; never empty.
        content: String,
        is_error: bool,
        images: Vec<Image>,
    },
}

/// Events of a reply, in the order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    MessageStarted {
        message_id: String,
        model: String,
    },
    /// Number of tokens that the provider has counted so far.
    UsageTold {
        usage: TokenUsage,
    },
    /// Next piece of a text block.
    TextDelta {
        index: usize,
        text: String,
    },
    /// Next piece of visible thinking.
    ThinkingDelta {
        index: usize,
        text: String,
    },
    /// A tool call begins. Its arguments follow with the complete block.
    ToolUseStarted {
        index: usize,
        id: ToolUseId,
        name: String,
    },
    BlockClosed {
        index: usize,
        block: AssistantBlock,
    },
    /// The reply is complete. This is the last event of every successful stream.
    MessageCompleted {
        stop_reason: StopReason,
        usage: TokenUsage,
    },
}

/// A complete block of a reply: its typed form, and the JSON that is sent back to the model.
#[derive(Clone, Debug)]
pub struct AssistantBlock {
    pub content: ContentBlock,
    /// The block as it was received. It is sent back to the model byte for byte.
    pub raw: Box<RawValue>,
}

/// Parsed content of a block of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentBlock {
    Text {
        text: String,
    },
    /// Thinking, with empty text if only a signature was sent.
    Thinking {
        thinking: String,
    },
    RedactedThinking,
    ToolUse {
        id: ToolUseId,
        name: String,
        /// The arguments as JSON. An `Err` says why they are not a JSON object.
        input: Result<String, String>,
    },
    /// Any other block. It is stored and sent back to the model, but not interpreted.
    Other {
        kind: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    /// The provider paused a long reply. It continues the reply when it gets the same conversation again.
    PauseTurn,
    /// The model refused, perhaps with an explanation.
    Refusal(Option<String>),
    ContextWindowExceeded,
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The API's `error.type`, or one of `connection`, `timeout`, `truncated_stream`, `invalid_response`.
    pub kind: String,
    /// One line for people: the failure and its cause.
    pub message: String,
    /// One line for people: a step that helps; `None` if no step is known.
    pub hint: Option<String>,
    /// The stable error code; `None` if kind and status determine it.
    pub code: Option<ErrorCode>,
    pub status: Option<u16>,
    pub request_id: Option<Box<str>>,
    /// True if the same request may be sent again.
    pub retryable: bool,
    /// Delay that the provider requests before the next attempt; `None` if it requests none.
    pub retry_after: Option<Duration>,
    /// The part of the conversation for which the provider rejected the request; `None` if the error names no part.
    pub blames: Option<LeftOut>,
}

impl PartialEq for AssistantBlock {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content && self.raw.get() == other.raw.get()
    }
}

impl StopReason {
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::PauseTurn => "pause_turn",
            Self::Refusal(_) => "refusal",
            Self::ContextWindowExceeded => "model_context_window_exceeded",
            Self::Other(word) => word,
        }
    }
}

impl ProviderError {
    /// Returns an error that is not retryable, without a hint or other optional data.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            hint: None,
            code: None,
            status: None,
            request_id: None,
            retryable: false,
            retry_after: None,
            blames: None,
        }
    }

    #[must_use]
    pub fn coded(self, code: ErrorCode) -> Self {
        Self { code: Some(code), ..self }
    }

    pub fn error_code(&self) -> ErrorCode {
        self.code.unwrap_or(match self.status {
            Some(401) => ErrorCode::BadKey,
            Some(407) => ErrorCode::ProxyFailed,
            Some(404) if self.lacks_model() => ErrorCode::UnknownModel,
            _ => match self.kind.as_str() {
                "authentication_error" => ErrorCode::BadKey,
                "connection" | "timeout" | "truncated_stream" => ErrorCode::ConnectionFailed,
                _ => ErrorCode::ProviderFailed,
            },
        })
    }

    /// True if the message contains the word "model". With status 404, the server then lacks the requested model.
    pub fn lacks_model(&self) -> bool {
        self.message.to_lowercase().contains("model")
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    #[must_use]
    pub fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }
}
