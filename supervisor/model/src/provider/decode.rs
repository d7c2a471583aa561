//! What every decoder of a reply has in common: the data of one SSE event in, stream events out, without any I/O.

use std::collections::VecDeque;

use protocol::event::TokenUsage;
use serde_json::{Map, Value};

use super::{ProviderError, StreamEvent};

/// Stream events in the order in which they came.
pub(crate) type Events = VecDeque<StreamEvent>;

/// Decodes one reply: a pure state machine.
pub trait Decode: Send {
    /// Decodes the data of one SSE event and appends what it means to `events`.
    fn push(&mut self, data: &str, events: &mut VecDeque<StreamEvent>) -> Result<(), ProviderError>;

    /// Takes the end of the body: complete if the model said why it stopped, else a truncated stream (S7).
    fn finish(&mut self, events: &mut VecDeque<StreamEvent>) -> Result<(), ProviderError>;

    /// Decodes a whole reply as one JSON text: what some gateways send though a stream was asked for (S10).
    fn push_whole(&mut self, json: &str, events: &mut VecDeque<StreamEvent>) -> Result<(), ProviderError>;

    /// Grows with each part of the reply that comes, and with nothing else: a ping is no part of it.
    fn progress(&self) -> u64;

    /// True if the reply is complete; the rest is ignored.
    fn is_complete(&self) -> bool;

    fn envelope(&self) -> &Envelope;
}

/// A message without its blocks, in the Messages API's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Envelope {
    pub id: String,
    pub model: String,
    pub role: String,
    pub stop_reason: Option<String>,
    /// The stop sequence that came, if one did.
    pub stop_sequence: Option<String>,
    pub stop_details: Option<Value>,
    /// The usage as the API says it; cumulative (S6).
    pub usage: Map<String, Value>,
}

/// Tokens as the Messages API writes them: what an envelope holds of the other APIs' replies.
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

/// A reply that ended too early; worth another attempt.
pub(crate) fn truncated(what: &str) -> ProviderError {
    ProviderError::new("truncated_stream", what).retryable()
}

/// A reply that breaks the protocol; another one may not.
pub(crate) fn violation(what: &str) -> ProviderError {
    ProviderError::new("invalid_response", format!("the provider sent {what}")).retryable()
}

/// JSON that is cut short is a stream that is cut short (S7); other faults are an invalid reply.
pub(crate) fn invalid(error: &serde_json::Error) -> ProviderError {
    if error.is_eof() {
        return truncated("the reply has an event that is cut short");
    }
    violation(&format!("an event that is not as expected ({error})"))
}
