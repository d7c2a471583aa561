//! Decodes a reply of the Responses API, one SSE event at a time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use protocol::event::TokenUsage;
use serde_json::json;
use serde_json::value::RawValue;

use super::item::OpenItem;
use super::{usage, wire};
use crate::provider::broken_off::{broken_off, tells_error};
use crate::provider::decode::{
    Decode, Envelope, Events, ReplyPhase, in_messages_words, invalid, is_done_marker, violation,
};
use crate::provider::unknown::Unknown;
use crate::provider::{AssistantBlock, ContentBlock, ProviderError, StopReason, StreamEvent};

#[derive(Default)]
pub struct ResponsesDecoder {
    phase: ReplyPhase,
    open: BTreeMap<usize, OpenItem>,
    closed: BTreeSet<usize>,
    /// Indices of items by id. Some servers send only the id with a delta.
    indices: HashMap<String, usize>,
    unknown: Unknown,
    envelope: Envelope,
    has_called: bool,
    refusal: Option<String>,
    progress: u64,
}

impl ResponsesDecoder {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Decode for ResponsesDecoder {
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
        match serde_json::from_str::<wire::ResponsesEvent<'_>>(data) {
            Ok(event) if event.kind == "error" => Err(broken_off(data)),
            Ok(event) => self.event(&event, events),
            Err(error) => self.misfit(data, &error),
        }
    }

    fn finish(&mut self, _: &mut Events) -> Result<(), ProviderError> {
        self.phase.at_end()
    }

    fn push_whole(&mut self, json: &str, events: &mut Events) -> Result<(), ProviderError> {
        let response: wire::Response<'_> = serde_json::from_str(json).map_err(|error| invalid(&error))?;
        match response.status.clone() {
            Some(status) if response.output.is_some() => self.end(response, &status, events),
            _ if response.error.is_some() => Err(broken_off(json)),
            _ => Err(violation("a JSON reply of another kind instead of a stream")),
        }
    }
}

impl ResponsesDecoder {
    fn event(&mut self, event: &wire::ResponsesEvent<'_>, events: &mut Events) -> Result<(), ProviderError> {
        match event.kind.as_ref() {
            wire::TEXT_DELTA
            | wire::REFUSAL_DELTA
            | wire::SUMMARY_DELTA
            | wire::REASONING_DELTA
            | wire::ARGUMENTS_DELTA => self.delta(event, events),
            "response.reasoning_summary_part.added" => {
                let (index, item) = self.opened(event)?;
                item.begin_part(index, events);
                Ok(())
            }
            "response.output_item.added" => self.add(event, events),
            "response.output_item.done" => self.done(event, events),
            "response.created" if self.is_another(event) => Err(violation("two replies in one stream")),
            "response.created" | "response.queued" | "response.in_progress" => self.begin(event, events),
            "response.completed" => self.end_with(event, "completed", events),
            "response.incomplete" => self.end_with(event, "incomplete", events),
            "response.failed" => self.end_with(event, "failed", events),
            "response.cancelled" => self.end_with(event, "cancelled", events),
            "response.done" => self.end_with(event, "", events),
            kind => {
                if !wire::REPETITIONS.contains(&kind) {
                    self.unknown.note(kind);
                }
                Ok(())
            }
        }
    }

    /// True if the event starts another response than the current one. llama.cpp's server starts the current response
    /// again before every delta, if the first token is not a whole character.
    fn is_another(&self, event: &wire::ResponsesEvent<'_>) -> bool {
        let is_same = response(event)
            .is_ok_and(|again| again.id.as_ref().is_some_and(|id| !id.is_empty() && *id == self.envelope.id));
        self.phase != ReplyPhase::Waiting && !is_same
    }

    /// Begins the reply, unless it has begun already: a server may report the response as queued before.
    fn begin(&mut self, event: &wire::ResponsesEvent<'_>, events: &mut Events) -> Result<(), ProviderError> {
        if self.phase == ReplyPhase::Waiting {
            let response = response(event)?;
            self.start(&response, events);
        }
        Ok(())
    }

    fn start(&mut self, response: &wire::Response<'_>, events: &mut Events) {
        self.phase = ReplyPhase::Started;
        self.name(response);
        "assistant".clone_into(&mut self.envelope.role);
        events.push_back(StreamEvent::MessageStarted {
            message_id: self.envelope.id.clone(),
            model: self.envelope.model.clone(),
        });
        let usage = usage::parse(response.usage.as_ref());
        if usage != TokenUsage::default() {
            events.push_back(StreamEvent::UsageTold { usage });
        }
    }

