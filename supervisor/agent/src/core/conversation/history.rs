//! The conversation as the model receives it, and its length. Messages are only appended; those of one role are joined.

use std::sync::Arc;

use ipc::image::Image;
use protocol::event::{LeftOut, TokenUsage};
use serde_json::value::RawValue;

use super::images::Images;
use super::left_out;
use super::record::{RecordEntry, entries};
use super::window::tokens;
use crate::conversation::{Message, UserBlock, plain_block};

/// Estimated tokens of a block besides its content.
const BLOCK: u64 = 8;

/// Pixels that count as one token of a picture.
const PIXELS: u64 = 750;

/// Maximum tokens of a picture.
const MAX_IMAGE: u64 = 5_000;

#[derive(Clone, Debug)]
pub(in crate::core) struct History {
    messages: Vec<Arc<Message>>,
    images: Images,
    size: Size,
    /// Number of blocks at the beginning that are from Bailiwick: surroundings, instructions, a summary.
    opening: usize,
    summarised: bool,
    /// Tokens of the first prompt in the context; 0 until the model has replied to it.
    began_with: u64,
    replies: u32,
    /// Message and first block of an interrupted reply; `None` if there is none, or a provider has accepted it.
    interrupted: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    /// Tokens by the provider's last count; an estimate before the first one.
    known: u64,
    /// Estimated tokens of everything that was added after the provider's last count.
    added: u64,
}

impl History {
    /// Returns an empty history. `fixed` is the number of tokens before the messages: system prompt and tools.
    pub(in crate::core) fn new(fixed: u64, sees_images: bool) -> Self {
        Self {
            messages: Vec::new(),
            images: Images::seen(sees_images),
            size: Size { known: fixed, added: 0 },
            opening: 0,
            summarised: false,
            began_with: 0,
            replies: 0,
            interrupted: None,
        }
    }

    /// Returns a history that begins with a summary. `sees_images` must be the same as in the history that it replaces.
    pub(super) fn summarised(fixed: u64, sees_images: bool, first_message: Vec<String>) -> Self {
        let opening = first_message.len();
        let mut history = Self { summarised: true, opening, ..Self::new(fixed, sees_images) };
        history.push_user(first_message.into_iter().map(UserBlock::Text).collect());
        history
    }

    pub(super) fn messages(&self) -> Vec<Arc<Message>> {
        self.messages.clone()
    }

    /// Returns the pictures that fit within the limits, and for each other picture the reason why it does not fit.
    pub(super) fn admit(&mut self, images: Vec<Image>) -> (Vec<Image>, Vec<String>) {
        let (mut admitted, mut left_out) = (Vec::new(), Vec::new());
        for image in images {
            match self.images.admit(&image) {
                Ok(()) => admitted.push(image),
                Err(full) => left_out.push(format!("{image} was left out: {full}")),
            }
        }
        (admitted, left_out)
    }

    /// Adds the blocks from Bailiwick at the beginning. Must be called before anything else is added.
    pub(super) fn open(&mut self, opening: Vec<UserBlock>) {
        self.opening = opening.len();
        self.push_user(opening);
    }

    /// Returns the conversation as text entries, without the blocks from Bailiwick at the beginning.
    pub(super) fn said(&self) -> Vec<RecordEntry> {
        let mut entries = entries(&self.messages);
        entries.drain(..self.opening.min(entries.len()));
        entries
    }

    /// Returns the estimated tokens of the conversation, without the blocks from Bailiwick at the beginning.
    pub(super) fn said_tokens(&self) -> u64 {
        self.estimates().skip(self.opening).fold(0, u64::saturating_add)
    }

    fn estimates(&self) -> impl Iterator<Item = u64> {
        self.messages.iter().flat_map(|message| match &**message {
            Message::User(blocks) => blocks.iter().map(of_block).collect::<Vec<_>>(),
            Message::Assistant(blocks) => blocks.iter().map(|block| in_block(tokens(block.get()))).collect(),
        })
    }

