//! Decodes a reply of the chat completions API, one SSE event at a time.

use protocol::event::TokenUsage;
use serde_json::json;
use serde_json::value::RawValue;

use super::calls::{ChatCalls, End};
use super::open_text::{OpenText, TextKind};
use super::reasoning::Details;
use super::usage;
use super::wire::{CallDelta, ChatDelta, ChatDeltaPart, Choice, Chunk, string};
use crate::provider::broken_off::broken_off;
use crate::provider::decode::{
    Decode, Envelope, Events, ReplyPhase, in_messages_words, invalid, truncated, violation,
};
use crate::provider::text::{Joined, Piece};
use crate::provider::{ProviderError, StopReason, StreamEvent};

/// Maximum depth of lists of parts. Mistral's reasoning is a list within a list.
const DEEPEST_PART: usize = 2;

/// A decoder for one reply.
///
/// A reply with a finish reason is complete at `[DONE]` or at the end of the body. Claude behind Snowflake sends no
/// finish reason; there, `[DONE]` after content completes the reply.
pub struct Decoder {
    phase: ReplyPhase,
    open: Option<OpenText>,
    calls: ChatCalls,
    details: Option<Details>,
    refusal: Joined,
    finish_reason: Option<String>,
    next_block: usize,
    usage: TokenUsage,
    envelope: Envelope,
    progress: u64,
    /// True if the debug output has already mentioned that the server sends several choices.
    told_of_others: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    pub fn new() -> Self {
        Self::after(0)
    }

    /// Returns a decoder. The number of earlier tool calls in the conversation makes generated ids unique.
    pub fn after(earlier_calls: usize) -> Self {
        Self {
            phase: ReplyPhase::Waiting,
            open: None,
            calls: ChatCalls::after(earlier_calls),
            details: None,
            refusal: Joined::default(),
            finish_reason: None,
            next_block: 0,
            usage: TokenUsage::default(),
            envelope: Envelope { role: "assistant".to_owned(), ..Envelope::default() },
            progress: 0,
            told_of_others: false,
        }
    }
}

impl Decode for Decoder {
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
        let data = data.trim();
        if self.is_complete() || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.done(events);
        }
        match serde_json::from_str::<Chunk<'_>>(data) {
            Ok(chunk) => self.chunk(data, chunk, events),
            Err(error) => {
                let is_cut = error.is_eof() || "[DONE]".starts_with(data);
                match self.finish_reason {
                    // Nothing important follows the finish reason.
                    Some(_) if is_cut => Ok(()),
                    None if is_cut => Err(truncated("the reply has an event that is cut short")),
                    _ => Err(invalid(&error)),
                }
            }
        }
    }

    fn finish(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        match self.phase {
            ReplyPhase::Started if self.finish_reason.is_some() => self.complete(events),
            phase => phase.at_end(),
        }
    }

    fn push_whole(&mut self, json: &str, events: &mut Events) -> Result<(), ProviderError> {
        let json = json.trim().trim_start_matches('\u{feff}');
        self.push(json, events)?;
        if self.phase == ReplyPhase::Waiting {
            return Err(violation("a JSON reply without choices instead of a stream"));
        }
        self.complete(events)
    }
}

impl Decoder {
    fn chunk(&mut self, data: &str, chunk: Chunk<'_>, events: &mut Events) -> Result<(), ProviderError> {
        let nothing_else = chunk.choices.is_none() && chunk.usage.is_none();
        let is_error = chunk.error.is_some_and(|error| !matches!(error.get(), "{}" | "\"\"" | "false"))
            || nothing_else && (chunk.message.is_some() || chunk.detail.is_some());
        if is_error {
            return Err(broken_off(data));
        }
        self.name(&chunk);
        let told = chunk.usage().and_then(usage::parse);
        if let Some(usage) = told {
            self.usage = usage;
            self.envelope.usage = in_messages_words(usage);
        }
        for choice in chunk.choices.into_iter().flatten() {
            self.choice(&choice, events)?;
        }
        if let Some(usage) = told.filter(|_| self.phase == ReplyPhase::Started) {
            events.push_back(StreamEvent::UsageTold { usage });
        }
        Ok(())
    }

