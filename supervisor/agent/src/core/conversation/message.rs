//! The next message of the user: words, pictures and context.

use ipc::image::Image;

use super::history::{in_block, of_image};
use super::window::tokens;
use crate::core::ContextItem;

/// Source of a context item that describes the agent's directory and access.
pub(super) const ENVIRONMENT: &str = "environment";

/// Source of a context item about changed access.
pub(super) const RIGHTS: &str = "rights";

/// Source of other context items from Bailiwick.
pub(super) const OURS: &str = "bailiwick";

#[derive(Debug)]
pub(in crate::core) struct UserSaid {
    pub(in crate::core) text: String,
    pub(in crate::core) images: Vec<Image>,
}

impl UserSaid {
    pub(in crate::core) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.images.is_empty()
    }

    /// Returns the estimated tokens of the message's blocks.
    pub(super) fn tokens(&self) -> u64 {
        self.images.iter().map(of_image).map(in_block).fold(in_block(tokens(&self.text)), u64::saturating_add)
    }
}

/// Parts of the user's next message: context, then words that the user typed while the agent was busy.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    context: Vec<ContextItem>,
    words: Vec<UserSaid>,
}

impl Unsaid {
    pub(super) fn add(&mut self, item: ContextItem) {
        self.context.push(item);
    }

    pub(super) fn add_first(&mut self, item: ContextItem) {
        self.context.insert(0, item);
    }

    pub(super) fn add_words(&mut self, said: UserSaid) {
        self.words.push(said);
    }

    pub(super) const fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    pub(super) fn take_context(&mut self) -> Vec<ContextItem> {
        std::mem::take(&mut self.context)
    }

    pub(super) fn take_words(&mut self) -> Vec<UserSaid> {
        std::mem::take(&mut self.words)
    }

    pub(super) fn retain_context(&mut self, is_kept: impl Fn(&ContextItem) -> bool) {
        self.context.retain(is_kept);
    }

    pub(super) fn tokens(&self) -> u64 {
        let context: u64 = self.context.iter().map(|item| in_block(tokens(&item.text))).sum();
        context.saturating_add(self.words_tokens())
    }

    pub(super) fn words_tokens(&self) -> u64 {
        self.words.iter().map(UserSaid::tokens).fold(0, u64::saturating_add)
    }
}
