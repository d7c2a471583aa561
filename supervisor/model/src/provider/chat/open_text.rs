use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::provider::decode::Events;
use crate::provider::text::{Joined, Piece};
use crate::provider::{AssistantBlock, ContentBlock, StreamEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Said,
    /// Reasoning, with the name of the field in which it arrived; `None` if later requests leave the reasoning out.
    Reasoning(Option<&'static str>),
}

pub(super) struct OpenText {
    index: usize,
    pub(super) kind: TextKind,
    text: Joined,
}

impl OpenText {
    pub(super) fn new(index: usize, kind: TextKind) -> Self {
        Self { index, kind, text: Joined::default() }
    }

    pub(super) fn push(&mut self, piece: &Piece<'_>, events: &mut Events) {
        let added = self.text.push(piece);
        events.extend(delta(self.index, self.kind, added));
    }

    pub(super) fn close(mut self, events: &mut Events) -> Result<(), serde_json::Error> {
        let added = self.text.finish();
        events.extend(delta(self.index, self.kind, added));
        let (index, text) = (self.index, self.text.into_string());
        let (raw, content) = match self.kind {
            TextKind::Said => {
                (to_raw_value(&OpenTextBlock::Text { text: &text })?, ContentBlock::Text { text })
            }
            TextKind::Reasoning(field) => {
                let raw = to_raw_value(&OpenTextBlock::Thinking { thinking: &text, field })?;
                (raw, ContentBlock::Thinking { thinking: text })
            }
        };
        events.push_back(StreamEvent::BlockClosed { index, block: AssistantBlock { content, raw } });
        Ok(())
    }
}

fn delta(index: usize, kind: TextKind, added: &str) -> Option<StreamEvent> {
    let text = added.to_owned();
    match kind {
        _ if added.is_empty() => None,
        TextKind::Said => Some(StreamEvent::TextDelta { index, text }),
        TextKind::Reasoning(_) => Some(StreamEvent::ThinkingDelta { index, text }),
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OpenTextBlock<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        field: Option<&'static str>,
    },
}
