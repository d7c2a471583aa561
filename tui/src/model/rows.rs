//! Rows of a transcript on a screen of a given width, and the characters in the rows.

use std::ops::Range;

use super::block::{Block, BlockPlace, BlockRow};
use super::part::{Part, Unfolded};
use crate::text::{Clusters, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TranscriptLine {
    pub(super) block: usize,
    pub(super) row: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    blocks: &'a [Block],
    unfolded: Unfolded,
    width: u16,
}

struct Character {
    x: u16,
    columns: u16,
    is_blank: bool,
}

impl<'a> Rows<'a> {
    pub(super) const fn new(blocks: &'a [Block], unfolded: Unfolded, width: u16) -> Self {
        Self { blocks, unfolded, width }
    }

    pub(super) const fn blocks(self) -> &'a [Block] {
        self.blocks
    }

    pub(super) const fn width(self) -> u16 {
        self.width
    }

    pub(super) fn unfolded(self, block: &Block) -> Unfolded {
        block.unfolded(self.unfolded)
    }

    pub(super) fn row(self, line: TranscriptLine) -> Option<BlockRow> {
        self.blocks.get(line.block)?.row(line.row, self.width, self.unfolded)
    }

    /// Returns the part to which a row belongs, and the byte range of the row; `None` for a row without text.
    pub(super) fn text_row(self, line: TranscriptLine) -> Option<(&'a Part, Row)> {
        match self.row(line)? {
            BlockRow::Text { part, row } => Some((self.blocks.get(line.block)?.parts.get(part)?, row)),
            BlockRow::Gap | BlockRow::Folded { .. } => None,
        }
    }

    pub(super) fn height(self, block: usize) -> usize {
        self.blocks.get(block).map_or(0, |block| block.height(self.width, self.unfolded))
    }

    /// Returns the position of a row in the text, which is still valid after a change of the width.
    pub(super) fn place(self, line: TranscriptLine) -> Option<BlockPlace> {
        self.blocks.get(line.block).map(|block| block.place(line.row, self.width, self.unfolded))
    }

    pub(super) fn line(self, block: usize, place: BlockPlace) -> TranscriptLine {
        let row = self.blocks.get(block).map_or(0, |block| block.row_of(place, self.width, self.unfolded));
        TranscriptLine { block, row }
    }

    /// Returns the first row of a block, without the empty row that may precede it.
    pub(super) fn begin_of(self, block: usize) -> TranscriptLine {
        let gap = self.blocks.get(block).is_some_and(|block| block.gap);
        TranscriptLine { block, row: usize::from(gap) }
    }

    /// Returns the position after the last row.
    pub(super) const fn end(self) -> TranscriptLine {
        TranscriptLine { block: self.blocks.len(), row: 0 }
    }

    pub(super) fn up(self, from: TranscriptLine, mut rows: usize) -> TranscriptLine {
        let mut line = from;
        loop {
            if rows <= line.row {
                return TranscriptLine { row: line.row - rows, ..line };
            }
            rows -= line.row;
            let Some(block) = line.block.checked_sub(1) else { return TranscriptLine { block: 0, row: 0 } };
            line = TranscriptLine { block, row: self.height(block) };
        }
    }

    pub(super) fn down(self, from: TranscriptLine, rows: usize) -> TranscriptLine {
        let mut line = TranscriptLine { row: from.row + rows, ..from };
        while line.block < self.blocks.len() {
            let height = self.height(line.block);
            if line.row < height {
                break;
            }
            line = TranscriptLine { block: line.block + 1, row: line.row - height };
        }
        line
    }

    /// Returns the row that is `rows` rows below `line`, or above if negative, but at most the last or first row.
    pub(super) fn by(self, line: TranscriptLine, rows: isize) -> TranscriptLine {
        if rows < 0 {
            return self.up(line, rows.unsigned_abs());
        }
        let moved = self.down(line, rows.unsigned_abs().min(usize::from(u16::MAX)));
        if rows == isize::MAX || moved >= self.end() { self.up(self.end(), 1) } else { moved }
    }

    /// True if a row continues the wrapped line of the row above.
    pub(super) fn continues(self, line: TranscriptLine) -> bool {
        matches!(self.row(line), Some(BlockRow::Text { row, .. }) if !row.first)
    }

    /// Returns the columns of the screen that the text of a row takes; `None` for a row without text.
    pub(super) fn text_columns(self, line: TranscriptLine) -> Option<Range<u16>> {
        self.text_row(line).map(|(part, row)| part.columns(row, self.width))
    }

    pub(super) fn next_column(self, line: TranscriptLine, column: u16) -> u16 {
        let here = self.characters(line).into_iter().find(|one| one.x + one.columns > column);
        here.map_or(column, |one| one.x + one.columns)
    }

    pub(super) fn column_before(self, line: TranscriptLine, column: u16) -> u16 {
        let before = self.characters(line).into_iter().take_while(|one| one.x < column).last();
        before.map_or(column, |one| one.x)
    }

    /// Returns the beginning of the next or previous word, which may be in another row.
    pub(super) fn word(self, line: TranscriptLine, column: u16, right: bool) -> (TranscriptLine, u16) {
        let (mut at, mut column) = (line, Some(column));
        loop {
            let words = self.words(at);
            let found = match (right, column) {
                (true, Some(column)) => words.into_iter().find(|x| *x > column),
                (true, None) => words.into_iter().next(),
                (false, Some(column)) => words.into_iter().rfind(|x| *x < column),
                (false, None) => words.into_iter().next_back(),
            };
            if let Some(found) = found {
                return (at, found);
            }
            let next = self.by(at, if right { 1 } else { -1 });
            if next == at {
                return (line, self.text_columns(line).map_or(0, |columns| columns.start));
            }
            (at, column) = (next, None);
        }
    }

    fn words(self, line: TranscriptLine) -> Vec<u16> {
        let row = self.characters(line);
        let before = std::iter::once(true).chain(row.iter().map(|one| one.is_blank));
        let begins = row.iter().zip(before).filter(|(one, is_after_blank)| *is_after_blank && !one.is_blank);
        begins.map(|(one, _)| one.x).collect()
    }

    fn characters(self, line: TranscriptLine) -> Vec<Character> {
        let Some((part, row)) = self.text_row(line) else { return Vec::new() };
        let columns = part.columns(row, self.width);
        part.with_text(self.width, |text| {
            let mut x = columns.start;
            let text = text.text().as_str().get(..row.end).unwrap_or_default();
            let characters = Clusters::new(text, row.start).map(|cluster| {
                let columns = u16::try_from(cluster.columns).unwrap_or(u16::MAX);
                let at = Character { x, columns, is_blank: cluster.text == " " };
                x = x.saturating_add(columns);
                at
            });
            characters.take_while(|one| one.x < columns.end).collect()
        })
    }
}
