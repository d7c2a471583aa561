//! Messages as JSON text, each serialised once.
//!
//! History is append-only and shared (`Arc`), so a message's text never changes: a request is put together from texts
//! that earlier requests have made already, and its bytes are the same each time (R8: a cache hit needs the same prefix).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::{Message, UserBlock};

/// How many messages are kept before the first look for dead ones.
const FIRST_SWEEP: usize = 256;

/// The texts of the messages of all agents that use a provider.
#[derive(Default)]
pub(super) struct History {
    texts: Mutex<Texts>,
}

#[derive(Default)]
struct Texts {
    /// By address. The weak reference keeps the address from being used for another message.
    by_address: HashMap<usize, (Weak<Message>, Option<Bytes>)>,
    sweep_at: usize,
}

impl History {
    /// The messages as JSON texts, without those that would be empty: the API refuses them.
    pub(super) fn texts(&self, messages: &[Arc<Message>]) -> Result<Vec<MessageText>, serde_json::Error> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::with_capacity(messages.len());
        for message in messages {
            if let Some(json) = texts.get(message)? {
                all.push(MessageText { json, of_user: matches!(**message, Message::User(_)) });
            }
        }
        Ok(all)
    }
}

impl Texts {
    fn get(&mut self, message: &Arc<Message>) -> Result<Option<Bytes>, serde_json::Error> {
        let address = Arc::as_ptr(message).addr();
        if let Some((_, text)) = self.by_address.get(&address) {
            return Ok(text.clone());
        }
        let text = serialise(message)?.map(Bytes::from);
        self.sweep();
        self.by_address.insert(address, (Arc::downgrade(message), text.clone()));
        Ok(text)
    }

    /// Forgets the messages that nobody else holds, each time that their number has doubled.
    fn sweep(&mut self) {
        if self.by_address.len() >= self.sweep_at.max(FIRST_SWEEP) {
            self.by_address.retain(|_, (message, _)| message.strong_count() > 0);
            self.sweep_at = 2 * self.by_address.len();
        }
    }
}

/// A message as JSON text.
pub(super) struct MessageText {
    json: Bytes,
    /// Whether it is the user's.
    pub(super) of_user: bool,
}

impl MessageText {
    /// Writes the text, with a cache marker at its last block where `marked`.
    pub(super) fn write(&self, marked: bool, body: &mut Vec<u8>) {
        // `…}]}`: the last block's end, the content's end, the message's end.
        const TAIL: usize = 3;
        let (head, tail) = self.json.split_at(self.json.len() - TAIL);
        body.extend_from_slice(head);
        if marked {
            body.push(b',');
            body.extend_from_slice(super::request::CACHE_MARKER.as_bytes());
        }
        body.extend_from_slice(tail);
    }

    /// The length of the text.
    pub(super) const fn len(&self) -> usize {
        self.json.len()
    }
}

fn serialise(message: &Message) -> Result<Option<Vec<u8>>, serde_json::Error> {
    #[derive(Serialize)]
    struct Wire<T> {
        role: &'static str,
        content: Vec<T>,
    }
    match message {
        Message::User(blocks) => {
            // R4: results stand before text.
            let (results, texts): (Vec<_>, Vec<_>) = blocks
                .iter()
                .filter_map(user_block)
                .partition(|block| matches!(block, Block::ToolResult { .. }));
            let content: Vec<_> = results.into_iter().chain(texts).collect();
            non_empty(content.is_empty(), &Wire { role: "user", content })
        }
        Message::Assistant(blocks) => {
            let content: Vec<_> = blocks.iter().filter(|block| !is_empty_text(block)).collect();
            non_empty(content.is_empty(), &Wire { role: "assistant", content })
        }
    }
}

fn non_empty(is_empty: bool, message: &impl Serialize) -> Result<Option<Vec<u8>>, serde_json::Error> {
    if is_empty { Ok(None) } else { serde_json::to_vec(message).map(Some) }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A block as the API takes it; R5: no empty text, and no empty result of a failed call.
fn user_block(block: &UserBlock) -> Option<Block<'_>> {
    match block {
        UserBlock::Text(text) if text.is_empty() => None,
        UserBlock::Text(text) => Some(Block::Text { text }),
        UserBlock::ToolResult { tool_use, content, is_error } => {
            let content = if content.is_empty() { "(no output)" } else { content };
            Some(Block::ToolResult { tool_use_id: tool_use.as_str(), content, is_error: *is_error })
        }
    }
}

/// R5: a model may answer with an empty text block, and the API refuses to take it back.
fn is_empty_text(block: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct View {
        r#type: String,
        text: Option<String>,
    }
    // Only a short block can be one; a long one is not parsed again.
    block.get().len() < 256
        && serde_json::from_str::<View>(block.get())
            .is_ok_and(|view| view.r#type == "text" && view.text.is_none_or(|text| text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: Message) -> Option<String> {
        let texts = History::default().texts(&[Arc::new(message)]).expect("JSON");
        texts.first().map(|text| String::from_utf8(text.json.to_vec()).expect("UTF-8"))
    }

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("JSON")
    }

    #[test]
    fn r4_r5_messages_as_the_api_takes_them() {
        let result = |id: &str, content: &str, is_error| UserBlock::ToolResult {
            tool_use: id.into(),
            content: content.to_owned(),
            is_error,
        };
        let message =
            vec![UserBlock::Text("and now?".to_owned()), result("a", "ok", false), result("b", "", true)];
        assert_eq!(
            text(Message::User(message)).as_deref(),
            Some(concat!(
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"},"#,
                r#"{"type":"tool_result","tool_use_id":"b","content":"(no output)","is_error":true},"#,
                r#"{"type":"text","text":"and now?"}]}"#
            ))
        );
        assert_eq!(text(Message::User(vec![UserBlock::Text(String::new())])), None);
    }

    #[test]
    fn r6_assistant_blocks_go_back_byte_for_byte_and_empty_text_does_not() {
        let thinking = r#"{"type":"thinking", "thinking":"","signature":"\u00e9="}"#;
        let blocks = vec![raw(thinking), raw(r#"{"type":"text","text":""}"#), raw(r#"{"x":1.0}"#)];
        let expected = format!(r#"{{"role":"assistant","content":[{thinking},{{"x":1.0}}]}}"#);
        assert_eq!(text(Message::Assistant(blocks)), Some(expected));
        assert_eq!(text(Message::Assistant(vec![raw(r#"{"type":"text","text":""}"#)])), None);
    }

    #[test]
    fn a_message_is_serialised_once_and_forgotten_when_nobody_holds_it() {
        let history = History::default();
        let message = Arc::new(Message::User(vec![UserBlock::Text("a".to_owned())]));
        let first = history.texts(std::slice::from_ref(&message)).expect("JSON");
        let second = history.texts(std::slice::from_ref(&message)).expect("JSON");
        assert_eq!(first[0].json.as_ptr(), second[0].json.as_ptr());
        for number in 0..3 * FIRST_SWEEP {
            let message = Arc::new(Message::User(vec![UserBlock::Text(number.to_string())]));
            assert!(
                history.texts(&[message]).expect("JSON")[0]
                    .json
                    .ends_with(format!("\"{number}\"}}]}}").as_bytes())
            );
        }
        assert!(history.texts.lock().expect("no panic").by_address.len() <= FIRST_SWEEP + 1);
    }
}
