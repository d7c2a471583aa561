//! The events of a stream, as flat structures that borrow from the text.
//!
//! Each structure has the fields of all known kinds, so that an event is parsed in one pass. If that fails, only the
//! kind is parsed, as [`AnthropicEventKind`], since an event of an unknown kind may have another shape.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::provider::text::Piece;

/// Kinds of events that are decoded: all known kinds except pings.
pub(super) const EVENTS: [&str; 7] = [
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "error",
];

/// Kinds of deltas that are decoded. The delta of a message has an empty kind.
pub(super) const DELTAS: [&str; 7] = [
    "",
    "text_delta",
    "thinking_delta",
    "signature_delta",
    "input_json_delta",
    "citations_delta",
    "compaction_delta",
];

#[derive(Deserialize)]
pub(super) struct AnthropicEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) index: Option<usize>,
    #[serde(borrow)]
    pub(super) delta: Option<AnthropicDelta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct AnthropicDelta<'a> {
    /// Kind of the delta; empty in the delta of a message.
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) text: Option<Piece<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Piece<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<Piece<'a>>,
    pub(super) signature: Option<String>,
    #[serde(borrow)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Option<&'a RawValue>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    #[serde(borrow)]
    pub(super) stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct AnthropicEventKind<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct DeltaKind<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct AnthropicMessage<'a> {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) model: String,
    #[serde(default)]
    pub(super) role: Option<String>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) content: Vec<&'a RawValue>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    #[serde(borrow)]
    pub(super) stop_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct AnthropicReplyBlock<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) citations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Fallback {
    pub(super) to: FallbackModel,
}

#[derive(Deserialize)]
pub(super) struct FallbackModel {
    pub(super) model: String,
}

#[derive(Deserialize)]
pub(super) struct StopDetails {
    pub(super) explanation: Option<String>,
    pub(super) category: Option<String>,
}

fn nullable<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<&'a RawValue>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
