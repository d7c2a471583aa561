//! The events of a stream, as flat structures that borrow from the text.
//!
//! The fields `sequence_number` and `content_index` are not parsed: some servers count from -1 or not at all, and the
//! order of events suffices.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::text::Piece;

/// Kinds of events that are decoded. Their fields must be valid.
pub(super) const EVENTS: [&str; 17] = [
    TEXT_DELTA,
    REFUSAL_DELTA,
    SUMMARY_DELTA,
    REASONING_DELTA,
    ARGUMENTS_DELTA,
    "response.reasoning_summary_part.added",
    "response.output_item.added",
    "response.output_item.done",
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
    "response.done",
    "error",
];

/// Kinds of known events that are ignored: they repeat other events, or their content is not shown.
pub(super) const REPETITIONS: [&str; 10] = [
    "response.output_text.done",
    "response.output_text.annotation.added",
    "response.refusal.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.reasoning_text.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.function_call_arguments.done",
    "keepalive",
];

pub(super) const TEXT_DELTA: &str = "response.output_text.delta";
/// Kind of an event: a delta of the model's refusal.
pub(super) const REFUSAL_DELTA: &str = "response.refusal.delta";
pub(super) const SUMMARY_DELTA: &str = "response.reasoning_summary_text.delta";
/// Kind of an event: a delta of unencrypted reasoning, as models with open weights send it.
pub(super) const REASONING_DELTA: &str = "response.reasoning_text.delta";
pub(super) const ARGUMENTS_DELTA: &str = "response.function_call_arguments.delta";

#[derive(Deserialize)]
pub(super) struct ResponsesEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    /// Index of the item; `None` if the server sends only the item's id.
    pub(super) output_index: Option<usize>,
    #[serde(borrow)]
    pub(super) item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) delta: Option<Piece<'a>>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ResponsesEventKind<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct Response<'a> {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    /// Status of the response: `completed`, `incomplete` …
    pub(super) status: Option<String>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// Token counts. An invalid number counts as zero.
    pub(super) usage: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ResponsesItem<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ResponsesMessage<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Vec<ResponsesPart<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct ResponsesReasoning<'a> {
    #[serde(borrow)]
    pub(super) summary: Option<Vec<ResponsesPart<'a>>>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<ResponsesPart<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct FunctionCall<'a> {
    /// Id of the call, which the call's result repeats. It differs from the id of the item.
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) arguments: Option<Piece<'a>>,
    pub(super) status: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ResponsesPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Piece<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Piece<'a>>,
}