    /// Records the id and the model of the response, which some servers send only at the end.
    fn name(&mut self, response: &wire::Response<'_>) {
        let Envelope { id, model, .. } = &mut self.envelope;
        for (ours, theirs) in [(id, &response.id), (model, &response.model)] {
            if let Some(theirs) = theirs.as_ref().filter(|_| ours.is_empty()) {
                ours.clone_from(theirs);
            }
        }
    }

    fn add(&mut self, event: &wire::ResponsesEvent<'_>, events: &mut Events) -> Result<(), ProviderError> {
        self.progress += 1;
        let raw = self.item(event)?;
        let index = event.output_index.unwrap_or_else(|| self.next_index());
        if self.open.contains_key(&index) || self.closed.contains(&index) {
            return Err(violation(&format!("output item {index} twice")));
        }
        let item = OpenItem::start(raw, index, events).map_err(|error| invalid(&error))?;
        self.open.insert(index, item);
        if let Some(id) = id(raw)? {
            self.indices.insert(id, index);
        }
        Ok(())
    }

    fn delta(&mut self, event: &wire::ResponsesEvent<'_>, events: &mut Events) -> Result<(), ProviderError> {
        self.progress += 1;
        let (index, item) = self.opened(event)?;
        if let Some(piece) = &event.delta {
            item.push(index, &event.kind, piece, events);
        }
        Ok(())
    }

    fn done(&mut self, event: &wire::ResponsesEvent<'_>, events: &mut Events) -> Result<(), ProviderError> {
        let raw = self.item(event)?;
        let known = id(raw)?.and_then(|id| self.indices.get(&id).copied());
        let index = event.output_index.or(known).unwrap_or_else(|| self.next_index());
        self.close(index, raw, events)
    }

    fn close(&mut self, index: usize, raw: &RawValue, events: &mut Events) -> Result<(), ProviderError> {
        self.progress += 1;
        if !self.closed.insert(index) {
            return Err(violation(&format!("output item {index} twice")));
        }
        // Some servers send an item only when it is complete.
        let item = self.open.remove(&index).unwrap_or_default();
        let closed = item.close(raw, index, events).map_err(|error| invalid(&error))?;
        if let Some(words) = closed.refusal {
            self.refusal.get_or_insert_default().push_str(&words);
        }
        if let Some(block) = closed.block {
            self.has_called |= matches!(block.content, ContentBlock::ToolUse { .. });
            events.push_back(StreamEvent::BlockClosed { index, block });
        }
        Ok(())
    }

    fn end_with(
        &mut self,
        event: &wire::ResponsesEvent<'_>,
        status: &str,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        let response = response(event)?;
        let said = response.status.clone().unwrap_or_else(|| "completed".to_owned());
        self.end(response, if status.is_empty() { &said } else { status }, events)
    }

