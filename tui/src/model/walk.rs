//! Keys that go through a transcript, from one message to the next or from one output to the next.

use std::ops::Range;

use super::Found;
use super::block::Block;
use super::look::Look;
use super::part::{Fold, Part};
use super::rows::{Rows, TranscriptLine};
use super::transcript::Transcript;
use crate::text::SafeText;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Message of the person, or text of the agent.
    Message,
    /// Tool call, change, sub-agent, thinking or long paste.
    Output,
}

impl Transcript {
    /// Marks the next message or output, from the marked block or the top of the screen on. Returns `None` if there is
    /// no further one; below the last one, this also removes the mark.
    pub(crate) fn walk(&mut self, to: Stop, down: bool, size: (u16, u16)) -> Option<Found> {
        let rows = self.rows(size.0);
        let stops: Vec<_> = stops(rows, to).collect();
        let number = match (self.marked(size), down) {
            (Some(mark), true) => stops.partition_point(|at| *at <= mark),
            (Some(mark), false) => stops.partition_point(|at| *at < mark).checked_sub(1)?,
            (None, true) if self.follows() => stops.len(),
            (None, false) if self.follows() => stops.len().checked_sub(1)?,
            (None, true) => stops.partition_point(|at| rows.begin_of(*at) < self.top(size.0, size.1.into())),
            (None, false) => {
                let above = stops.partition_point(|at| rows.begin_of(*at) < self.top(size.0, size.1.into()));
                above.checked_sub(1)?
            }
        };
        let Some(&block) = stops.get(number) else {
            self.follow();
            return None;
        };
        self.mark_at(block, self.top_for(block, to, size), size);
        Some(Found { number: number + 1, of: stops.len() })
    }

    /// Returns the row that must be at the top of the screen to show a block. A message is shown at the top. An output
    /// that is completely visible already needs no scrolling.
    fn top_for(&self, block: usize, to: Stop, (width, height): (u16, u16)) -> TranscriptLine {
        let (first, height) = (TranscriptLine { block, row: 0 }, usize::from(height));
        if to == Stop::Message {
            return first;
        }
        let (top, rows) = (self.top(width, height), self.rows(width));
        let is_visible =
            top <= first && TranscriptLine { block: block + 1, row: 0 } <= rows.down(top, height);
        if is_visible { top } else { rows.up(first, height / 4) }
    }
}

/// Returns the indices of the blocks at which the keys stop: those of messages, or those of outputs.
pub(super) fn stops(rows: Rows<'_>, to: Stop) -> impl Iterator<Item = usize> {
    (0..rows.blocks().len()).filter(move |at| stops_at(rows, *at, to))
}

fn stops_at(rows: Rows<'_>, at: usize, to: Stop) -> bool {
    let Some(block) = rows.blocks().get(at) else { return false };
    let first = block.parts.first().map(Part::look);
    match to {
        Stop::Message => {
            let goes_on = || at.checked_sub(1).and_then(|at| rows.blocks().get(at)).is_some_and(is_answer);
            first == Some(Look::User) || is_answer(block) && !goes_on()
        }
        Stop::Output => {
            let is_call = matches!(first, Some(Look::Tool | Look::ToolFailed | Look::Denial));
            is_call
                || block.parts.iter().any(|part| part.fold() != Fold::Never) && block.can_fold(rows.width())
        }
    }
}

/// Returns the blocks from `block` to the end of the agent's text; for a block of another kind, only that block.
pub(super) fn extent(blocks: &[Block], block: usize) -> Range<usize> {
    let is_answer = |at: usize| blocks.get(at).is_some_and(is_answer);
    let end = (block + 1..blocks.len()).find(|at| !is_answer(*at)).unwrap_or(blocks.len());
    if is_answer(block) { block..end } else { block..block + 1 }
}

/// Joins blocks to a single block in which nothing is folded; `None` for no blocks.
pub(super) fn whole(blocks: &[Block]) -> Option<Block> {
    let mut blocks = blocks.iter().map(Block::whole);
    let mut whole = blocks.next()?;
    for block in blocks {
        whole.parts.push(Part::new(SafeText::prose("\n"), Look::Assistant));
        whole.parts.extend(block.parts);
    }
    Some(whole)
}

fn is_answer(block: &Block) -> bool {
    let is_of_reply = |look| matches!(look, Look::Assistant | Look::Void | Look::Code);
    block.parts.iter().any(|part| is_of_reply(part.look()))
}