    /// Estimates the length of the messages again; before them are `fixed` tokens. After a rewind, replies may follow
    /// messages that were not in their prompts, so that the provider's count is too low.
    pub(super) fn count_again(&mut self, fixed: u64) {
        let estimate = self.estimates().fold(fixed, u64::saturating_add);
        self.size = Size { known: self.tokens().max(estimate), added: 0 };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the estimated tokens of a prompt with all messages.
    pub(in crate::core) const fn tokens(&self) -> u64 {
        self.size.known.saturating_add(self.size.added)
    }

    pub(super) fn has_replies(&self) -> bool {
        self.messages.iter().any(|message| matches!(**message, Message::Assistant(_)))
    }

    /// True if the context began with a summary, and with more tokens than `limit`: another summary would not help.
    pub(super) const fn began_too_long(&self, limit: u64) -> bool {
        self.summarised && self.replies <= 1 && self.began_with > limit
    }

    /// Appends blocks of the user. Joins neighbouring messages of one role, as the API does, to keep the cached prefix.
    pub(in crate::core) fn push_user(&mut self, blocks: Vec<UserBlock>) {
        self.add(blocks.iter().map(of_block).sum());
        match self.messages.last_mut().map(Arc::make_mut) {
            _ if blocks.is_empty() => {}
            Some(Message::User(last)) => last.extend(blocks),
            _ => self.messages.push(Arc::new(Message::User(blocks))),
        }
    }

    /// Appends a reply of the model, and takes over the provider's count of tokens if there is one.
    pub(in crate::core) fn push_assistant(&mut self, blocks: Vec<Box<RawValue>>, usage: TokenUsage) {
        // The model has replied, so that the provider has accepted the interrupted reply.
        self.interrupted = None;
        self.replies = self.replies.saturating_add(1);
        if self.replies == 1 {
            self.began_with = usage.prompt().max(self.tokens());
        }
        if usage.prompt() == 0 {
            self.add(blocks.iter().map(|block| in_block(tokens(block.get()))).sum());
        } else {
            self.size = Size { known: usage.total(), added: 0 };
        }
        self.append_reply(blocks);
    }

    pub(super) fn push_interrupted(&mut self, blocks: Vec<Box<RawValue>>) {
        if blocks.is_empty() {
            return;
        }
        let place = match self.messages.last().map(|last| &**last) {
            Some(Message::Assistant(last)) => (self.messages.len() - 1, last.len()),
            _ => (self.messages.len(), 0),
        };
        self.push_assistant(blocks, TokenUsage::default());
        self.interrupted = Some(place);
    }

    /// Removes the interrupted reply after the provider has rejected it. Returns false if there is no such reply.
    pub(super) fn drop_interrupted(&mut self) -> bool {
        let Some((message, block)) = self.interrupted.take() else { return false };
        let Some(Message::Assistant(blocks)) = self.messages.get_mut(message).map(Arc::make_mut) else {
            return false;
        };
        blocks.truncate(block);
        if !blocks.is_empty() {
            return true;
        }
        self.messages.remove(message);
        // Adjacent messages of one role are joined.
        if let Some(Message::User(said)) = self.messages.get(message).map(|next| (**next).clone())
            && let Some(Message::User(before)) =
                message.checked_sub(1).and_then(|before| self.messages.get_mut(before)).map(Arc::make_mut)
        {
            before.extend(said);
            self.messages.remove(message);
        }
        true
    }

    /// Removes a part that the provider rejects. Returns false if the history does not have this part.
    pub(super) fn leave_out(&mut self, part: LeftOut, sees_images: bool) -> bool {
        match part {
            LeftOut::Thinking => {
                let plain = self.for_another_model(self.size.known, sees_images);
                let is_less = plain.blocks() < self.blocks();
                if is_less {
                    *self = Self { size: self.size, ..plain };
                }
                is_less
            }
            LeftOut::Message(index) => left_out::of(&mut self.messages, index),
        }
    }

    fn blocks(&self) -> usize {
        let of = |message: &Arc<Message>| match &**message {
            Message::User(_) => 0,
            Message::Assistant(blocks) => blocks.len(),
        };
        self.messages.iter().map(of).sum()
    }

    /// Returns the conversation for another model: no thinking, signatures, or blocks of a provider's own tools. Text
    /// replaces pictures for a model that sees none.
    pub(super) fn for_another_model(&self, fixed: u64, sees_images: bool) -> Self {
        let Self { opening, summarised, began_with, replies, .. } = *self;
        let mut history = Self { opening, summarised, began_with, replies, ..Self::new(fixed, sees_images) };
        for message in &self.messages {
            match &**message {
                Message::User(blocks) => {
                    let blocks = blocks.iter().map(|block| history.admitted(block)).collect();
                    history.push_user(blocks);
                }
                Message::Assistant(blocks) => {
                    let plain: Vec<_> = blocks.iter().filter_map(|block| plain_block(block)).collect();
                    history.add(plain.iter().map(|block| in_block(tokens(block.get()))).sum());
                    history.append_reply(plain);
                }
            }
        }
        history
    }

    /// Returns a block of the user in which text replaces each picture beyond the limits.
    fn admitted(&mut self, block: &UserBlock) -> UserBlock {
        match block {
            UserBlock::Image(image) => match self.images.admit(image) {
                Ok(()) => block.clone(),
                Err(full) => UserBlock::Text(format!("({image} was left out: {full})")),
            },
            UserBlock::ToolResult { tool_use, content, is_error, images } => {
                let (images, _) = self.admit(images.clone());
                let (tool_use, content, is_error) = (tool_use.clone(), content.clone(), *is_error);
                UserBlock::ToolResult { tool_use, content, is_error, images }
            }
            UserBlock::Text(_) => block.clone(),
        }
    }

    fn append_reply(&mut self, blocks: Vec<Box<RawValue>>) {
        match self.messages.last_mut().map(Arc::make_mut) {
            _ if blocks.is_empty() => {}
            Some(Message::Assistant(last)) => last.extend(blocks),
            _ => self.messages.push(Arc::new(Message::Assistant(blocks))),
        }
    }

    const fn add(&mut self, tokens: u64) {
        self.size.added = self.size.added.saturating_add(tokens);
    }
}

fn of_block(block: &UserBlock) -> u64 {
    let content = match block {
        UserBlock::Text(text) => tokens(text),
        UserBlock::Image(image) => of_image(image),
        UserBlock::ToolResult { content, images, .. } => {
            images.iter().map(of_image).fold(tokens(content), u64::saturating_add)
        }
    };
    in_block(content)
}

/// Returns the estimated tokens of a whole block, for `content` tokens of content.
pub(super) const fn in_block(content: u64) -> u64 {
    content.saturating_add(BLOCK)
}

/// Returns the estimated tokens of a picture: one for 750 pixels; the provider scales larger pictures down.
pub(super) fn of_image(image: &Image) -> u64 {
    let (width, height) = image.size();
    (u64::from(width) * u64::from(height)).div_ceil(PIXELS).min(MAX_IMAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<UserBlock> {
        vec![UserBlock::Text(text.to_owned())]
    }

    fn usage(input: u64, cache_read: u64, output: u64) -> TokenUsage {
        TokenUsage { input, cache_read, output, ..TokenUsage::default() }
    }

    fn reply() -> Vec<Box<RawValue>> {
        vec![RawValue::from_string(r#"{"type":"text","text":"ok"}"#.to_owned()).unwrap()]
    }

    #[test]
    fn what_the_provider_counted_takes_the_place_of_the_estimate() {
        let mut history = History::new(100, true);
        history.push_user(text(&"x".repeat(300)));
        assert_eq!(history.tokens(), 100 + 100 + BLOCK);
        history.push_assistant(reply(), usage(10, 140, 7));
        assert_eq!(history.tokens(), 157);
        history.push_user(text("yes"));
        assert_eq!(history.tokens(), 157 + 1 + BLOCK);
    }

    #[test]
    fn a_prompt_that_the_server_shortened_counts_as_it_did() {
        let mut history = History::new(100, true);
        history.push_user(text("x"));
        history.push_assistant(reply(), usage(90_000, 0, 100));
        history.push_assistant(reply(), usage(2_000, 0, 100));
        assert_eq!(history.tokens(), 2_100);
    }

    #[test]
    fn a_provider_that_counts_nothing_is_estimated() {
        let mut history = History::new(100, true);
        history.push_user(text("x"));
        let before = history.tokens();
        history.push_assistant(reply(), usage(0, 0, 3));
        assert!(history.tokens() > before, "{history:?}");
    }

    #[test]
    fn an_interrupted_reply_can_be_taken_out_until_another_one_follows() {
        let mut history = History::new(100, true);
        history.push_user(text("a"));
        history.push_interrupted(reply());
        history.push_user(text("b"));
        assert!(history.drop_interrupted() && !history.drop_interrupted());
        let [message] = &history.messages()[..] else { panic!("one message: {history:?}") };
        assert!(matches!(&**message, Message::User(blocks) if blocks.len() == 2));
        // An interrupted reply was joined to another reply, whose blocks stay.
        history.push_assistant(reply(), usage(1, 0, 1));
        history.push_interrupted(reply());
        history.push_user(text("c"));
        assert!(history.drop_interrupted());
        assert!(matches!(&*history.messages()[1], Message::Assistant(blocks) if blocks.len() == 1));
        // A reply after the interrupted one shows that the provider has accepted it.
        history.push_interrupted(reply());
        history.push_user(text("d"));
        history.push_assistant(reply(), usage(1, 0, 1));
        assert!(!history.drop_interrupted());
    }

    #[test]
    fn only_a_summary_can_begin_too_long() {
        let mut history = History::new(100, true);
        history.push_assistant(reply(), usage(5_000, 0, 1));
        assert!(!history.began_too_long(1_000));
        let mut history = History::summarised(100, true, vec!["short".to_owned()]);
        assert!(!history.has_replies() && !history.began_too_long(1_000));
        history.push_assistant(reply(), usage(5_000, 0, 1));
        assert!(history.has_replies() && history.began_too_long(1_000));
        history.push_assistant(reply(), usage(5_000, 0, 1));
        assert!(!history.began_too_long(1_000));
    }
}
