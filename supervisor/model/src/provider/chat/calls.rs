//! The tool calls of a reply that is being received.
//!
//! A delta belongs to the call with its `index`. Some servers send no index, or the same index for all calls; then the
//! id distinguishes calls, or a name begins a new call. Ids may be missing, or null after the first delta.

use std::borrow::Cow;

use ipc::id::ToolUseId;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::wire::{CallDelta, Function, string};
use crate::provider::arguments::{self, one_line};
use crate::provider::decode::{Events, violation};
use crate::provider::text::{Joined, Piece};
use crate::provider::{AssistantBlock, ContentBlock, ProviderError, StreamEvent, tool_name};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    CutOff,
}

/// Maximum number of calls in a reply. Each delta searches for its call, so that many calls would take quadratic time.
const MAX_CALLS: usize = 1024;

pub(super) struct ChatCalls {
    calls: Vec<Call>,
    /// Number of the first generated id: that of the earlier calls in the conversation.
    first: usize,
}

struct Call {
    block: usize,
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    arguments: Joined,
    extra_content: Option<Box<RawValue>>,
}

impl ChatCalls {
    /// Returns an empty list for the calls of a reply. The conversation before the reply has `earlier` calls.
    pub(super) const fn after(earlier: usize) -> Self {
        Self { calls: Vec::new(), first: earlier }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds the delta of a call. The block of a new call gets the index `next_block`, and `next_block` is incremented.
    pub(super) fn push(
        &mut self,
        delta: &CallDelta<'_>,
        next_block: &mut usize,
        events: &mut Events,
    ) -> Result<(), ProviderError> {
        let function = delta.function.as_ref();
        let name = function.and_then(|function| string(function.name));
        let name = name.and_then(|name| tool_name::harmless(&name).map(Cow::into_owned));
        let id = string(delta.id);
        let position = self.position(delta.index, id.as_deref(), name.is_some()).unwrap_or_else(|| {
            self.calls.push(Call::new(*next_block, delta.index));
            *next_block += 1;
            self.calls.len() - 1
        });
        if position >= MAX_CALLS {
            return Err(violation(&format!("more than {MAX_CALLS} tool calls in one reply")));
        }
        let made_up = format!("call_bw_{}", self.first.saturating_add(position));
        let call = &mut self.calls[position];
        call.id = call.id.take().or(id);
        if let Some(extra) = delta.extra_content {
            call.extra_content = Some(extra.to_owned());
        }
        if let (None, Some(name)) = (&call.name, name) {
            let id = call.id.get_or_insert(made_up).clone();
            call.name = Some(name.clone());
            events.push_back(StreamEvent::ToolUseStarted { index: call.block, id: ToolUseId(id), name });
        }
        if let Some(function) = function {
            call.add_arguments(function);
        }
        Ok(())
    }

    /// Returns the position of the call that a delta continues; `None` if the delta begins a new one.
    fn position(&self, index: Option<u64>, id: Option<&str>, is_named: bool) -> Option<usize> {
        let last = |fits: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(fits);
        match (index, id) {
            (Some(_), Some(id)) => {
                last(&|call| call.index == index && call.id.as_deref().is_none_or(|other| other == id))
            }
            (Some(_), None) => last(&|call| call.index == index),
            (None, Some(id)) => last(&|call| call.id.as_deref() == Some(id)),
            (None, None) if is_named => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }

    pub(super) fn close(&mut self, end: End, events: &mut Events) -> Result<(), ProviderError> {
        for call in std::mem::take(&mut self.calls) {
            let index = call.block;
            let block = call.close(end)?;
            events.push_back(StreamEvent::BlockClosed { index, block });
        }
        Ok(())
    }
}

impl Call {
    fn new(block: usize, index: Option<u64>) -> Self {
        Self { block, index, id: None, name: None, arguments: Joined::default(), extra_content: None }
    }

    fn add_arguments(&mut self, function: &Function<'_>) {
        let Some(raw) = function.arguments else { return };
        // A value that is not a string is the object of the arguments itself.
        let piece = serde_json::from_str(raw.get()).unwrap_or_else(|_| Piece::from(raw.get()));
        self.arguments.push(&piece);
    }

    /// Returns the block of the call. If the reply was cut off, empty arguments count as invalid.
    fn close(mut self, end: End) -> Result<AssistantBlock, ProviderError> {
        let (Some(id), Some(name)) = (self.id, self.name) else {
            return Err(violation("a tool call without a name"));
        };
        self.arguments.finish();
        let text = self.arguments.as_str();
        let input = match (text.trim(), end) {
            ("", End::Whole) => Ok("{}".to_owned()),
            ("", End::CutOff) => Err("the reply ended before the arguments began".to_owned()),
            (text, _) => arguments::object(text),
        };
        let raw = raw_block(&id, &name, &input, text, self.extra_content.as_deref())
            .map_err(|error| violation(&format!("a tool call that cannot be saved ({error})")))?;
        let content = ContentBlock::ToolUse { id: ToolUseId(id), name, input };
        Ok(AssistantBlock { content, raw })
    }
}

/// Returns the block for later requests. Invalid arguments become an object that contains them as text, since some
/// servers parse the arguments again.
fn raw_block(
    id: &str,
    name: &str,
    input: &Result<String, String>,
    text: &str,
    extra_content: Option<&RawValue>,
) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Serialize)]
    struct ChatCallBlock<'a> {
        r#type: &'static str,
        id: &'a str,
        name: &'a str,
        input: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra_content: Option<Box<RawValue>>,
    }
    let kept = match input {
        Ok(object) => object.clone(),
        Err(_) => arguments::invalid(text)?,
    };
    let is_exact = input.is_err() || text.trim().is_empty() || *text == kept;
    let extra_content =
        extra_content.map(|extra| RawValue::from_string(one_line(extra.get()))).transpose()?;
    to_raw_value(&ChatCallBlock {
        r#type: "tool_use",
        id,
        name,
        input: RawValue::from_string(kept)?,
        arguments: (!is_exact).then_some(text),
        extra_content,
    })
}
