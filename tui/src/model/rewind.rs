//! The messages that the session can be taken back to, and the consequences of that.

use ipc::id::EventId;
use ipc::path::WirePath;
use protocol::event::{RewindPreview, RewindScope, RewindTarget};

use super::Block;
use crate::card::CardPage;

/// A message of the user's to the first agent.
#[derive(Debug)]
pub(crate) struct SaidBefore {
    pub id: EventId,
    pub text: String,
    pub block: usize,
    /// The number of the first change of a file after it.
    pub change: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Rewind {
    /// The messages that the conversation has.
    pub said: Vec<SaidBefore>,
    pub chosen: usize,
    /// The files that it is about, where it is not about all.
    pub only: Vec<WirePath>,
    pub asked: Option<RewindTarget>,
    pub preview: Option<RewindPreview>,
    /// The preview, laid out.
    pub sheet: CardPage,
    /// True if the last rewind can be undone: nothing was said after it.
    pub can_undo: bool,
    /// The end of the transcript that the last rewind took back, and its messages.
    taken_back: Option<(Vec<Block>, Vec<SaidBefore>)>,
}

impl Rewind {
    pub(crate) fn target(&self, scope: RewindScope) -> Option<RewindTarget> {
        let said = self.said.get(self.chosen)?;
        Some(RewindTarget { to: Some(said.id), scope })
    }

    /// The place of a message in the transcript, and its text; it and those behind it are no more.
    pub(crate) fn take_back(&mut self, to: EventId) -> Option<(usize, String)> {
        let at = self.said.iter().position(|said| said.id == to)?;
        let gone = self.said.split_off(at);
        let (block, text) = gone.first().map(|said| (said.block, said.text.clone()))?;
        self.taken_back = Some((Vec::new(), gone));
        Some((block, text))
    }

    /// The beginning of the message that a rewind leads to.
    pub(crate) fn beginning(&self, target: RewindTarget) -> Option<&str> {
        let said = self.said.iter().find(|said| Some(said.id) == target.to)?;
        said.text.lines().find(|line| !line.trim().is_empty())
    }

    /// Keeps the blocks of what was taken back.
    pub(crate) fn keep(&mut self, blocks: Vec<Block>) {
        if let Some((kept, _)) = &mut self.taken_back {
            *kept = blocks;
        }
    }

    /// The blocks that were taken back, for a transcript with so many; their messages are there again.
    pub(crate) fn give_back(&mut self, blocks: usize) -> Vec<Block> {
        let Some((kept, said)) = self.taken_back.take() else { return Vec::new() };
        let first = said.first().map_or(0, |said| said.block);
        let moved =
            |said: SaidBefore| SaidBefore { block: blocks + said.block.saturating_sub(first), ..said };
        self.said.extend(said.into_iter().map(moved));
        kept
    }

    /// A rewind of files alone takes no words back: none can be given back.
    pub(crate) fn forget_taken_back(&mut self) {
        self.taken_back = None;
    }

    /// True if the consequences are known of what was asked for last.
    pub(crate) const fn is_known(&self) -> bool {
        self.preview.is_some()
    }
}
