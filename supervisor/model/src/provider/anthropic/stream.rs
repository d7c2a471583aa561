//! Decodes a reply of the Messages API, one SSE event at a time, without I/O.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use protocol::event::TokenUsage;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::block::{BlockEnd, OpenBlock};
use super::wire;
use crate::provider::broken_off::{broken_off, tells_error};
use crate::provider::decode::{
    Decode, Envelope, Events, ReplyPhase, invalid, is_done_marker, truncated, violation,
};
use crate::provider::unknown::Unknown;
use crate::provider::{ProviderError, StopReason, StreamEvent};

#[derive(Clone, Default)]
pub struct AnthropicDecoder {
    phase: ReplyPhase,
    open: BTreeMap<usize, OpenBlock>,
    closed: BTreeSet<usize>,
    unknown: Unknown,
    envelope: Envelope,
    progress: u64,
}

impl AnthropicDecoder {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Decode for AnthropicDecoder {
    fn is_complete(&self) -> bool {
        self.phase == ReplyPhase::Complete
    }

    fn progress(&self) -> u64 {
        self.progress
    }

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn push(&mut self, data: &str, events: &mut Events) -> Result<(), ProviderError> {
        if self.is_complete() || is_done_marker(data) {
            return Ok(());
        }
        match serde_json::from_str::<wire::AnthropicEvent<'_>>(data) {
            Ok(event) if event.kind == "error" => Err(broken_off(data)),
            Ok(event) => self.event(&event, events),
            // Nothing important follows the stop reason.
            Err(error) if error.is_eof() && self.envelope.stop_reason.is_some() => Ok(()),
            Err(error) => self.misfit(data, &error),
        }
    }

    fn finish(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        match self.phase {
            ReplyPhase::Started if self.envelope.stop_reason.is_some() => self.complete(events),
            phase => phase.at_end(),
        }
    }

    fn push_whole(&mut self, json: &str, events: &mut Events) -> Result<(), ProviderError> {
        let kind =
            serde_json::from_str::<wire::AnthropicEventKind<'_>>(json).map_err(|error| invalid(&error))?.kind;
        match kind.as_ref() {
            "message" => {
                let raw: &RawValue = serde_json::from_str(json).map_err(|error| invalid(&error))?;
                self.start_message(raw, events)?;
                self.complete(events)
            }
            "error" => self.push(json, events),
            other => Err(violation(&format!("a JSON reply of type {other:?} instead of a stream"))),
        }
    }
}

impl AnthropicDecoder {
    fn event(&mut self, event: &wire::AnthropicEvent<'_>, events: &mut Events) -> Result<(), ProviderError> {
        match event.kind.as_ref() {
            "content_block_delta" => self.delta(event, events),
            "content_block_start" => self.start_block(index(event)?, event.content_block, events),
            "content_block_stop" => self.close_block(index(event)?, BlockEnd::Closed, events),
            "message_start" => match event.message {
                Some(message) => self.start_message(message, events),
                None => Err(violation("a message_start without message")),
            },
            "message_delta" => self.message_delta(event, events),
            "message_stop" if self.envelope.stop_reason.is_some() => self.complete(events),
            "message_stop" => Err(truncated("the reply ended without a stop reason")),
            "ping" => Ok(()),
            other => {
                self.unknown.note(other);
                Ok(())
            }
        }
    }

    fn start_message(&mut self, raw: &RawValue, events: &mut Events) -> Result<(), ProviderError> {
        if self.phase != ReplyPhase::Waiting {
            return Err(violation("two replies in one stream"));
        }
        let message: wire::AnthropicMessage<'_> =
            serde_json::from_str(raw.get()).map_err(|error| invalid(&error))?;
        self.phase = ReplyPhase::Started;
        events.push_back(StreamEvent::MessageStarted {
            message_id: message.id.clone(),
            model: message.model.clone(),
        });
        self.envelope = Envelope {
            id: message.id,
            model: message.model,
            role: message.role.unwrap_or_else(|| "assistant".to_owned()),
            stop_reason: message.stop_reason,
            stop_sequence: message.stop_sequence,
            stop_details: message.stop_details.and_then(value),
            usage: Map::new(),
        };
        self.add_usage(message.usage);
        if self.usage() != TokenUsage::default() {
            events.push_back(StreamEvent::UsageTold { usage: self.usage() });
        }
        for (index, block) in message.content.into_iter().enumerate() {
            self.start_block(index, Some(block), events)?;
            self.close_block(index, BlockEnd::Closed, events)?;
        }
        Ok(())
    }

    /// Begins a reply without `message_start`, as llama.cpp's server sends it if the first token is not a whole
    /// character. `is_beginning` is true for the events that may then come first: the first block, and the end.
    fn start_unannounced(&mut self, is_beginning: bool, events: &mut Events) {
        if self.phase == ReplyPhase::Waiting && is_beginning {
            self.phase = ReplyPhase::Started;
            "assistant".clone_into(&mut self.envelope.role);
            events.push_back(StreamEvent::MessageStarted { message_id: String::new(), model: String::new() });
        }
    }

    fn start_block(
        &mut self,
        index: usize,
        raw: Option<&RawValue>,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        self.progress += 1;
        self.start_unannounced(index == 0, events);
        if self.phase != ReplyPhase::Started {
            return Err(violation("a content block before the message began"));
        }
        if self.open.contains_key(&index) || self.closed.contains(&index) {
            return Err(violation(&format!("content block {index} twice")));
        }
        let raw = raw.ok_or_else(|| violation("a content_block_start without block"))?;
        let block = OpenBlock::start(raw).map_err(|error| invalid(&error))?;
        if let Some(model) = block.fallback_model() {
            self.envelope.model = model;
        }
        events.extend(block.opening(index));
        self.open.insert(index, block);
        Ok(())
    }