    /// Records the first id and the first model of the chunks: some servers send these late, or change them.
    fn name(&mut self, chunk: &Chunk<'_>) {
        if self.envelope.id.is_empty() {
            self.envelope.id = string(chunk.id).unwrap_or_default();
        }
        if self.envelope.model.is_empty() {
            self.envelope.model = string(chunk.model).unwrap_or_default();
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, events: &mut Events) -> Result<(), ProviderError> {
        if choice.index.is_some_and(|index| index != 0) {
            if !std::mem::replace(&mut self.told_of_others, true) {
                tracing::debug!("more than one reply came; the first holds");
            }
            return Ok(());
        }
        if self.phase == ReplyPhase::Waiting {
            self.phase = ReplyPhase::Started;
            let (message_id, model) = (self.envelope.id.clone(), self.envelope.model.clone());
            events.push_back(StreamEvent::MessageStarted { message_id, model });
        }
        if let Some(delta) = choice.delta.as_ref().or(choice.message.as_ref()) {
            self.delta(delta, events)?;
        }
        self.finish_reason = string(choice.finish_reason).or_else(|| self.finish_reason.take());
        Ok(())
    }

    fn delta(&mut self, delta: &ChatDelta<'_>, events: &mut Events) -> Result<(), ProviderError> {
        self.reasoning(delta, events)?;
        if let Some(content) = delta.content {
            self.content(content, DEEPEST_PART, TextKind::Said, events)?;
        }
        if let Some(Ok(piece)) = delta.refusal.map(|raw| serde_json::from_str::<Piece<'_>>(raw.get())) {
            self.progress += u64::from(!piece.is_empty());
            self.refusal.push(&piece);
        }
        for call in delta.tool_calls.iter().flatten() {
            self.call(call, events)?;
        }
        if let Some(function) = &delta.function_call {
            // A reply has only one call in this older field.
            let call = CallDelta { index: Some(0), function: Some(*function), ..CallDelta::default() };
            self.call(&call, events)?;
        }
        Ok(())
    }

    /// Handles the reasoning in a delta. If several fields have reasoning, the user sees only that of the first.
    fn reasoning(&mut self, delta: &ChatDelta<'_>, events: &mut Events) -> Result<(), ProviderError> {
        let members = [("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning)];
        let plain = members
            .into_iter()
            .find_map(|(field, raw)| Some((field, raw.filter(|raw| raw.get() != "\"\"")?)));
        if let Some((field, raw)) = plain {
            self.content(raw, 1, TextKind::Reasoning(Some(field)), events)?;
        }
        for text in self.details(delta.reasoning_details)? {
            if plain.is_none() {
                self.text(&Piece::from(text.as_str()), TextKind::Reasoning(None), events)?;
            }
        }
        Ok(())
    }

    /// Handles `reasoning_details` in a delta. Returns their texts, which the user sees.
    fn details(&mut self, items: Option<&RawValue>) -> Result<Vec<String>, ProviderError> {
        let Some(items) = items.filter(|items| items.get().starts_with('[')) else { return Ok(Vec::new()) };
        let items: Vec<&RawValue> = serde_json::from_str(items.get()).map_err(|error| invalid(&error))?;
        if items.is_empty() {
            return Ok(Vec::new());
        }
        self.progress += 1;
        let details = self.details.get_or_insert_with(|| {
            self.next_block += 1;
            Details::new(self.next_block - 1)
        });
        details.push(&items).map_err(|error| invalid(&error))
    }

    /// Handles the content of a delta: a string, or a list of parts.
    fn content(
        &mut self,
        raw: &RawValue,
        depth: usize,
        kind: TextKind,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        if !raw.get().starts_with('[') {
            return match serde_json::from_str::<Piece<'_>>(raw.get()) {
                Ok(piece) => self.text(&piece, kind, events),
                Err(_) => Ok(()),
            };
        }
        let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|error| invalid(&error))?;
        let parts =
            parts.into_iter().filter_map(|part| serde_json::from_str::<ChatDeltaPart<'_>>(part.get()).ok());
        for part in parts {
            if let Some(text) = part.text {
                self.content(text, 0, kind, events)?;
            }
            if let (Some(thinking), Some(depth)) = (part.thinking, depth.checked_sub(1)) {
                self.content(thinking, depth, TextKind::Reasoning(None), events)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, piece: &Piece<'_>, kind: TextKind, events: &mut Events) -> Result<(), ProviderError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.progress += 1;
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.close_open(events)?;
            self.open = Some(OpenText::new(self.next_block, kind));
            self.next_block += 1;
        }
        if let Some(open) = &mut self.open {
            open.push(piece, events);
        }
        Ok(())
    }

    fn call(&mut self, delta: &CallDelta<'_>, events: &mut Events) -> Result<(), ProviderError> {
        self.progress += 1;
        self.close_open(events)?;
        self.calls.push(delta, &mut self.next_block, events)
    }

    fn close_open(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        match self.open.take() {
            Some(open) => open.close(events).map_err(|error| invalid(&error)),
            None => Ok(()),
        }
    }

    fn done(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        let has_content = self.next_block > 0 || !self.refusal.as_str().is_empty();
        if self.phase == ReplyPhase::Started && (self.finish_reason.is_some() || has_content) {
            return self.complete(events);
        }
        Err(truncated("the reply ended without content and without a finish reason"))
    }

    fn complete(&mut self, events: &mut Events) -> Result<(), ProviderError> {
        self.refusal.finish();
        self.close_open(events)?;
        if let Some(details) = self.details.take() {
            let index = details.block;
            let block = details.close().map_err(|error| invalid(&error))?;
            events.push_back(StreamEvent::BlockClosed { index, block });
        }
        let stop_reason = self.stop_reason()?;
        let is_whole =
            matches!(stop_reason, StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_));
        self.calls.close(if is_whole { End::Whole } else { End::CutOff }, events)?;
        self.phase = ReplyPhase::Complete;
        self.envelope.stop_reason = Some(stop_reason.as_str().to_owned());
        if let StopReason::Refusal(Some(explanation)) = &stop_reason {
            self.envelope.stop_details = Some(json!({"type": "refusal", "explanation": explanation}));
        }
        events.push_back(StreamEvent::MessageCompleted { stop_reason, usage: self.usage });
        Ok(())
    }

    /// Returns the stop reason. For a reply with calls it is tool use, whatever the server says, unless the reply was
    /// cut off or refused.
    fn stop_reason(&self) -> Result<StopReason, ProviderError> {
        let refusal = self.refusal.as_str();
        Ok(match self.finish_reason.as_deref().unwrap_or("stop") {
            "length" | "model_length" | "max_tokens" => StopReason::MaxTokens,
            "content_filter" if refusal.is_empty() => {
                StopReason::Refusal(Some("the provider's content filter stopped the reply".to_owned()))
            }
            "error" | "abort" => {
                let message = "the API broke off its reply without saying why";
                return Err(ProviderError::new("api_error", message).retryable());
            }
            "insufficient_system_resource" => {
                let message = "the API broke off its reply: it is overloaded";
                return Err(ProviderError::new("overloaded_error", message).retryable());
            }
            _ if !refusal.is_empty() => StopReason::Refusal(Some(refusal.to_owned())),
            "stop" | "tool_calls" | "function_call" | "tool_use" | "end_turn" | "eos" | "eos_token" => {
                if self.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse }
            }
            other => StopReason::Other(other.to_owned()),
        })
    }
}
