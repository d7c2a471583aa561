//! Messages to which the session can be rewound, and the consequences of a rewind.

use ipc::id::EventId;
use ipc::path::WirePath;
use protocol::event::{RewindPreview, RewindScope, RewindTarget};

use super::Block;
use crate::card::CardPage;

#[derive(Debug)]
pub(crate) struct SaidBefore {
    pub id: EventId,
    pub text: String,
    pub time_ms: u64,
    pub branch: Option<String>,
    pub block: usize,
    pub change: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Rewind {
    pub said: Vec<SaidBefore>,
    pub chosen: usize,
    /// Files to which the rewind is limited; empty for all files.
    pub only: Vec<WirePath>,
    pub asked: Option<RewindTarget>,
    pub preview: Option<RewindPreview>,
    /// True if the person allowed all requests of the running turn, even if not at its start.
    pub is_of_turn: bool,
    /// Number of the first change of an allowed turn while the person decides whether to keep its changes; else `None`.
    pub turn: Option<usize>,
    pub before_turn: usize,
    pub sheet: CardPage,
    pub can_undo: bool,
    taken_back: Option<(Vec<Block>, Vec<SaidBefore>)>,
}

impl Rewind {
    pub(crate) fn target(&self, scope: RewindScope) -> Option<RewindTarget> {
        let said = self.said.get(self.chosen)?;
        Some(RewindTarget { to: Some(said.id), scope })
    }

    /// Called at the end of a turn. Returns the first message of the turn; `None` if the turn had none.
    pub(crate) fn end_turn(&mut self) -> Option<&SaidBefore> {
        let first = self.before_turn.min(self.said.len());
        self.before_turn = self.said.len();
        self.said.get(first)
    }

    /// Removes a message and all later ones. Returns the message's block index and text; `None` if its id is unknown.
    pub(crate) fn take_back(&mut self, to: EventId) -> Option<(usize, String)> {
        let at = self.said.iter().position(|said| said.id == to)?;
        self.before_turn = self.before_turn.min(at);
        let gone = self.said.split_off(at);
        let (block, text) = gone.first().map(|said| (said.block, said.text.clone()))?;
        self.taken_back = Some((Vec::new(), gone));
        Some((block, text))
    }

    pub(crate) fn beginning(&self, target: RewindTarget) -> Option<&str> {
        let said = self.said.iter().find(|said| Some(said.id) == target.to)?;
        said.text.lines().find(|line| !line.trim().is_empty())
    }

    /// Keeps the blocks that a rewind removed from the transcript, so that the rewind can be undone.
    pub(crate) fn keep(&mut self, blocks: Vec<Block>) {
        if let Some((kept, _)) = &mut self.taken_back {
            *kept = blocks;
        }
    }

    /// Undoes a rewind: restores the messages, and returns the removed blocks, to be appended to `blocks` other blocks.
    pub(crate) fn give_back(&mut self, blocks: usize) -> Vec<Block> {
        let Some((kept, said)) = self.taken_back.take() else { return Vec::new() };
        let first = said.first().map_or(0, |said| said.block);
        let moved =
            |said: SaidBefore| SaidBefore { block: blocks + said.block.saturating_sub(first), ..said };
        self.said.extend(said.into_iter().map(moved));
        kept
    }

    /// Forgets removed messages, so that an undo does not restore them. Called after a rewind of files alone.
    pub(crate) fn forget_taken_back(&mut self) {
        self.taken_back = None;
    }

    pub(crate) const fn is_known(&self) -> bool {
        self.preview.is_some()
    }
}
