use std::fmt::Write;

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    Text(String),
    /// Thinking with its signature.
    Thinking {
        text: String,
        signature: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// The arguments as JSON text. The text may be invalid.
        input: String,
    },
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn thinking(text: impl Into<String>, signature: impl Into<String>) -> Self {
        Self::Thinking { text: text.into(), signature: signature.into() }
    }

    pub fn tool_use(id: impl Into<String>, name: impl Into<String>, input: impl Into<String>) -> Self {
        Self::ToolUse { id: id.into(), name: name.into(), input: input.into() }
    }

    fn start(&self) -> Value {
        match self {
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::ToolUse { id, name, .. } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": {}})
            }
        }
    }

    fn deltas(&self) -> Vec<Value> {
        match self {
            Self::Text(text) => {
                pieces(text).map(|text| json!({"type": "text_delta", "text": text})).collect()
            }
            Self::Thinking { text, signature } => {
                let thinking = pieces(text).map(|text| json!({"type": "thinking_delta", "thinking": text}));
                thinking.chain([json!({"type": "signature_delta", "signature": signature})]).collect()
            }
            Self::ToolUse { input, .. } => {
                let json = std::iter::once("").chain(pieces(input));
                json.map(|json| json!({"type": "input_json_delta", "partial_json": json})).collect()
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens that are neither from the cache nor written to it.
    pub input: u64,
    /// Prompt tokens written to the cache.
    pub cache_creation: u64,
    pub cache_read: u64,
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, cache_creation: 0, cache_read: 0, output: 20 }
    }
}

/// Returns the text of a stream, from `message_start` to `message_stop`, in the shape of the API.
pub fn message(blocks: &[Block], stop_reason: &str, usage: Usage) -> String {
    let mut text = event(
        "message_start",
        &json!({"message": {
            "id": "msg_replay", "type": "message", "role": "assistant", "model": "replay", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {
                "input_tokens": usage.input,
                "cache_creation_input_tokens": usage.cache_creation,
                "cache_read_input_tokens": usage.cache_read,
                "output_tokens": 1,
            },
        }}),
    );
    for (index, block) in blocks.iter().enumerate() {
        text += &event("content_block_start", &json!({"index": index, "content_block": block.start()}));
        for delta in block.deltas() {
            text += &event("content_block_delta", &json!({"index": index, "delta": delta}));
        }
        text += &event("content_block_stop", &json!({"index": index}));
    }
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    text += &event("message_delta", &json!({"delta": delta, "usage": {"output_tokens": usage.output}}));
    text + &event("message_stop", &json!({}))
}

pub fn event(kind: &str, rest: &Value) -> String {
    let mut data = json!({"type": kind});
    if let (Some(data), Some(rest)) = (data.as_object_mut(), rest.as_object()) {
        data.extend(rest.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = write!(text, "event: {kind}\ndata: {data}\n\n");
    text
}

pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |length| word + length);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_words_and_together_the_text() {
        for (text, expected) in [
            ("a bc  d", vec!["a", " bc", "  d"]),
            ("", vec![]),
            ("\n\n", vec!["\n\n"]),
            ("ä ", vec!["ä", " "]),
        ] {
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn an_event_is_as_the_api_writes_it() {
        let text = event("content_block_stop", &json!({"index": 0}));
        assert_eq!(
            text,
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
        );
    }
}
