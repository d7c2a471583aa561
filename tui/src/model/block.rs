//! Blocks of a transcript. A block is a sequence of parts.

use super::look::Look;
use super::part::{Part, Unfolded};
use crate::text::Row;

#[derive(Debug, Default)]
pub(crate) struct Block {
    pub parts: Vec<Part>,
    pub gap: bool,
    /// True if the person has unfolded this block, false if folded it; `None` if the transcript's setting applies.
    pub opened: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockRow {
    Gap,
    Text { part: usize, row: Row },
    Folded { part: usize, count: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockPlace {
    Gap,
    Text { part: usize, byte: usize },
    Folded { part: usize },
}

impl Block {
    pub(crate) fn of(parts: Vec<Part>) -> Self {
        Self { parts, ..Self::default() }
    }

    #[must_use]
    pub(crate) fn apart(self) -> Self {
        Self { gap: true, ..self }
    }

    /// True if the block has more parts to show than the first one while output is folded.
    fn has_more(&self) -> bool {
        self.parts.iter().skip(1).any(Part::is_told_here)
    }

    /// True for the block of a tool call.
    pub(crate) fn is_call(&self) -> bool {
        self.parts.first().is_some_and(|part| part.look() == Look::Tool)
    }

    /// True if an empty row is needed between this block and a tool call below it, which is hard to find below output.
    pub(crate) fn parts_from_call(&self) -> bool {
        let look = self.parts.first().map(Part::look);
        matches!(look, Some(Look::Tool | Look::Denial)) && self.has_more()
    }

    /// True if an empty row is needed between this block and a row below it that ends a turn.
    pub(crate) fn parts_from_end(&self) -> bool {
        let look = self.parts.first().map(Part::look);
        self.parts_from_call() || matches!(look, Some(Look::Assistant | Look::Void | Look::Code))
    }

    /// Replaces the contents. Parts that are equal in both keep their layout.
    pub(crate) fn renew(&mut self, block: Self) {
        self.gap = block.gap;
        self.parts.truncate(block.parts.len());
        let mut parts = block.parts.into_iter();
        for (old, new) in self.parts.iter_mut().zip(parts.by_ref()) {
            old.becomes(new);
        }
        self.parts.extend(parts);
    }

    /// Returns a copy in which nothing is folded.
    pub(crate) fn whole(&self) -> Self {
        Self { parts: self.parts.iter().map(Part::copy).collect(), gap: false, opened: Some(true) }
    }

    pub(crate) fn can_fold(&self, width: u16) -> bool {
        let [open, shut] = [true, false].map(|all| Self::sum(&self.parts, width, Unfolded::all(all)));
        open != shut
    }

    /// Unfolds the block if anything in it is folded, else folds it.
    pub(crate) fn toggle(&mut self, width: u16, unfolded: Unfolded) {
        let whole = Self::sum(&self.parts, width, Unfolded::all(true));
        let shown = Self::sum(&self.parts, width, self.unfolded(unfolded));
        self.opened = Some(shown != whole);
    }

    fn sum(parts: &[Part], width: u16, unfolded: Unfolded) -> usize {
        parts.iter().map(|part| part.showing(width, unfolded).height()).sum()
    }

    /// Returns the folding of this block: the person's choice for the block, else `of_all`, that of the transcript.
    pub(crate) fn unfolded(&self, of_all: Unfolded) -> Unfolded {
        self.opened.map_or(of_all, Unfolded::all)
    }

    pub(crate) fn height(&self, width: u16, unfolded: Unfolded) -> usize {
        self.height_as(width, self.unfolded(unfolded))
    }

    /// Returns the number of rows if the block is folded as in `unfolded`, whatever the person chose for the block.
    pub(super) fn height_as(&self, width: u16, unfolded: Unfolded) -> usize {
        usize::from(self.gap) + Self::sum(&self.parts, width, unfolded)
    }

    pub(crate) fn row(&self, n: usize, width: u16, unfolded: Unfolded) -> Option<BlockRow> {
        self.row_as(n, width, self.unfolded(unfolded))
    }

    pub(super) fn row_as(&self, n: usize, width: u16, unfolded: Unfolded) -> Option<BlockRow> {
        if self.gap && n == 0 {
            return Some(BlockRow::Gap);
        }
        let mut n = n - usize::from(self.gap);
        for (part, of) in self.parts.iter().enumerate() {
            let showing = of.showing(width, unfolded);
            if n >= showing.height() {
                n -= showing.height();
                continue;
            }
            let marker = if showing.marker_first { 0 } else { showing.count };
            if showing.folded > 0 && n == marker {
                return Some(BlockRow::Folded { part, count: showing.folded });
            }
            let before = usize::from(showing.folded > 0 && showing.marker_first);
            let row = of.rows(width).get(showing.from + n - before).copied()?;
            return Some(BlockRow::Text { part, row });
        }
        None
    }

    pub(crate) fn place(&self, n: usize, width: u16, unfolded: Unfolded) -> BlockPlace {
        match self.row(n, width, unfolded) {
            Some(BlockRow::Text { part, row }) => BlockPlace::Text { part, byte: row.start },
            Some(BlockRow::Folded { part, .. }) => BlockPlace::Folded { part },
            Some(BlockRow::Gap) | None => BlockPlace::Gap,
        }
    }

    /// Returns the index of the row that shows `place`; the nearest row if `place` is folded away.
    pub(crate) fn row_of(&self, place: BlockPlace, width: u16, unfolded: Unfolded) -> usize {
        let unfolded = self.unfolded(unfolded);
        let (part, byte) = match place {
            BlockPlace::Gap => return 0,
            BlockPlace::Text { part, byte } => (part, Some(byte)),
            BlockPlace::Folded { part } => (part, None),
        };
        let above = self.parts.iter().take(part).map(|part| part.showing(width, unfolded).height());
        let above = usize::from(self.gap) + above.sum::<usize>();
        let Some(of) = self.parts.get(part) else { return above };
        let showing = of.showing(width, unfolded);
        let before = usize::from(showing.folded > 0 && showing.marker_first);
        let Some(byte) = byte else {
            return above + if before > 0 { 0 } else { showing.count };
        };
        let at = of.rows(width).partition_point(|row| row.start <= byte).saturating_sub(1);
        above + before + at.saturating_sub(showing.from).min(showing.count.saturating_sub(1))
    }
}
