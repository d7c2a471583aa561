//! Answer to a command: a line above the prompt for some seconds, or a page.

use std::time::Duration;

use super::{Block, Look, Mode, Model, Part, Unfolded};
use crate::card::CardPage;
use crate::moment::UiTime;
use crate::text::SafeText;

/// Duration of an answer above the prompt.
const STANDS: Duration = Duration::from_secs(6);

/// Maximum number of rows of an answer above the prompt.
const MOST_ROWS: u16 = 3;

#[derive(Debug)]
pub(crate) struct Answer {
    pub block: Block,
    until: UiTime,
}

impl Model {
    /// On a page if the answer has too many rows.
    pub(crate) fn answer(&mut self, look: Look, text: &str) {
        let block = Block::of(vec![Part::new(SafeText::prose(text), look)]);
        if block.height(self.size.0, Unfolded::default()) > usize::from(MOST_ROWS) {
            return self.open_page(block);
        }
        self.answer = Some(Answer { block, until: self.now.plus(STANDS) });
    }

    /// Never on a page: the person may be typing.
    pub(crate) fn note(&mut self, look: Look, text: &str) {
        let block = Block::of(vec![Part::new(SafeText::prose(text), look)]);
        self.answer = Some(Answer { block, until: self.now.plus(STANDS) });
    }

    pub(crate) fn open_page(&mut self, block: Block) {
        let revision = self.next_revision();
        self.page = CardPage::new(block, revision);
        self.known_list = None;
        self.mode = Mode::Page;
    }

    pub(crate) fn answer_rows(&self, width: u16) -> u16 {
        let rows = self.answer.as_ref().map_or(0, |answer| answer.block.height(width, Unfolded::default()));
        u16::try_from(rows).unwrap_or(MOST_ROWS).min(MOST_ROWS)
    }

    pub(crate) fn answer_left(&self) -> Option<Duration> {
        self.answer.as_ref().map(|answer| answer.until.since(self.now))
    }

    pub(crate) fn end_answer(&mut self) -> bool {
        let is_over = self.answer_left().is_some_and(|left| left.is_zero());
        if is_over {
            self.answer = None;
        }
        is_over
    }

    /// True if the prompt is a single question mark.
    pub(crate) fn shows_keys(&self) -> bool {
        self.mode == Mode::Insert
            && self.recall.is_none()
            && self.cards.is_empty()
            && self.prompt.text() == "?"
    }
}
