//! What the core and a provider say to each other, in the Messages API's words.

use std::sync::Arc;
use std::time::Duration;

use gate::tools::ToolDefinition;
use ipc::id::ToolUseId;
use ipc::image::Image;
use protocol::error_code::ErrorCode;
use protocol::event::{LeftOut, TokenUsage};
use serde_json::value::RawValue;

use super::RequestOptions;

/// One request to the model. Cheap to clone: history is shared, and append-only.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The model's name.
    pub model: String,
    /// The system prompt: fixed for an agent's life.
    pub system: Arc<str>,
    /// The tools: fixed for an agent's life.
    pub tools: Arc<[ToolDefinition]>,
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// The most tokens of the reply.
    pub max_tokens: u32,
    /// What else is asked for: fixed as long as the model is the same.
    pub options: RequestOptions,
}

/// One message of the conversation.
#[derive(Clone, Debug)]
pub enum Message {
    /// From the user, or results of tools.
    User(Vec<UserBlock>),
    /// From the model: each block byte for byte as it came.
    Assistant(Vec<Box<RawValue>>),
}

/// A block of a user message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserBlock {
    /// Text; never empty.
    Text(String),
    Image(Image),
    /// The result of a tool call.
    ToolResult {
        /// The model's id of the call.
        tool_use: ToolUseId,
        /// What the model is told; never empty.
        content: String,
        /// Whether the call failed.
        is_error: bool,
        /// The pictures that it brought.
        images: Vec<Image>,
    },
}

/// What a provider reports while a reply comes in, in the order in which it comes.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The reply began.
    MessageStarted {
        /// The provider's id of the message.
        message_id: String,
        /// The model that answers.
        model: String,
    },
    /// The provider's count so far, told before the end of the reply.
    UsageTold {
        /// The tokens, cumulative.
        usage: TokenUsage,
    },
    /// A piece of visible text.
    TextDelta {
        /// The block's index.
        index: usize,
        text: String,
    },
    /// A piece of visible thinking.
    ThinkingDelta {
        /// The block's index.
        index: usize,
        text: String,
    },
    /// A tool call was announced; its arguments follow with the closed block.
    ToolUseStarted {
        /// The block's index.
        index: usize,
        /// The model's id of the call.
        id: ToolUseId,
        /// The tool's name.
        name: String,
    },
    /// A block is complete.
    BlockClosed {
        /// The block's index.
        index: usize,
        block: AssistantBlock,
    },
    /// The reply is complete. Always the last event of a successful stream.
    MessageCompleted {
        /// The reason why the model stopped.
        stop_reason: StopReason,
        /// The tokens, cumulative.
        usage: TokenUsage,
    },
}

/// A complete block of a reply: its typed view, and the JSON that goes back to the model.
#[derive(Clone, Debug)]
pub struct AssistantBlock {
    /// What it means.
    pub content: ContentBlock,
    /// Byte for byte what is echoed.
    pub raw: Box<RawValue>,
}

/// Parsed content of a block of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentBlock {
    Text {
        text: String,
    },
    /// Thinking; the text may be empty where only a signature was sent.
    Thinking {
        thinking: String,
    },
    /// Thinking that is not shown.
    RedactedThinking,
    ToolUse {
        /// The model's id of the call.
        id: ToolUseId,
        /// The tool's name.
        name: String,
        /// The arguments as JSON text; an error says why they are no JSON object.
        input: Result<String, String>,
    },
    /// Anything else: carried, never interpreted.
    Other {
        /// The block's `type`.
        kind: String,
    },
}

/// The reason why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It is done.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The reply reached its limit.
    MaxTokens,
    /// A stop sequence came.
    StopSequence,
    /// The provider paused a long turn: the same history goes back unchanged.
    PauseTurn,
    /// The model refused; what it says of it, if anything.
    Refusal(Option<String>),
    /// The context window is full.
    ContextWindowExceeded,
    /// A reason that this version does not know.
    Other(String),
}

/// The reason why a reply did not come, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The kind: the API's own `error.type`, or one of `connection`, `timeout`, `truncated_stream`, `invalid_response`.
    pub kind: String,
    /// One line for people: the failure and its cause.
    pub message: String,
    /// One line for people: a step that helps, where one is known.
    pub hint: Option<String>,
    /// The stable code, where the kind and the status do not tell it.
    pub code: Option<ErrorCode>,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's id of the request, where it sent one.
    pub request_id: Option<Box<str>>,
    /// Whether the same request may be sent again (WIRE E2).
    pub retryable: bool,
    /// How long the provider asks to wait (WIRE E3).
    pub retry_after: Option<Duration>,
    /// The part of the conversation that the provider does not take back, where it names one.
    pub blames: Option<LeftOut>,
}

impl PartialEq for AssistantBlock {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content && self.raw.get() == other.raw.get()
    }
}

impl StopReason {
    /// The API's word for it.
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
    /// An error that is not worth another attempt and that says nothing but its kind and message.
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

    /// The same error with its stable code.
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

    /// True if the server has another model than the one that was asked for; told by the words beside a status 404.
    pub fn lacks_model(&self) -> bool {
        self.message.to_lowercase().contains("model")
    }

    /// The same error with a step that helps.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same error, worth another attempt.
    #[must_use]
    pub fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }
}
