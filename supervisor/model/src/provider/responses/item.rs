//! An item of a reply while it is being received.
//!
//! The final item replaces the deltas, and later requests contain it unchanged. Its block in the conversation has the
//! shape of the Messages API, with the item as one of the fields.

use ipc::id::ToolUseId;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::wire;
use crate::provider::arguments::{self, one_line};
use crate::provider::decode::Events;
use crate::provider::members::ReplyMembers;
use crate::provider::text::{Joined, Piece};
use crate::provider::{AssistantBlock, ContentBlock, StreamEvent, tool_name};

#[derive(Default)]
pub(super) struct OpenItem {
    text: Joined,
    thinking: Joined,
    arguments: Joined,
    call: Option<ResponsesCall>,
}

pub(super) struct ClosedItem {
    /// The block of the item for the conversation; `None` if the API would reject the item in a request.
    pub(super) block: Option<AssistantBlock>,
    pub(super) refusal: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
struct ResponsesCall {
    id: ToolUseId,
    name: String,
}

impl OpenItem {
    /// Begins an item. Adds an event if the item is a tool call.
    pub(super) fn start(
        raw: &RawValue,
        index: usize,
        events: &mut Events,
    ) -> Result<Self, serde_json::Error> {
        let mut item = Self::default();
        if kind(raw)? == "function_call" {
            let call: wire::FunctionCall<'_> = serde_json::from_str(raw.get())?;
            // Some servers send id and name only in the final item.
            if let Some(call) = identify(call.call_id, call.name) {
                item.announce(call, index, events);
            }
        }
        Ok(item)
    }

    pub(super) fn push(&mut self, index: usize, kind: &str, piece: &Piece<'_>, events: &mut Events) {
        match kind {
            wire::TEXT_DELTA | wire::REFUSAL_DELTA => show_text(index, self.text.push(piece), events),
            wire::SUMMARY_DELTA | wire::REASONING_DELTA => {
                show_thinking(index, self.thinking.push(piece), events);
            }
            _ => {
                self.arguments.push(piece);
            }
        }
    }

    /// Begins a part of a reasoning summary. The user sees each part as a paragraph.
    pub(super) fn begin_part(&mut self, index: usize, events: &mut Events) {
        if !self.thinking.as_str().is_empty() {
            show_thinking(index, self.thinking.push_str(PARAGRAPH), events);
        }
    }

    /// Closes an item with its final form. Text that no delta contained is added as an event.
    pub(super) fn close(
        mut self,
        raw: &RawValue,
        index: usize,
        events: &mut Events,
    ) -> Result<ClosedItem, serde_json::Error> {
        self.finish(index, events);
        let item = sendable(raw)?;
        match kind(raw)?.as_str() {
            "message" => self.close_message(raw, item.as_deref(), index, events),
            "reasoning" => self.close_reasoning(raw, item.as_deref(), index, events),
            "function_call" => self.close_call(raw, item.as_deref(), index, events),
            other => {
                let content = ContentBlock::Other { kind: other.to_owned() };
                let echo =
                    item.as_deref().map(|item| to_raw_value(&Echo::OutputItem { item })).transpose()?;
                Ok(ClosedItem { block: echo.map(|raw| AssistantBlock { content, raw }), refusal: None })
            }
        }
    }

    /// Closes an incomplete item. Its text is kept, but not the arguments of a call. Returns `None` if nothing is kept.
    pub(super) fn cut(
        mut self,
        index: usize,
        events: &mut Events,
    ) -> Result<Option<AssistantBlock>, serde_json::Error> {
        self.finish(index, events);
        if let Some(ResponsesCall { id, name }) = self.call {
            let shown = RawValue::from_string(arguments::invalid(self.arguments.as_str())?)?;
            let raw = to_raw_value(&Echo::ToolUse { id: &id, name: &name, input: &shown, item: None })?;
            return Ok(Some(AssistantBlock {
                content: ContentBlock::ToolUse { id, name, input: cut_off() },
                raw,
            }));
        }
        let text = self.text.into_string();
        if text.is_empty() {
            return Ok(None);
        }
        let raw = to_raw_value(&Echo::Text { text: &text, item: None })?;
        Ok(Some(AssistantBlock { content: ContentBlock::Text { text }, raw }))
    }

    fn close_message(
        self,
        raw: &RawValue,
        item: Option<&RawValue>,
        index: usize,
        events: &mut Events,
    ) -> Result<ClosedItem, serde_json::Error> {
        let message: wire::ResponsesMessage<'_> = serde_json::from_str(raw.get())?;
        let (mut text, mut refusal) = (Joined::default(), Joined::default());
        for part in message.content.iter().flatten() {
            for (piece, refused) in [(&part.text, false), (&part.refusal, true)] {
                let Some(piece) = piece else { continue };
                text.push(piece);
                if refused {
                    refusal.push(piece);
                }
            }
        }
        let (text, refusal) = (text.into_whole(), refusal.into_whole());
        show_text(index, rest(self.text.as_str(), &text), events);
        let raw = to_raw_value(&Echo::Text { text: &text, item })?;
        let block = AssistantBlock { content: ContentBlock::Text { text }, raw };
        Ok(ClosedItem { block: Some(block), refusal: (!refusal.is_empty()).then_some(refusal) })
    }

