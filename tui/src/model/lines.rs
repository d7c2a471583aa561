use std::ops::Range;

use ratatui::style::Modifier;

use crate::text::{Columns, Row, SafeText, Styled, Tone, Wrap, wrap};

#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub text: Styled,
    pub rows: Vec<Row>,
    start: usize,
}

impl Lines {
    pub(crate) fn put(&mut self, words: &str, tone: Tone) {
        self.text.append(SafeText::line(words).all(), tone);
    }

    pub(crate) fn space(&mut self, columns: usize, tone: Tone) {
        if columns > 0 {
            self.put(&" ".repeat(columns), tone);
        }
    }

    pub(crate) fn piece(&mut self, of: &Styled, range: Range<usize>, emphasis: Modifier) {
        for (range, tone) in of.pieces(range) {
            self.text.append(of.text().slice(range), Tone { emphasis: tone.emphasis | emphasis, ..tone });
        }
    }

    /// Ends a row. `first` is true if this row is the first of its line.
    pub(crate) fn end_row(&mut self, first: bool) {
        let end = self.text.text().len();
        self.rows.push(Row { start: self.start, end, first });
        self.text.append("\n".into(), Tone::default());
        self.start = end + 1;
    }

    pub(crate) fn wrapped(&mut self, text: &Styled, width: usize) {
        let mut rows = Vec::new();
        wrap(text.text().as_str(), 0, Columns::all(width), Wrap::Words, &mut rows);
        for row in rows {
            self.piece(text, row.start..row.end, Modifier::empty());
            self.end_row(row.first);
        }
    }
}
