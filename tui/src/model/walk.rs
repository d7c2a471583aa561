//! Navigation through a transcript: from message to message, or from one row that can be opened to the next.

use std::ops::Range;

use super::Found;
use super::block::Block;
use super::look::Look;
use super::part::{Fold, Part};
use super::transcript::{Transcript, TranscriptLine};
use crate::text::SafeText;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Message of the person, or answer of the agent.
    Message,
    /// Call, change, sub-agent, thinking or long paste.
    Output,
}

impl Transcript {
    /// From the marked block or the top of the screen on. `None` past the last one; the mark is then removed below, and
    /// stays above.
    pub(crate) fn walk(&mut self, to: Stop, down: bool, size: (u16, u16)) -> Option<Found> {
        let stops: Vec<_> = (0..self.len()).filter(|at| self.stops_at(*at, to, size.0)).collect();
        let number = match (self.marked(size), down) {
            (Some(mark), true) => stops.partition_point(|at| *at <= mark),
            (Some(mark), false) => stops.partition_point(|at| *at < mark).checked_sub(1)?,
            (None, true) if self.follows() => stops.len(),
            (None, false) if self.follows() => stops.len().checked_sub(1)?,
            (None, true) => stops.partition_point(|at| self.begin_of(*at) < self.top(size.0, size.1.into())),
            (None, false) => {
                let above = stops.partition_point(|at| self.begin_of(*at) < self.top(size.0, size.1.into()));
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

    pub(crate) fn extent(&self, block: usize) -> Range<usize> {
        let is_answer = |at: usize| self.blocks().get(at).is_some_and(is_answer);
        let end = (block + 1..self.len()).find(|at| !is_answer(*at)).unwrap_or(self.len());
        if is_answer(block) { block..end } else { block..block + 1 }
    }

    /// `None` if there are no blocks.
    pub(crate) fn whole(&self, blocks: Range<usize>) -> Option<Block> {
        let mut blocks = self.blocks().get(blocks)?.iter().map(Block::whole);
        let mut whole = blocks.next()?;
        for block in blocks {
            whole.parts.push(Part::new(SafeText::prose("\n"), Look::Assistant));
            whole.parts.extend(block.parts);
        }
        Some(whole)
    }

    pub(super) fn stops_at(&self, at: usize, to: Stop, width: u16) -> bool {
        let Some(block) = self.blocks().get(at) else { return false };
        let first = block.parts.first().map(Part::look);
        match to {
            Stop::Message => {
                let goes_on =
                    || at.checked_sub(1).and_then(|at| self.blocks().get(at)).is_some_and(is_answer);
                first == Some(Look::User) || is_answer(block) && !goes_on()
            }
            Stop::Output => {
                let is_call = matches!(first, Some(Look::Tool | Look::ToolFailed | Look::Denial));
                is_call || block.parts.iter().any(|part| part.fold() != Fold::Never) && block.can_fold(width)
            }
        }
    }

    pub(super) fn begin_of(&self, block: usize) -> TranscriptLine {
        let gap = self.blocks().get(block).is_some_and(|block| block.gap);
        TranscriptLine { block, row: usize::from(gap) }
    }

    /// The top row of a screen that shows a block: a message begins there, and an output stays where it is if all of it
    /// is visible.
    fn top_for(&self, block: usize, to: Stop, (width, height): (u16, u16)) -> TranscriptLine {
        let (first, rows) = (TranscriptLine { block, row: 0 }, usize::from(height));
        if to == Stop::Message {
            return first;
        }
        let top = self.top(width, rows);
        let is_visible =
            top <= first && TranscriptLine { block: block + 1, row: 0 } <= self.down(top, rows, width);
        if is_visible { top } else { self.up(first, rows / 4, width) }
    }
}

fn is_answer(block: &Block) -> bool {
    let is_of_reply = |look| matches!(look, Look::Assistant | Look::Void | Look::Code);
    block.parts.iter().any(|part| is_of_reply(part.look()))
}
