//! Answer to a command: either some lines above the prompt, for a few seconds, or a page.

use std::time::Duration;

use super::{Block, Look, Part, Unfolded};
use crate::moment::UiTime;
use crate::text::SafeText;

/// Time for which an answer is shown above the prompt.
const STANDS: Duration = Duration::from_secs(6);

const MOST_ROWS: u16 = 3;

#[derive(Debug)]
pub(crate) struct Answer {
    block: Block,
    until: UiTime,
}

impl Answer {
    pub(super) fn new(look: Look, text: &str, now: UiTime) -> Self {
        let block = Block::of(vec![Part::new(SafeText::prose(text), look)]);
        Self { block, until: now.plus(STANDS) }
    }

    pub(super) fn fits(&self, width: u16) -> bool {
        self.height(width) <= usize::from(MOST_ROWS)
    }

    pub(super) fn into_block(self) -> Block {
        self.block
    }

    pub(crate) const fn block(&self) -> &Block {
        &self.block
    }

    /// Returns the number of rows above the prompt that the answer needs, at most [`MOST_ROWS`].
    pub(super) fn rows(&self, width: u16) -> u16 {
        u16::try_from(self.height(width)).unwrap_or(MOST_ROWS).min(MOST_ROWS)
    }

    /// Returns the time until the answer disappears.
    pub(crate) fn left(&self, now: UiTime) -> Duration {
        self.until.since(now)
    }

    fn height(&self, width: u16) -> usize {
        self.block.height(width, Unfolded::default())
    }
}
