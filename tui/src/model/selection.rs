//! Selection of text in a transcript: a cursor among its rows, and the other end.

use std::ops::Range;

use super::block::{BlockPlace, BlockRow};
use super::copied::{CopyOf, RowRange, WHOLE};
use super::transcript::{Transcript, TranscriptLine};
use super::walk::Stop;
use crate::text::Clusters;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Characters,
    Lines,
    /// The same columns of each row.
    Columns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorMove {
    Rows(isize),
    Column { right: bool },
    Word { right: bool },
    LineStart,
    LineEnd,
    To { stop: Stop, down: bool },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection {
    shape: Shape,
    anchor: End,
    cursor: End,
    /// True if the end of the transcript was followed before.
    followed: bool,
}

#[derive(Clone, Copy, Debug)]
struct End {
    block: usize,
    place: BlockPlace,
    /// Column of the screen. The text of the row may be shorter.
    column: u16,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    shape: Shape,
    rows: RowRange,
    /// Columns of the first and of the last end.
    columns: [u16; 2],
}

impl Selected {
    pub(super) fn columns(&self, line: TranscriptLine) -> Range<u16> {
        let [from, to] = self.columns;
        let RowRange { from: first, to: last } = self.rows;
        if line < first || line > last {
            return 0..0;
        }
        match self.shape {
            Shape::Lines => WHOLE,
            Shape::Columns => from.min(to)..from.max(to).saturating_add(1),
            Shape::Characters => {
                let start = if line == first { from } else { 0 };
                let end = if line == last { to.saturating_add(1) } else { u16::MAX };
                start..end
            }
        }
    }
}

impl Transcript {
    /// At the marked block, the search match or the last row on the screen. The view does not scroll meanwhile. False
    /// if there is no text.
    pub(crate) fn begin_selection(&mut self, shape: Shape, size: (u16, u16)) -> bool {
        let (width, height) = (size.0, usize::from(size.1));
        let top = self.top(width, height);
        let shown = || (0..height).map(|rows| self.down(top, rows, width));
        let is_shown = |line: &TranscriptLine| shown().any(|one| one == *line);
        let mark = self.marked(size).map(|block| self.begin_of(block));
        let last = || shown().rfind(|line| self.text_columns(*line, width).is_some());
        let Some(line) = mark.or(self.found_line(width)).filter(is_shown).or_else(last) else { return false };
        let followed = self.follows();
        let column = self.text_columns(line, width).map_or(0, |columns| columns.start);
        let end = self.end_at(line, column, width);
        self.pin(top, width);
        self.selection = Some(Selection { shape, anchor: end, cursor: end, followed });
        true
    }

    /// The end of the transcript is followed again if it was before.
    pub(crate) fn end_selection(&mut self) {
        if self.selection.take().is_some_and(|selection| selection.followed) {
            self.follow();
        }
    }

    pub(crate) fn selection_shape(&self) -> Option<Shape> {
        self.selection.map(|selection| selection.shape)
    }

    pub(crate) fn set_selection_shape(&mut self, shape: Shape) {
        if let Some(selection) = &mut self.selection {
            selection.shape = shape;
        }
    }

    pub(crate) fn swap_ends(&mut self, size: (u16, u16)) {
        if let Some(selection) = &mut self.selection {
            std::mem::swap(&mut selection.anchor, &mut selection.cursor);
        }
        self.show_cursor(size);
    }

    pub(crate) fn move_cursor(&mut self, by: CursorMove, size: (u16, u16)) {
        let Some(cursor) = self.selection.map(|selection| selection.cursor) else { return };
        let (width, line) = (size.0, self.line_of(cursor, size.0));
        let in_row = self.text_columns(line, width).unwrap_or(0..1);
        let last = in_row.end.saturating_sub(1).max(in_row.start);
        let column = cursor.column.clamp(in_row.start, last);
        let (line, column) = match by {
            // The column stays wanted over shorter rows.
            CursorMove::Rows(rows) => (self.by_rows(line, rows, width), cursor.column),
            CursorMove::Column { right: true } => (line, self.next_column(line, column, width).min(last)),
            CursorMove::Column { right: false } => (line, self.column_before(line, column, width)),
            CursorMove::LineStart => (line, in_row.start),
            CursorMove::LineEnd => (line, last),
            CursorMove::Word { right } => self.word(line, column, right, width),
            CursorMove::To { stop, down } => {
                let stops = (0..self.len()).filter(|at| self.stops_at(*at, stop, width));
                let mut begins = stops.map(|at| self.begin_of(at));
                let found = if down {
                    begins.find(|begin| *begin > line)
                } else {
                    begins.take_while(|begin| *begin < line).last()
                };
                let Some(found) = found else { return };
                (found, self.text_columns(found, width).map_or(0, |columns| columns.start))
            }
        };
        let end = self.end_at(line, column, width);
        if let Some(selection) = &mut self.selection {
            selection.cursor = end;
        }
        self.show_cursor(size);
    }

    /// Selects all lines of the paragraph, code or output at the cursor; if they are selected already, of the whole
    /// message.
    pub(crate) fn select_around(&mut self, size: (u16, u16)) {
        let width = size.0;
        let Some(cursor) = self.selection.map(|selection| selection.cursor) else { return };
        let Some(block) = self.blocks().get(cursor.block) else { return };
        let part_of = |row| match block.row(row, width, self.unfolded) {
            Some(BlockRow::Text { part, .. } | BlockRow::Folded { part, .. }) => Some(part),
            _ => None,
        };
        let line = self.line_of(cursor, width);
        let rows = 0..block.height(width, self.unfolded);
        let of_part = || rows.clone().filter(|row| part_of(*row) == part_of(line.row));
        let (Some(first), Some(last)) = (of_part().next(), of_part().next_back()) else { return };
        let at = |row| TranscriptLine { block: cursor.block, row };
        let part = RowRange { from: at(first), to: at(last) };
        let selected = self.selected(width).filter(|selected| selected.shape == Shape::Lines);
        let is_selected =
            selected.is_some_and(|Selected { rows, .. }| rows.from <= part.from && rows.to >= part.to);
        let range = if is_selected { self.rows_of_message(cursor.block, width) } else { part };
        let [anchor, cursor] = [range.from, range.to].map(|line| self.end_at(line, 0, width));
        if let Some(selection) = &mut self.selection {
            *selection = Selection { shape: Shape::Lines, anchor, cursor, ..*selection };
        }
        self.show_cursor(size);
    }

    pub(crate) fn selected_text(&self, width: u16) -> Option<String> {
        let selected = self.selected(width)?;
        let of = match selected.shape {
            Shape::Lines => CopyOf::Lines,
            Shape::Characters => CopyOf::Characters,
            Shape::Columns => CopyOf::Columns,
        };
        Some(self.copied(selected.rows, width, None, of, |line| selected.columns(line)))
    }

    pub(crate) fn selected_rows(&self, width: u16) -> usize {
        let Some(Selected { rows: RowRange { from, to }, .. }) = self.selected(width) else { return 0 };
        let whole: usize = (from.block..to.block)
            .filter_map(|at| self.blocks().get(at))
            .map(|block| block.height(width, self.unfolded))
            .sum();
        (whole + to.row + 1).saturating_sub(from.row)
    }

    pub(crate) fn cursor_on_screen(&self, (width, height): (u16, u16)) -> Option<(u16, u16)> {
        let cursor = self.selection?.cursor;
        let line = self.line_of(cursor, width);
        let in_row = self.text_columns(line, width).unwrap_or(0..1);
        let column = cursor.column.clamp(in_row.start, in_row.end.saturating_sub(1).max(in_row.start));
        let top = self.top(width, usize::from(height));
        let y = (0..height).find(|y| self.down(top, usize::from(*y), width) == line)?;
        Some((column.min(width.saturating_sub(1)), y))
    }

    /// In order. Lines are whole, however many rows they take.
    pub(super) fn selected(&self, width: u16) -> Option<Selected> {
        let Selection { shape, anchor, cursor, .. } = self.selection?;
        let [one, other] = [anchor, cursor].map(|end| (self.line_of(end, width), end.column));
        let ((mut from, first), (mut to, last)) = if one <= other { (one, other) } else { (other, one) };
        if shape == Shape::Lines {
            while from.row > 0 && self.continues(from, width) {
                from.row -= 1;
            }
            while self.continues(TranscriptLine { row: to.row + 1, ..to }, width) {
                to.row += 1;
            }
        }
        Some(Selected { shape, rows: RowRange { from, to }, columns: [first, last] })
    }

    /// True if a row continues the line of the row before.
    fn continues(&self, line: TranscriptLine, width: u16) -> bool {
        let row = self.blocks().get(line.block).and_then(|block| block.row(line.row, width, self.unfolded));
        matches!(row, Some(BlockRow::Text { row, .. }) if !row.first)
    }

    fn rows_of_message(&self, block: usize, width: u16) -> RowRange {
        let first =
            (0..=block).rev().take_while(|at| self.extent(*at).contains(&block)).last().unwrap_or(block);
        let last = self.extent(block).end.saturating_sub(1);
        let height = self.blocks().get(last).map_or(1, |block| block.height(width, self.unfolded));
        RowRange {
            from: self.begin_of(first),
            to: TranscriptLine { block: last, row: height.saturating_sub(1) },
        }
    }

    fn end_at(&self, line: TranscriptLine, column: u16, width: u16) -> End {
        let block = self.blocks().get(line.block);
        let place = block.map_or(BlockPlace::Gap, |block| block.place(line.row, width, self.unfolded));
        End { block: line.block, place, column }
    }

    fn line_of(&self, end: End, width: u16) -> TranscriptLine {
        let block = self.blocks().get(end.block);
        let row = block.map_or(0, |block| block.row_of(end.place, width, self.unfolded));
        TranscriptLine { block: end.block, row }
    }

    fn by_rows(&self, line: TranscriptLine, rows: isize, width: u16) -> TranscriptLine {
        if rows < 0 {
            return self.up(line, rows.unsigned_abs(), width);
        }
        let end = TranscriptLine { block: self.len(), row: 0 };
        let moved = self.down(line, rows.unsigned_abs().min(usize::from(u16::MAX)), width);
        if rows == isize::MAX || moved >= end { self.up(end, 1, width) } else { moved }
    }

    fn text_columns(&self, line: TranscriptLine, width: u16) -> Option<Range<u16>> {
        let block = self.blocks().get(line.block)?;
        match block.row(line.row, width, self.unfolded)? {
            BlockRow::Text { part, row } => Some(block.parts.get(part)?.columns(row, width)),
            BlockRow::Gap | BlockRow::Folded { .. } => None,
        }
    }

    /// Column, width, and true for a blank.
    fn characters(&self, line: TranscriptLine, width: u16) -> Vec<(u16, u16, bool)> {
        let Some(columns) = self.text_columns(line, width) else { return Vec::new() };
        let Some(block) = self.blocks().get(line.block) else { return Vec::new() };
        let Some(BlockRow::Text { part, row }) = block.row(line.row, width, self.unfolded) else {
            return Vec::new();
        };
        let Some(part) = block.parts.get(part) else { return Vec::new() };
        part.with_text(width, |text| {
            let mut x = columns.start;
            let text = text.text().as_str().get(..row.end).unwrap_or_default();
            let characters = Clusters::new(text, row.start).map(|cluster| {
                let of = u16::try_from(cluster.columns).unwrap_or(u16::MAX);
                let at = (x, of, cluster.text == " ");
                x = x.saturating_add(of);
                at
            });
            characters.take_while(|(x, ..)| *x < columns.end).collect()
        })
    }

    fn next_column(&self, line: TranscriptLine, column: u16, width: u16) -> u16 {
        let here = self.characters(line, width).into_iter().find(|(x, of, _)| x + of > column);
        here.map_or(column, |(x, of, _)| x + of)
    }

    fn column_before(&self, line: TranscriptLine, column: u16, width: u16) -> u16 {
        let before = self.characters(line, width).into_iter().take_while(|(x, ..)| *x < column).last();
        before.map_or(column, |(x, ..)| x)
    }

    /// Beginning of the next or previous word, which may be in another row.
    fn word(&self, line: TranscriptLine, column: u16, right: bool, width: u16) -> (TranscriptLine, u16) {
        let begins = |line| {
            let row = self.characters(line, width);
            let before = std::iter::once(true).chain(row.iter().map(|(.., is_blank)| *is_blank));
            let begins = row.iter().zip(before).filter(|((.., is_blank), before)| *before && !is_blank);
            begins.map(|((x, ..), _)| *x).collect::<Vec<_>>()
        };
        let (mut at, mut column) = (line, Some(column));
        loop {
            let words = begins(at);
            let found = match (right, column) {
                (true, Some(column)) => words.into_iter().find(|x| *x > column),
                (true, None) => words.into_iter().next(),
                (false, Some(column)) => words.into_iter().rfind(|x| *x < column),
                (false, None) => words.into_iter().next_back(),
            };
            if let Some(found) = found {
                return (at, found);
            }
            let next = self.by_rows(at, if right { 1 } else { -1 }, width);
            if next == at {
                return (line, self.text_columns(line, width).map_or(0, |columns| columns.start));
            }
            (at, column) = (next, None);
        }
    }

    fn show_cursor(&mut self, (width, height): (u16, u16)) {
        let Some(cursor) = self.selection.map(|selection| selection.cursor) else { return };
        let line = self.line_of(cursor, width);
        let rows = usize::from(height);
        let top = self.top(width, rows);
        let lowest = self.up(line, rows.saturating_sub(1), width);
        self.pin(top.clamp(lowest, line), width);
    }
}
