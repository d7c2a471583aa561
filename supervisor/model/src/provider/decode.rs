use std::collections::VecDeque;

use protocol::event::TokenUsage;
use serde_json::{Map, Value};

use super::{ProviderError, StreamEvent};

pub(crate) type Events = VecDeque<StreamEvent>;

pub trait Decode: Send {
    /// Decodes the data of one SSE event, and appends the resulting events.
    fn push(&mut self, data: &str, events: &mut VecDeque<StreamEvent>) -> Result<(), ProviderError>;

    /// Handles the end of the stream. Returns an error of the kind `truncated_stream` if the model gave no stop reason.
    fn finish(&mut self, events: &mut VecDeque<StreamEvent>) -> Result<(), ProviderError>;

    fn push_whole(&mut self, json: &str, events: &mut VecDeque<StreamEvent>) -> Result<(), ProviderError>;

    /// Returns a number that grows with each received part of the reply, but not with pings.
    fn progress(&self) -> u64;

    /// True if the reply is complete, so that later bytes are ignored.
    fn is_complete(&self) -> bool;

    fn envelope(&self) -> &Envelope;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyPhase {
    /// Nothing has arrived so far except pings.
    #[default]
    Waiting,
    Started,
    Complete,
}

impl ReplyPhase {
    /// Returns an error if the stream ends before the reply is complete.
    pub(crate) fn at_end(self) -> Result<(), ProviderError> {
        match self {
            Self::Complete => Ok(()),
            Self::Started => Err(truncated("the reply ended before the model was done")),
            Self::Waiting => Err(truncated("the reply ended before it began")),
        }
    }
}

/// True if the data is empty, or is the marker `[DONE]` or a beginning of it.
pub(crate) fn is_done_marker(data: &str) -> bool {
    data.is_empty() || "[DONE]".starts_with(data)
}

/// A reply without its blocks, in the form of the Messages API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Envelope {
    pub id: String,
    pub model: String,
    pub role: String,
    pub stop_reason: Option<String>,
    /// The stop sequence that ended the reply; `None` if none did.
    pub stop_sequence: Option<String>,
    pub stop_details: Option<Value>,
    /// Token counts in the API's own form. Each count includes the earlier ones of the same reply.
    pub usage: Map<String, Value>,
}

/// Returns token counts in the form of the Messages API, for replies of the other APIs.
pub(crate) fn in_messages_words(usage: TokenUsage) -> Map<String, Value> {
    [
        ("input_tokens", usage.input),
        ("cache_creation_input_tokens", usage.cache_creation),
        ("cache_read_input_tokens", usage.cache_read),
        ("output_tokens", usage.output),
    ]
    .into_iter()
    .map(|(name, tokens)| (name.to_owned(), tokens.into()))
    .collect()
}

/// Returns a retryable error for a reply that ended too early.
pub(crate) fn truncated(what: &str) -> ProviderError {
    ProviderError::new("truncated_stream", what).retryable()
}

/// Returns a retryable error for a reply that violates the protocol.
pub(crate) fn violation(what: &str) -> ProviderError {
    ProviderError::new("invalid_response", format!("the provider sent {what}")).retryable()
}

/// Returns the error for invalid JSON. JSON that was cut off counts as a truncated stream.
pub(crate) fn invalid(error: &serde_json::Error) -> ProviderError {
    if error.is_eof() {
        return truncated("the reply has an event that is cut short");
    }
    violation(&format!("an event that is not as expected ({error})"))
}
