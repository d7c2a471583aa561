//! Removes the part of a message that the provider rejects.
//!
//! The provider does not say which block it rejects. If the message has pictures or thinking, only these are removed,
//! otherwise all its content. A note says that something was removed.

use std::sync::Arc;

use ipc::id::ToolUseId;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::conversation::{Message, UserBlock, calls_of, plain_block};

/// Text in the place of removed content.
const LEFT_OUT: &str = "(left out: the provider does not accept it in a request)";

#[derive(Serialize)]
struct LeftOutText {
    r#type: &'static str,
    text: &'static str,
}

/// Removes content of the message at `index`. Returns false if there is nothing to remove.
pub(super) fn of(messages: &mut [Arc<Message>], index: u32) -> bool {
    let Some(at) = usize::try_from(index).ok().filter(|at| *at < messages.len()) else { return false };
    match Arc::make_mut(&mut messages[at]) {
        Message::User(blocks) => without_pictures(blocks) || without_words(blocks),
        Message::Assistant(blocks) => {
            if without_thinking(blocks) {
                return true;
            }
            let calls = calls_of(blocks);
            let is_changed = without_anything(blocks);
            if let Some(next) = messages.get_mut(at + 1).filter(|_| is_changed && !calls.is_empty()) {
                told_in_words(Arc::make_mut(next), &calls);
            }
            is_changed
        }
    }
}

fn without_pictures(blocks: &mut [UserBlock]) -> bool {
    let mut is_changed = false;
    for block in blocks {
        match block {
            UserBlock::Image(image) => {
                *block = UserBlock::Text(format!("{image} {LEFT_OUT}"));
                is_changed = true;
            }
            UserBlock::ToolResult { content, images, .. } if !images.is_empty() => {
                *content = format!("{content}\n{LEFT_OUT}");
                images.clear();
                is_changed = true;
            }
            UserBlock::ToolResult { .. } | UserBlock::Text(_) => {}
        }
    }
    is_changed
}

fn without_words(blocks: &mut [UserBlock]) -> bool {
    let mut is_changed = false;
    for block in blocks {
        match block {
            UserBlock::Text(said) | UserBlock::ToolResult { content: said, .. } if said != LEFT_OUT => {
                LEFT_OUT.clone_into(said);
                is_changed = true;
            }
            UserBlock::Text(_) | UserBlock::ToolResult { .. } | UserBlock::Image(_) => {}
        }
    }
    is_changed
}

/// Keeps only the blocks that every provider accepts. Returns true if the message changed.
fn without_thinking(blocks: &mut Vec<Box<RawValue>>) -> bool {
    let plain: Vec<_> = blocks.iter().filter_map(|block| plain_block(block)).collect();
    let is_changed = !plain.is_empty()
        && (plain.len() != blocks.len()
            || plain.iter().zip(&*blocks).any(|(plain, block)| plain.get() != block.get()));
    if is_changed {
        *blocks = plain;
    }
    is_changed
}

fn without_anything(blocks: &mut Vec<Box<RawValue>>) -> bool {
    let Ok(text) = to_raw_value(&LeftOutText { r#type: "text", text: LEFT_OUT }) else { return false };
    let is_changed = blocks.len() != 1 || blocks[0].get() != text.get();
    *blocks = vec![text];
    is_changed
}

/// Replaces the results of removed tool calls by text.
fn told_in_words(message: &mut Message, calls: &[ToolUseId]) {
    let Message::User(blocks) = message else { return };
    for block in blocks {
        if let UserBlock::ToolResult { tool_use, content, .. } = block
            && calls.contains(tool_use)
        {
            *block = UserBlock::Text(format!("A call of yours was left out. Its result:\n{content}"));
        }
    }
}