    /// Handles the end of a response, or a whole response that was sent without a stream.
    fn end(
        &mut self,
        response: wire::Response<'_>,
        status: &str,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        match status {
            "completed" | "incomplete" => {}
            "failed" => {
                let error = response.error.map_or("null", RawValue::get);
                return Err(broken_off(&format!(r#"{{"error":{error}}}"#)));
            }
            "cancelled" => {
                return Err(ProviderError::new("cancelled", "the reply was cancelled at the provider"));
            }
            status => return Err(violation(&format!("a response that ended with status {status:?}"))),
        }
        if self.phase == ReplyPhase::Waiting {
            self.start(&response, events);
        }
        self.name(&response);
        self.take_output(response.output.unwrap_or_default(), events)?;
        let reason = response.incomplete_details.and_then(|details| details.reason);
        let is_whole = status == "completed" && reason.is_none();
        self.cut_open(is_whole, events)?;
        let stop = if is_whole { self.whole() } else { self.incomplete(reason) };
        self.complete(stop, usage::parse(response.usage.as_ref()), events);
        Ok(())
    }

    /// Adds the items of the final response that the stream did not contain.
    fn take_output(&mut self, output: Vec<&RawValue>, events: &mut Events) -> Result<(), ProviderError> {
        let nothing_came = self.open.is_empty() && self.closed.is_empty();
        for (position, raw) in output.into_iter().enumerate() {
            let index = if nothing_came {
                Some(position)
            } else {
                id(raw)?.and_then(|id| self.indices.get(&id).copied())
            };
            if let Some(index) = index.filter(|index| !self.closed.contains(index)) {
                self.close(index, raw, events)?;
            }
        }
        Ok(())
    }

    /// Closes incomplete items. An incomplete call does not run; in a complete response (`is_whole`) it is an error.
    fn cut_open(&mut self, is_whole: bool, events: &mut Events) -> Result<(), ProviderError> {
        for (index, item) in std::mem::take(&mut self.open) {
            let block = item.cut(index, events).map_err(|error| invalid(&error))?;
            if let Some(AssistantBlock { content: ContentBlock::ToolUse { .. }, .. }) = &block
                && is_whole
            {
                return Err(violation("a complete response with a tool call that has no end"));
            }
            events.extend(block.map(|block| StreamEvent::BlockClosed { index, block }));
        }
        Ok(())
    }

    fn whole(&mut self) -> StopReason {
        match self.refusal.take() {
            Some(words) => StopReason::Refusal(Some(words)),
            None if self.has_called => StopReason::ToolUse,
            None => StopReason::EndTurn,
        }
    }

    fn incomplete(&mut self, reason: Option<String>) -> StopReason {
        match reason.as_deref() {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => {
                let words = self.refusal.take();
                let words =
                    words.unwrap_or_else(|| "the provider's content filter ended the reply".to_owned());
                StopReason::Refusal(Some(words))
            }
            Some(other) => StopReason::Other(other.to_owned()),
            None => StopReason::Other("incomplete".to_owned()),
        }
    }

    fn complete(&mut self, stop_reason: StopReason, usage: TokenUsage, events: &mut Events) {
        self.phase = ReplyPhase::Complete;
        self.envelope.usage = in_messages_words(usage);
        self.envelope.stop_reason = Some(stop_reason.as_str().to_owned());
        if let StopReason::Refusal(Some(words)) = &stop_reason {
            self.envelope.stop_details = Some(json!({"type": "refusal", "explanation": words}));
        }
        events.push_back(StreamEvent::MessageCompleted { stop_reason, usage });
    }

    fn item<'a>(&self, event: &wire::ResponsesEvent<'a>) -> Result<&'a RawValue, ProviderError> {
        if self.phase != ReplyPhase::Started {
            return Err(violation("an output item before the response began"));
        }
        event.item.ok_or_else(|| violation(&format!("a {} without item", event.kind)))
    }

    fn opened(&mut self, event: &wire::ResponsesEvent<'_>) -> Result<(usize, &mut OpenItem), ProviderError> {
        let index = match (event.output_index, event.item_id) {
            (Some(index), _) => Some(index),
            (None, Some(id)) => text(id).and_then(|id| self.indices.get(&id).copied()),
            (None, None) => None,
        };
        let item = index.and_then(|index| Some((index, self.open.get_mut(&index)?)));
        item.ok_or_else(|| violation(&format!("a {} for an output item that is not open", event.kind)))
    }

    fn next_index(&self) -> usize {
        let last = self.open.last_key_value().map(|(index, _)| index).max(self.closed.last());
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// Handles an event whose JSON has an unexpected shape. This is an error unless the kind of the event is unknown.
    fn misfit(&mut self, data: &str, error: &serde_json::Error) -> Result<(), ProviderError> {
        match serde_json::from_str::<wire::ResponsesEventKind<'_>>(data) {
            Ok(event) if event.kind == "error" => Err(broken_off(data)),
            Ok(event) if !wire::EVENTS.contains(&event.kind.as_ref()) => {
                self.unknown.note(&event.kind);
                Ok(())
            }
            Err(_) if tells_error(data) => Err(broken_off(data)),
            _ => Err(invalid(error)),
        }
    }
}

fn response<'a>(event: &wire::ResponsesEvent<'a>) -> Result<wire::Response<'a>, ProviderError> {
    let raw = event.response.ok_or_else(|| violation(&format!("a {} without response", event.kind)))?;
    serde_json::from_str(raw.get()).map_err(|error| invalid(&error))
}

fn id(raw: &RawValue) -> Result<Option<String>, ProviderError> {
    let item: wire::ResponsesItem<'_> = serde_json::from_str(raw.get()).map_err(|error| invalid(&error))?;
    Ok(item.id.and_then(text))
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok().filter(|text: &String| !text.is_empty())
}
