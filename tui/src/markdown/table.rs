use pulldown_cmark::Alignment;
use ratatui::style::Modifier;

use crate::model::Lines;
use crate::text::{Clusters, Columns, Ink, Row, Styled, Tone, Wrap, wrap};

const BETWEEN: &str = " │ ";

/// Minimum columns of a wrapped cell. If cells would be narrower, each cell gets a line of its own.
const LEAST: usize = 6;

const RULE: Tone = Tone::of(Ink::Mark);

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub alignments: Vec<Alignment>,
    pub header: Vec<Styled>,
    /// Rows of cells; empty cells at the end of a row are left out.
    pub rows: Vec<Vec<Styled>>,
    pub has_header: bool,
}

impl Table {
    pub(crate) fn lay(&self, width: usize) -> Lines {
        let mut lines = Lines::default();
        match self.widths(width) {
            Some(widths) => self.side_by_side(&widths, &mut lines),
            None => self.one_by_one(width, &mut lines),
        }
        lines
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<Styled>> {
        std::iter::once(&self.header).chain(&self.rows)
    }

    /// Returns the widths of the columns; `None` if `width` is too small for a table.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.cells().map(Vec::len).max().unwrap_or(0);
        let room = width.checked_sub(BETWEEN.chars().count().checked_mul(count.checked_sub(1)?)?)?;
        if room < count {
            return None;
        }
        let mut widths = vec![1; count];
        for row in self.cells() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        if widths.iter().sum::<usize>() <= room {
            return Some(widths);
        }
        let mut sorted = widths.clone();
        sorted.sort_unstable();
        let (mut left, mut most) = (room, 0);
        for (n, width) in sorted.iter().enumerate() {
            most = left / (count - n);
            if *width > most {
                break;
            }
            left -= width;
        }
        (most >= LEAST).then(|| widths.into_iter().map(|width| width.min(most)).collect())
    }

    fn side_by_side(&self, widths: &[usize], lines: &mut Lines) {
        if self.has_header {
            self.row(&self.header, widths, Modifier::BOLD, lines);
            for (n, width) in widths.iter().enumerate() {
                let join = if n == 0 { "" } else { "─┼─" };
                lines.put(&[join, &"─".repeat(*width)].concat(), RULE);
            }
            lines.end_row(true);
        }
        for row in &self.rows {
            self.row(row, widths, Modifier::empty(), lines);
        }
    }

    fn row(&self, cells: &[Styled], widths: &[usize], emphasis: Modifier, lines: &mut Lines) {
        let empty = Styled::default();
        let cell = |n| cells.get(n).unwrap_or(&empty);
        let laid: Vec<Vec<Row>> = widths.iter().enumerate().map(|(n, width)| rows(cell(n), *width)).collect();
        let height = laid.iter().map(Vec::len).max().unwrap_or(0);
        for y in 0..height {
            for (n, (width, laid)) in widths.iter().zip(&laid).enumerate() {
                if n > 0 {
                    lines.put(BETWEEN, RULE);
                }
                let range = laid.get(y).map_or(0..0, |row| row.start..row.end);
                let text = cell(n).text().as_str().get(range.clone()).unwrap_or_default();
                let range = range.start..range.start + text.trim_end().len();
                let used = columns_of(text.trim_end());
                let spare = width.saturating_sub(used);
                let before = match self.alignments.get(n) {
                    Some(Alignment::Right) => spare,
                    Some(Alignment::Center) => spare / 2,
                    _ => 0,
                };
                lines.space(before, Tone::default());
                lines.piece(cell(n), range, emphasis);
                if n + 1 < widths.len() {
                    lines.space(spare - before, Tone::default());
                }
            }
            lines.end_row(y == 0);
        }
    }

    /// Lays out each cell on a separate line, after the name of its column.
    fn one_by_one(&self, width: usize, lines: &mut Lines) {
        for (n, cells) in self.rows.iter().enumerate() {
            if n > 0 {
                lines.put("─", RULE);
                lines.end_row(true);
            }
            for (column, cell) in cells.iter().enumerate() {
                let mut text = Styled::default();
                if let Some(name) = self.header.get(column).filter(|name| !name.text().is_empty()) {
                    text.append(name.text().all(), Tone::with(Modifier::BOLD));
                    text.append(": ".into(), Tone::with(Modifier::BOLD));
                }
                text.append_all(cell, 0..cell.text().len());
                lines.wrapped(&text, width);
            }
        }
        if self.rows.is_empty() && self.has_header {
            self.header.iter().for_each(|name| lines.wrapped(name, width));
        }
    }
}

fn rows(cell: &Styled, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    wrap(cell.text().as_str(), 0, Columns::all(width), Wrap::Words, &mut rows);
    rows
}

fn columns(cell: &Styled) -> usize {
    columns_of(cell.text().as_str())
}

fn columns_of(text: &str) -> usize {
    Clusters::new(text, 0).map(|cluster| cluster.columns).sum()
}