    fn delta(&mut self, event: &wire::AnthropicEvent<'_>, events: &mut Events) -> Result<(), ProviderError> {
        self.progress += 1;
        let index = index(event)?;
        let (Some(delta), Some(block)) = (&event.delta, self.open.get_mut(&index)) else {
            return Err(violation(&format!("a delta for content block {index}, which is not open")));
        };
        if !block.push(index, delta, events) {
            self.unknown.note(&delta.kind);
        }
        Ok(())
    }

    fn close_block(&mut self, index: usize, end: BlockEnd, events: &mut Events) -> Result<(), ProviderError> {
        let Some(mut block) = self.open.remove(&index) else {
            return Err(violation(&format!("the end of content block {index}, which is not open")));
        };
        self.closed.insert(index);
        block.finish_text(index, events);
        if let Some(block) = block.close(end).map_err(|error| invalid(&error))? {
            events.push_back(StreamEvent::BlockClosed { index, block });
        }
        Ok(())
    }

    /// Handles an event whose JSON has an unexpected shape. This is an error unless the kind of the event is unknown.
    fn misfit(&mut self, data: &str, error: &serde_json::Error) -> Result<(), ProviderError> {
        let Ok(event) = serde_json::from_str::<wire::AnthropicEventKind<'_>>(data) else {
            return Err(if tells_error(data) { broken_off(data) } else { invalid(error) });
        };
        let delta = event.delta.and_then(|raw| serde_json::from_str::<wire::DeltaKind<'_>>(raw.get()).ok());
        let delta = delta.map_or(Cow::Borrowed(""), |delta| delta.kind);
        let unknown = if !wire::EVENTS.contains(&event.kind.as_ref()) {
            event.kind
        } else if !wire::DELTAS.contains(&delta.as_ref()) {
            delta
        } else {
            return Err(invalid(error));
        };
        self.unknown.note(&unknown);
        Ok(())
    }

    fn message_delta(
        &mut self,
        event: &wire::AnthropicEvent<'_>,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        self.start_unannounced(event.delta.as_ref().is_some_and(|delta| delta.stop_reason.is_some()), events);
        if self.phase != ReplyPhase::Started {
            return Err(violation("a message_delta before the message began"));
        }
        if let Some(delta) = &event.delta {
            let envelope = &mut self.envelope;
            envelope.stop_reason = delta.stop_reason.clone().or_else(|| envelope.stop_reason.take());
            envelope.stop_sequence = delta.stop_sequence.clone().or_else(|| envelope.stop_sequence.take());
            envelope.stop_details =
                delta.stop_details.and_then(value).or_else(|| envelope.stop_details.take());
        }
        self.add_usage(event.usage);
        Ok(())
    }

    /// Adds the token counts of an event. Newer values replace older ones; a missing value leaves the older one.
    fn add_usage(&mut self, usage: Option<&RawValue>) {
        let Some(Value::Object(usage)) = usage.and_then(value) else {
            return;
        };
        for (name, value) in usage {
            if !value.is_null() || !self.envelope.usage.contains_key(&name) {
                self.envelope.usage.insert(name, value);
            }
        }
    }

    fn complete(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        while let Some((&index, _)) = self.open.first_key_value() {
            self.close_block(index, BlockEnd::CutOff, events)?;
        }
        self.phase = ReplyPhase::Complete;
        let stop_reason = self.stop_reason();
        events.push_back(StreamEvent::MessageCompleted { stop_reason, usage: self.usage() });
        Ok(())
    }

    fn stop_reason(&self) -> StopReason {
        match self.envelope.stop_reason.as_deref().unwrap_or_default() {
            "end_turn" => StopReason::EndTurn,
            "tool_use" => StopReason::ToolUse,
            "max_tokens" => StopReason::MaxTokens,
            "stop_sequence" => StopReason::StopSequence,
            "pause_turn" => StopReason::PauseTurn,
            "refusal" => StopReason::Refusal(self.refusal()),
            "model_context_window_exceeded" => StopReason::ContextWindowExceeded,
            other => StopReason::Other(other.to_owned()),
        }
    }

    fn refusal(&self) -> Option<String> {
        let details = self.envelope.stop_details.clone()?;
        let details: wire::StopDetails = serde_json::from_value(details).ok()?;
        details.explanation.or(details.category)
    }

    fn usage(&self) -> TokenUsage {
        usage(&self.envelope.usage)
    }
}

pub(super) fn usage(members: &Map<String, Value>) -> TokenUsage {
    let count = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
    let tokens = |name| count(members.get(name));
    let lifetimes = members.get("cache_creation");
    TokenUsage {
        input: tokens("input_tokens"),
        cache_creation: tokens("cache_creation_input_tokens"),
        cache_creation_1h: count(lifetimes.and_then(|of| of.get("ephemeral_1h_input_tokens"))),
        cache_read: tokens("cache_read_input_tokens"),
        output: tokens("output_tokens"),
        estimated: 0,
    }
}

fn index(event: &wire::AnthropicEvent<'_>) -> Result<usize, ProviderError> {
    event.index.ok_or_else(|| violation(&format!("a {} without index", event.kind)))
}

fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok().filter(|value: &Value| !value.is_null())
}
