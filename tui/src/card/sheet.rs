//! Scrollable page that records if its last row was on the screen: some pages must be read to their end.

use crate::model::Block;

#[derive(Debug, Default)]
pub(crate) struct CardPage {
    pub block: Block,
    scroll: usize,
    read: bool,
    revision: u64,
}

impl CardPage {
    pub(crate) fn new(block: Block, revision: u64) -> Self {
        Self { block, revision, ..Self::default() }
    }

    /// Replaces the contents. The page then counts as unread; the scroll position stays.
    pub(crate) fn renew(&mut self, block: Block, revision: u64) {
        *self = Self { scroll: self.scroll, ..Self::new(block, revision) };
    }

    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) const fn is_read(&self) -> bool {
        self.read
    }

    pub(crate) const fn set_read(&mut self) {
        self.read = true;
    }

    pub(crate) fn top(&self, width: u16, height: u16) -> usize {
        self.scroll.min(self.rows(width).saturating_sub(usize::from(height)))
    }

    pub(crate) fn rows(&self, width: u16) -> usize {
        self.block.height(width, crate::model::Unfolded::default())
    }

    pub(crate) fn scroll(&mut self, rows: isize, (width, height): (u16, u16)) {
        let last = self.rows(width).saturating_sub(usize::from(height));
        self.scroll = self.top(width, height).saturating_add_signed(rows).min(last);
    }

    /// Scrolls as little as needed to show the part with index `part` and the `more` parts after it.
    pub(crate) fn reveal(&mut self, part: usize, more: usize, (width, height): (u16, u16)) {
        let rows = |part: &crate::model::Part| part.rows(width).len();
        let above: usize = self.block.parts.iter().take(part).map(rows).sum();
        let own: usize = self.block.parts.iter().skip(part).take(1 + more).map(rows).sum();
        let lowest = (above + own).saturating_sub(usize::from(height)).min(above);
        self.scroll = self.top(width, height).clamp(lowest, above);
    }
}
