//! Selection of text in a transcript, between a fixed end (anchor) and a cursor.

use std::ops::Range;

use super::block::{BlockPlace, BlockRow};
use super::copied::{CopyOf, RowRange, WHOLE, copied};
use super::rows::{Rows, TranscriptLine};
use super::walk::{Stop, extent, stops};

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
    /// True if the transcript was at its end when the selection began.
    followed: bool,
}

#[derive(Clone, Copy, Debug)]
struct End {
    block: usize,
    place: BlockPlace,
    /// Column of the screen, which may be beyond the text of the row.
    column: u16,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    shape: Shape,
    rows: RowRange,
    /// Columns at the upper and at the lower end of the selection.
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

impl Selection {
    /// Selects the first character of a row. `followed` is true if the transcript is at its end.
    pub(super) fn new(shape: Shape, line: TranscriptLine, followed: bool, rows: Rows<'_>) -> Self {
        let column = rows.text_columns(line).map_or(0, |columns| columns.start);
        let end = End::new(line, column, rows);
        Self { shape, anchor: end, cursor: end, followed }
    }

    pub(super) const fn shape(self) -> Shape {
        self.shape
    }

    pub(super) const fn set_shape(&mut self, shape: Shape) {
        self.shape = shape;
    }

    pub(super) const fn followed(self) -> bool {
        self.followed
    }

    pub(super) const fn swap_ends(&mut self) {
        std::mem::swap(&mut self.anchor, &mut self.cursor);
    }

    /// Moves the cursor. Returns false if the cursor cannot move that way.
    pub(super) fn go(&mut self, by: CursorMove, rows: Rows<'_>) -> bool {
        let line = self.cursor.line(rows);
        let in_row = rows.text_columns(line).unwrap_or(0..1);
        let last = in_row.end.saturating_sub(1).max(in_row.start);
        let column = self.cursor.column.clamp(in_row.start, last);
        let (line, column) = match by {
            // The cursor keeps its column when it passes shorter rows.
            CursorMove::Rows(count) => (rows.by(line, count), self.cursor.column),
            CursorMove::Column { right: true } => (line, rows.next_column(line, column).min(last)),
            CursorMove::Column { right: false } => (line, rows.column_before(line, column)),
            CursorMove::LineStart => (line, in_row.start),
            CursorMove::LineEnd => (line, last),
            CursorMove::Word { right } => rows.word(line, column, right),
            CursorMove::To { stop, down } => {
                let mut begins = stops(rows, stop).map(|at| rows.begin_of(at));
                let found = if down {
                    begins.find(|begin| *begin > line)
                } else {
                    begins.take_while(|begin| *begin < line).last()
                };
                let Some(found) = found else { return false };
                (found, rows.text_columns(found).map_or(0, |columns| columns.start))
            }
        };
        self.cursor = End::new(line, column, rows);
        true
    }

    /// Selects the paragraph, code or output at the cursor; the whole message if that is selected already. Returns
    /// false if there is no text at the cursor.
    pub(super) fn widen(&mut self, rows: Rows<'_>) -> bool {
        let line = self.cursor.line(rows);
        let at = |row| TranscriptLine { block: line.block, row };
        let part_of = |row| match rows.row(at(row)) {
            Some(BlockRow::Text { part, .. } | BlockRow::Folded { part, .. }) => Some(part),
            _ => None,
        };
        let of_part = || (0..rows.height(line.block)).filter(|row| part_of(*row) == part_of(line.row));
        let (Some(first), Some(last)) = (of_part().next(), of_part().next_back()) else { return false };
        let part = RowRange { from: at(first), to: at(last) };
        let selected = self.selected(rows);
        let is_selected =
            selected.shape == Shape::Lines && selected.rows.from <= part.from && selected.rows.to >= part.to;
        let range = if is_selected { rows_of_message(rows, line.block) } else { part };
        let [anchor, cursor] = [range.from, range.to].map(|line| End::new(line, 0, rows));
        *self = Self { shape: Shape::Lines, anchor, cursor, ..*self };
        true
    }

    /// Returns the selected range, upper end first. In line mode, a wrapped line is selected with all of its rows.
    pub(super) fn selected(self, rows: Rows<'_>) -> Selected {
        let [one, other] = [self.anchor, self.cursor].map(|end| (end.line(rows), end.column));
        let ((mut from, first), (mut to, last)) = if one <= other { (one, other) } else { (other, one) };
        if self.shape == Shape::Lines {
            while from.row > 0 && rows.continues(from) {
                from.row -= 1;
            }
            while rows.continues(TranscriptLine { row: to.row + 1, ..to }) {
                to.row += 1;
            }
        }
        Selected { shape: self.shape, rows: RowRange { from, to }, columns: [first, last] }
    }

    pub(super) fn text(self, rows: Rows<'_>) -> String {
        let selected = self.selected(rows);
        let of = match selected.shape {
            Shape::Lines => CopyOf::Lines,
            Shape::Characters => CopyOf::Characters,
            Shape::Columns => CopyOf::Columns,
        };
        copied(rows, selected.rows, None, of, |line| selected.columns(line))
    }

    pub(super) fn row_count(self, rows: Rows<'_>) -> usize {
        let RowRange { from, to } = self.selected(rows).rows;
        let whole: usize = (from.block..to.block).map(|at| rows.height(at)).sum();
        (whole + to.row + 1).saturating_sub(from.row)
    }

    pub(super) fn cursor_line(self, rows: Rows<'_>) -> TranscriptLine {
        self.cursor.line(rows)
    }

    /// Returns the cursor's column on the screen, limited to the text of its row.
    pub(super) fn cursor_column(self, rows: Rows<'_>) -> u16 {
        let in_row = rows.text_columns(self.cursor_line(rows)).unwrap_or(0..1);
        self.cursor.column.clamp(in_row.start, in_row.end.saturating_sub(1).max(in_row.start))
    }
}

impl End {
    fn new(line: TranscriptLine, column: u16, rows: Rows<'_>) -> Self {
        Self { block: line.block, place: rows.place(line).unwrap_or(BlockPlace::Gap), column }
    }

    fn line(self, rows: Rows<'_>) -> TranscriptLine {
        rows.line(self.block, self.place)
    }
}

fn rows_of_message(rows: Rows<'_>, block: usize) -> RowRange {
    let extent = |at| extent(rows.blocks(), at);
    let first = (0..=block).rev().take_while(|at| extent(*at).contains(&block)).last().unwrap_or(block);
    let last = extent(block).end.saturating_sub(1);
    let row = rows.blocks().get(last).map_or(1, |_| rows.height(last)).saturating_sub(1);
    RowRange { from: rows.begin_of(first), to: TranscriptLine { block: last, row } }
}
