//! A reply of the model while it is received.

use std::collections::{BTreeMap, BTreeSet};

use protocol::event::TokenUsage;
use serde_json::value::RawValue;

use crate::conversation::{AssistantBlock, ContentBlock, Interrupted, echo_of_interrupted};
use crate::core::call::ToolUse;
use crate::core::conversation::tokens;

/// Maximum number of characters of the model's reason for a request for approval.
const MAX_CLAIM: usize = 600;

#[derive(Debug, Default)]
pub(in crate::core) struct ModelReply {
    pub(super) message_id: String,
    pub(super) model: String,
    closed: BTreeMap<usize, AssistantBlock>,
    open: BTreeMap<usize, String>,
    /// The provider's token count so far; zero if the provider sends it at the end.
    pub(super) told: TokenUsage,
    /// Estimated tokens of the thinking so far.
    thought: u64,
}

impl ModelReply {
    pub(super) fn text_delta(&mut self, index: usize, text: &str) {
        self.open.entry(index).or_default().push_str(text);
    }

    pub(super) fn thinking_delta(&mut self, text: &str) {
        self.thought = self.thought.saturating_add(tokens(text));
    }

    pub(super) fn close(&mut self, index: usize, block: AssistantBlock) {
        self.open.remove(&index);
        self.closed.insert(index, block);
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.message_id.is_empty() || !self.closed.is_empty() || !self.open.is_empty()
    }

    /// Returns the visible text, including blocks that are not complete.
    pub(in crate::core) fn text(&self) -> String {
        let closed = self.closed.iter().filter_map(|(index, block)| match &block.content {
            ContentBlock::Text { text } => Some((*index, text)),
            _ => None,
        });
        let mut parts: BTreeMap<usize, &String> = closed.collect();
        parts.extend(self.open.iter().map(|(index, text)| (*index, text)));
        parts.into_values().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join("\n\n")
    }

    /// True if two tool calls of the reply have the same id, so that their results could not be told apart.
    pub(super) fn has_twin_calls(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.closed.values().any(|block| match &block.content {
            ContentBlock::ToolUse { id, .. } => !seen.insert(id),
            _ => false,
        })
    }

    /// Returns the blocks of an incomplete reply that later requests contain.
    pub(super) fn interrupted(&self) -> Vec<Box<RawValue>> {
        let closed = self.closed.iter().map(|(index, block)| (*index, Interrupted::Closed(block)));
        let mut blocks: BTreeMap<_, _> = closed.collect();
        blocks.extend(self.open.iter().map(|(index, text)| (*index, Interrupted::Open(text))));
        echo_of_interrupted(&blocks.into_values().collect::<Vec<_>>())
    }

    /// Returns the estimated tokens of the reply so far.
    pub(super) fn tokens(&self) -> u64 {
        let closed =
            self.closed.values().filter(|block| !matches!(block.content, ContentBlock::Thinking { .. }));
        let closed = closed.map(|block| tokens(block.raw.get()));
        let open = self.open.values().map(|text| tokens(text));
        closed.chain(open).fold(self.thought, u64::saturating_add)
    }

    pub(super) fn call_names(&self) -> Vec<String> {
        let name = |block: &AssistantBlock| match &block.content {
            ContentBlock::ToolUse { name, .. } => Some(name.clone()),
            _ => None,
        };
        self.closed.values().filter_map(name).collect()
    }

    /// Returns the blocks for later requests, and the tool calls. Leaves empty text out, because the API rejects it.
    pub(super) fn complete(&self) -> (Vec<Box<RawValue>>, Vec<ToolUse>) {
        let (mut echo, mut calls) = (Vec::new(), Vec::new());
        let mut said = None;
        for block in self.closed.values() {
            match &block.content {
                ContentBlock::Text { text } if text.is_empty() => continue,
                ContentBlock::ToolUse { id, name, input } => {
                    let (id, name, input) = (id.clone(), name.clone(), input.clone());
                    let echoed = arguments(&block.raw);
                    calls.push(ToolUse { id, name, input, echoed, said: said.clone() });
                }
                ContentBlock::Text { text } => said = claim(text),
                _ => {}
            }
            echo.push(block.raw.clone());
        }
        (echo, calls)
    }

    /// Returns the blocks that later requests contain after a reply was cut at its limit: those up to the last text
    /// before the first tool call. Calls that never ran have no result, and a message must not end with thinking.
    pub(super) fn cut(&self) -> Vec<Box<RawValue>> {
        let mut kept: Vec<_> = self
            .closed
            .values()
            .take_while(|block| !matches!(block.content, ContentBlock::ToolUse { .. }))
            .filter(|block| !matches!(&block.content, ContentBlock::Text { text } if text.is_empty()))
            .collect();
        let text = |block: &&AssistantBlock| matches!(block.content, ContentBlock::Text { .. });
        kept.truncate(kept.iter().rposition(text).map_or(0, |last| last + 1));
        kept.into_iter().map(|block| block.raw.clone()).collect()
    }
}

/// Returns the model's text as its reason for a request for approval, shortened; `None` for an empty text.
fn claim(text: &str) -> Option<String> {
    let text = text.trim();
    let mut bounded: String = text.chars().take(MAX_CLAIM).collect();
    if bounded.len() < text.len() {
        bounded.push('…');
    }
    (!bounded.is_empty()).then_some(bounded)
}

/// Returns the `input` of a block in the form for later requests.
fn arguments(block: &RawValue) -> Box<RawValue> {
    #[derive(serde::Deserialize)]
    struct ReplyBlock<'a> {
        #[serde(borrow)]
        input: &'a RawValue,
    }
    serde_json::from_str::<ReplyBlock<'_>>(block.get())
        .map(|block| block.input.to_owned())
        .unwrap_or_default()
}
