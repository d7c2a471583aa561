//! The chunks of a stream, and replies without a stream, whose message has the shape of a delta.
//!
//! Fields whose type varies between servers are kept as raw JSON, and parsed where they are used.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) x_groq: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// Text of an error from servers that send no `error` field (Mistral, older vLLM).
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    /// Error of servers that are written with `FastAPI`.
    #[serde(borrow)]
    pub(super) detail: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Groq<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    pub(super) fn usage(&self) -> Option<&'a RawValue> {
        let groq = || serde_json::from_str::<Groq<'a>>(self.x_groq?.get()).ok()?.usage;
        self.usage.filter(|usage| usage.get() != "null").or_else(groq)
    }
}

/// One of several alternative replies to a request. Bailiwick asks for only one.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    /// Index of the alternative reply. Servers may leave it out for the first one.
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Option<ChatDelta<'a>>,
    /// The message of a whole reply. Some servers send it after the deltas, whose content it repeats.
    #[serde(borrow)]
    pub(super) message: Option<ChatDelta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ChatDelta<'a> {
    /// Text: a string, null, or a list of parts.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
    /// Data that later requests must repeat with the call, such as Google's signatures.
    #[serde(borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    /// A part of the arguments' JSON as a string. Some servers send the whole object instead.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ChatDeltaPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    /// The reasoning of Mistral's models: a string, or another list of parts.
    #[serde(borrow)]
    pub(super) thinking: Option<&'a RawValue>,
}

pub(super) fn string(raw: Option<&RawValue>) -> Option<String> {
    let text: String = serde_json::from_str(raw?.get()).ok()?;
    (!text.is_empty()).then_some(text)
}