    fn close_reasoning(
        self,
        raw: &RawValue,
        item: Option<&RawValue>,
        index: usize,
        events: &mut Events,
    ) -> Result<ClosedItem, serde_json::Error> {
        let reasoning: wire::ResponsesReasoning<'_> = serde_json::from_str(raw.get())?;
        let summary = paragraphs(reasoning.summary.iter().flatten());
        let thinking =
            if summary.is_empty() { paragraphs(reasoning.content.iter().flatten()) } else { summary };
        show_thinking(index, rest(self.thinking.as_str(), &thinking), events);
        let echo = item.map(|item| to_raw_value(&Echo::Reasoning { item })).transpose()?;
        let content = ContentBlock::Thinking { thinking };
        Ok(ClosedItem { block: echo.map(|raw| AssistantBlock { content, raw }), refusal: None })
    }

    fn close_call(
        mut self,
        raw: &RawValue,
        item: Option<&RawValue>,
        index: usize,
        events: &mut Events,
    ) -> Result<ClosedItem, serde_json::Error> {
        use serde::de::Error;
        let done: wire::FunctionCall<'_> = serde_json::from_str(raw.get())?;
        let call = identify(done.call_id, done.name.clone())
            .ok_or_else(|| serde_json::Error::custom("a function_call without call_id or name"))?;
        if self.call.as_ref() != Some(&call) {
            self.announce(call.clone(), index, events);
        }
        let mut text = Joined::default();
        if let Some(piece) = &done.arguments {
            text.push(piece);
        }
        let text = text.into_whole();
        let input = match text.trim() {
            "" => Ok("{}".to_owned()),
            text => arguments::object(text),
        };
        let echoed = match &input {
            Ok(json) => json.clone(),
            Err(_) => arguments::invalid(&text)?,
        };
        let input = if done.status.as_deref() == Some("incomplete") { cut_off() } else { input };
        let ResponsesCall { id, name } = call;
        let renamed = match item {
            Some(item) if done.name.as_ref() != Some(&name) => Some(with_name(item, &name)?),
            _ => None,
        };
        let item = renamed.as_deref().or(item);
        let echoed = RawValue::from_string(echoed)?;
        let raw = to_raw_value(&Echo::ToolUse { id: &id, name: &name, input: &echoed, item })?;
        let block = AssistantBlock { content: ContentBlock::ToolUse { id, name, input }, raw };
        Ok(ClosedItem { block: Some(block), refusal: None })
    }

    fn announce(&mut self, call: ResponsesCall, index: usize, events: &mut Events) {
        let ResponsesCall { id, name } = call.clone();
        self.call = Some(call);
        events.push_back(StreamEvent::ToolUseStarted { index, id, name });
    }

    /// Adds events for the rest of the item's text and thinking.
    fn finish(&mut self, index: usize, events: &mut Events) {
        show_text(index, self.text.finish(), events);
        show_thinking(index, self.thinking.finish(), events);
        self.arguments.finish();
    }
}

/// Separator between the parts of a reasoning summary.
const PARAGRAPH: &str = "\n\n";

/// A block as the conversation stores it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Echo<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<&'a RawValue>,
    },
    Reasoning {
        item: &'a RawValue,
    },
    ToolUse {
        id: &'a ToolUseId,
        name: &'a str,
        input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<&'a RawValue>,
    },
    /// Any other item, in the form in which later requests contain it.
    OutputItem {
        item: &'a RawValue,
    },
}

fn kind(raw: &RawValue) -> Result<String, serde_json::Error> {
    serde_json::from_str::<wire::ResponsesItem<'_>>(raw.get()).map(|item| item.kind.into_owned())
}

/// Returns a call; `None` if id or name is missing.
fn identify(id: Option<String>, name: Option<String>) -> Option<ResponsesCall> {
    let id = id.filter(|id| !id.is_empty())?;
    Some(ResponsesCall { id: ToolUseId(id), name: tool_name::harmless(&name?)?.into_owned() })
}

fn with_name(item: &RawValue, name: &str) -> Result<Box<RawValue>, serde_json::Error> {
    let mut members: ReplyMembers = serde_json::from_str(item.get())?;
    members.set("name", to_raw_value(name)?);
    RawValue::from_string(members.to_json()?)
}

fn cut_off() -> Result<String, String> {
    Err("the reply ended before the arguments were complete".to_owned())
}

/// Returns the item on one line; `None` if the API would reject it: raw JSON may contain a lone surrogate.
fn sendable(raw: &RawValue) -> Result<Option<Box<RawValue>>, serde_json::Error> {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(_) => RawValue::from_string(one_line(raw.get())).map(Some),
        Err(_) => Ok(None),
    }
}

/// Returns the part of the text that was not shown yet; empty if the shown text is not the beginning of the whole text.
fn rest<'a>(shown: &str, whole: &'a str) -> &'a str {
    whole.strip_prefix(shown).unwrap_or_default()
}

fn paragraphs<'a>(parts: impl Iterator<Item = &'a wire::ResponsesPart<'a>>) -> String {
    let mut text = Joined::default();
    for piece in parts.filter_map(|part| part.text.as_ref()) {
        if !text.as_str().is_empty() {
            text.push_str(PARAGRAPH);
        }
        text.push(piece);
    }
    text.into_whole()
}

fn show_text(index: usize, text: &str, events: &mut Events) {
    if !text.is_empty() {
        events.push_back(StreamEvent::TextDelta { index, text: text.to_owned() });
    }
}

fn show_thinking(index: usize, text: &str, events: &mut Events) {
    if !text.is_empty() {
        events.push_back(StreamEvent::ThinkingDelta { index, text: text.to_owned() });
    }
}
