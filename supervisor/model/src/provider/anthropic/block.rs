//! A block of a reply while it is being received.
//!
//! Later requests contain the object of `content_block_start`, with the texts of the deltas filled in. Tool input keeps
//! the text that the model wrote. Line breaks between JSON tokens become spaces, so that a block is one line of the
//! session log.

use std::borrow::Cow;
use std::collections::VecDeque;

use ipc::id::ToolUseId;
use serde_json::value::{RawValue, to_raw_value};

use super::wire;
use crate::provider::arguments::{self, one_line};
use crate::provider::members::ReplyMembers;
use crate::provider::text::{Joined, Piece, without_lone_halves};
use crate::provider::{AssistantBlock, ContentBlock, StreamEvent, tool_name};

#[derive(Clone)]
pub(super) struct OpenBlock {
    view: View,
    start: Box<RawValue>,
    text: Joined,
    thinking: Joined,
    input: Joined,
    citations: Vec<Box<RawValue>>,
    /// Fields whose whole value arrived in one delta, with their values.
    set: Vec<(&'static str, Box<RawValue>)>,
    text_changed: bool,
    thinking_changed: bool,
    cited: bool,
    /// The signature of thinking; `None` until it arrives, in a single delta. A later signature replaces it.
    signature: Option<String>,
}

#[derive(Clone)]
enum View {
    Text,
    Thinking,
    RedactedThinking,
    ToolUse { id: ToolUseId, name: String },
    Other(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockEnd {
    Closed,
    CutOff,
}

impl OpenBlock {
    pub(super) fn start(raw: &RawValue) -> Result<Self, serde_json::Error> {
        use serde::de::Error;
        let block: wire::AnthropicReplyBlock<'_> = serde_json::from_str(raw.get())?;
        let mut set = Vec::new();
        let view = match block.kind.as_str() {
            "text" => View::Text,
            "thinking" => View::Thinking,
            "redacted_thinking" => View::RedactedThinking,
            "tool_use" => match (block.id, block.name.as_deref().and_then(tool_name::harmless)) {
                (Some(id), Some(name)) if !id.is_empty() => {
                    if let Cow::Owned(name) = &name {
                        set.push(("name", to_raw_value(name)?));
                    }
                    View::ToolUse { id: ToolUseId(id), name: name.into_owned() }
                }
                _ => return Err(serde_json::Error::custom("a tool_use block without id or name")),
            },
            _ => View::Other(block.kind),
        };
        Ok(Self {
            view,
            start: raw.to_owned(),
            text: Joined::new(string(block.text)),
            thinking: Joined::new(string(block.thinking)),
            input: Joined::default(),
            citations: block.citations.map_or_else(Vec::new, list),
            set,
            text_changed: false,
            thinking_changed: false,
            cited: false,
            signature: None,
        })
    }

    /// Returns the event for the block's start: a tool call, or text that the start contains. `None` for other blocks.
    pub(super) fn opening(&self, index: usize) -> Option<StreamEvent> {
        match &self.view {
            View::ToolUse { id, name } => {
                Some(StreamEvent::ToolUseStarted { index, id: id.clone(), name: name.clone() })
            }
            View::Text => text_delta(index, self.text.as_str()),
            View::Thinking => thinking_delta(index, self.thinking.as_str()),
            View::RedactedThinking | View::Other(_) => None,
        }
    }

    /// Returns the model that continues the reply, if the block reports that another model does; else `None`.
    pub(super) fn fallback_model(&self) -> Option<String> {
        let View::Other(kind) = &self.view else {
            return None;
        };
        if kind != "fallback" {
            return None;
        }
        let fallback: wire::Fallback = serde_json::from_str(self.start.get()).ok()?;
        Some(fallback.to.model)
    }

    /// Handles a delta. Returns false for a delta of an unknown kind: such deltas are ignored.
    pub(super) fn push(
        &mut self,
        index: usize,
        delta: &wire::AnthropicDelta<'_>,
        events: &mut VecDeque<StreamEvent>,
    ) -> bool {
        match delta.kind.as_ref() {
            "text_delta" => events.extend(self.push_text(index, delta.text.as_ref())),
            "thinking_delta" => events.extend(self.push_thinking(index, delta.thinking.as_ref())),
            "input_json_delta" => {
                if let Some(piece) = &delta.partial_json {
                    self.input.push(piece);
                }
            }
            "signature_delta" => self.signature = delta.signature.clone().or_else(|| self.signature.take()),
            "citations_delta" => {
                self.cited = true;
                self.citations.extend(delta.citation.map(ToOwned::to_owned));
            }
            "compaction_delta" => {
                let members = [("content", delta.content), ("encrypted_content", delta.encrypted_content)];
                for (name, value) in members.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                    self.set(name, value.to_owned());
                }
            }
            _ => return false,
        }
        true
    }

    fn push_text(&mut self, index: usize, piece: Option<&Piece<'_>>) -> Option<StreamEvent> {
        self.text_changed = true;
        let added = self.text.push(piece?);
        if matches!(self.view, View::Text) { text_delta(index, added) } else { None }
    }

    fn push_thinking(&mut self, index: usize, piece: Option<&Piece<'_>>) -> Option<StreamEvent> {
        self.thinking_changed = true;
        let added = self.thinking.push(piece?);
        if matches!(self.view, View::Thinking) { thinking_delta(index, added) } else { None }
    }

    /// Adds events with the rest of the block's text or thinking.
    pub(super) fn finish_text(&mut self, index: usize, events: &mut VecDeque<StreamEvent>) {
        let text = self.text.finish();
        let thinking = self.thinking.finish();
        self.input.finish();
        match self.view {
            View::Text => events.extend(text_delta(index, text)),
            View::Thinking => events.extend(thinking_delta(index, thinking)),
            _ => {}
        }
    }

    fn set(&mut self, name: &'static str, value: Box<RawValue>) {
        self.set.retain(|(old, _)| *old != name);
        self.set.push((name, value));
    }

    /// Returns the complete block; `None` for thinking without a signature, which the API rejects in requests.
    pub(super) fn close(mut self, end: BlockEnd) -> Result<Option<AssistantBlock>, serde_json::Error> {
        if end == BlockEnd::CutOff && matches!(self.view, View::Thinking) && self.signature.is_none() {
            return Ok(None);
        }
        let input = self.close_input(end)?;
        let raw = self.raw()?;
        let content = match self.view {
            View::Text => ContentBlock::Text { text: self.text.into_string() },
            View::Thinking => ContentBlock::Thinking { thinking: self.thinking.into_string() },
            View::RedactedThinking => ContentBlock::RedactedThinking,
            View::ToolUse { id, name } => ContentBlock::ToolUse { id, name, input },
            View::Other(kind) => ContentBlock::Other { kind },
        };
        Ok(Some(AssistantBlock { content, raw }))
    }

    /// Returns the tool input, and writes it into the block. The inner `Err` says why the input is not a JSON object.
    fn close_input(&mut self, end: BlockEnd) -> Result<Result<String, String>, serde_json::Error> {
        let text = self.input.as_str();
        let is_blank = text.trim().is_empty();
        if is_blank && !matches!(self.view, View::ToolUse { .. }) {
            return Ok(Ok(String::new()));
        }
        let block: wire::AnthropicReplyBlock<'_> = serde_json::from_str(self.start.get())?;
        let initial = block.input.map(RawValue::get);
        let input = arguments::object(if is_blank { initial.unwrap_or("{}") } else { text });
        let echoed = match &input {
            Ok(json) => json.clone(),
            Err(_) => arguments::invalid(text)?,
        };
        if initial != Some(&echoed) {
            self.set("input", RawValue::from_string(echoed)?);
        }
        Ok(match end {
            BlockEnd::Closed => input,
            BlockEnd::CutOff => Err("the reply ended before the arguments were complete".to_owned()),
        })
    }

    fn raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let changed = self.text_changed || self.thinking_changed || self.cited || self.signature.is_some();
        if !changed && self.set.is_empty() {
            return echo(self.start.get());
        }
        let mut members: ReplyMembers = serde_json::from_str(self.start.get())?;
        if self.text_changed {
            members.set("text", to_raw_value(self.text.as_str())?);
        }
        if self.thinking_changed {
            members.set("thinking", to_raw_value(self.thinking.as_str())?);
        }
        if let Some(signature) = &self.signature {
            members.set("signature", to_raw_value(signature)?);
        }
        if self.cited {
            members.set("citations", to_raw_value(&self.citations)?);
        }
        for (name, value) in &self.set {
            members.set(name, value.clone());
        }
        echo(&members.to_json()?)
    }
}

/// Returns the JSON in the form for later requests: on one line, without lone surrogates.
fn echo(json: &str) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(without_lone_halves(one_line(json)))
}

fn text_delta(index: usize, text: &str) -> Option<StreamEvent> {
    (!text.is_empty()).then(|| StreamEvent::TextDelta { index, text: text.to_owned() })
}

fn thinking_delta(index: usize, text: &str) -> Option<StreamEvent> {
    (!text.is_empty()).then(|| StreamEvent::ThinkingDelta { index, text: text.to_owned() })
}

fn string(raw: Option<&RawValue>) -> String {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn list(raw: &RawValue) -> Vec<Box<RawValue>> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}
