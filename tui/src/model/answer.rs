//! The answer to a command: a line above the prompt for some seconds, or a page. The conversation has none of it.

use std::time::Duration;

use super::{Block, Look, Mode, Model, Part, Unfolded};
use crate::card::CardPage;
use crate::moment::UiTime;
use crate::text::SafeText;

/// Time that a line stays: long enough to look up from the keys and read it.
const STANDS: Duration = Duration::from_secs(6);

/// The most rows that an answer has above the prompt.
const MOST_ROWS: u16 = 3;

#[derive(Debug)]
pub(crate) struct Answer {
    pub block: Block,
    until: UiTime,
}

impl Model {
    /// Answers a command in a line; what has more rows than fit above the prompt is a page.
    pub(crate) fn answer(&mut self, look: Look, text: &str) {
        let block = Block::of(vec![Part::new(SafeText::prose(text), look)]);
        if block.height(self.size.0, Unfolded::default()) > usize::from(MOST_ROWS) {
            return self.open_page(block);
        }
        self.answer = Some(Answer { block, until: self.now.plus(STANDS) });
    }

    /// Shows a line that never becomes a page: it comes unasked, while a person may be typing.
    pub(crate) fn note(&mut self, look: Look, text: &str) {
        let block = Block::of(vec![Part::new(SafeText::prose(text), look)]);
        self.answer = Some(Answer { block, until: self.now.plus(STANDS) });
    }

    /// Opens a page in the place of the conversation.
    pub(crate) fn open_page(&mut self, block: Block) {
        let revision = self.next_revision();
        self.page = CardPage::new(block, revision);
        self.mode = Mode::Page;
    }

    /// Number of rows of the answer above the prompt.
    pub(crate) fn answer_rows(&self, width: u16) -> u16 {
        let rows = self.answer.as_ref().map_or(0, |answer| answer.block.height(width, Unfolded::default()));
        u16::try_from(rows).unwrap_or(MOST_ROWS).min(MOST_ROWS)
    }

    /// The time until the answer goes.
    pub(crate) fn answer_left(&self) -> Option<Duration> {
        self.answer.as_ref().map(|answer| answer.until.since(self.now))
    }

    /// Removes an answer whose time is over; returns true if there was one.
    pub(crate) fn end_answer(&mut self) -> bool {
        let is_over = self.answer_left().is_some_and(|left| left.is_zero());
        if is_over {
            self.answer = None;
        }
        is_over
    }

    /// True while the usual keys are shown above a prompt that is a question mark.
    pub(crate) fn shows_keys(&self) -> bool {
        self.mode == Mode::Insert
            && self.recall.is_none()
            && self.cards.is_empty()
            && self.prompt.text() == "?"
    }
}
