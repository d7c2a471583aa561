//! Search in a transcript, by rows as they are on the screen.

use super::block::BlockRow;
use super::transcript::{Transcript, TranscriptLine};
use crate::text::Styled;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub number: usize,
    pub of: usize,
}

impl Transcript {
    /// Shows the next row that contains `wanted`, from the last match or the top of the screen on; wraps around. Case
    /// matters only if `wanted` has capital letters. Returns `None` without a match.
    pub(crate) fn find(&mut self, wanted: &str, down: bool, (width, height): (u16, u16)) -> Option<Found> {
        let rows = self.rows_with(wanted, width);
        let last = self.found_line(width);
        let from = last.unwrap_or_else(|| self.top(width, usize::from(height)));
        let next = match (down, last) {
            (true, Some(_)) => rows.partition_point(|row| *row <= from),
            (true, None) => rows.partition_point(|row| *row < from),
            (false, _) => rows.partition_point(|row| *row < from).checked_sub(1).unwrap_or(rows.len()),
        };
        // The search wraps around at either end.
        let end = if down { 0 } else { rows.len().saturating_sub(1) };
        let at = if next < rows.len() { next } else { end };
        let line = *rows.get(at)?;
        self.found_at(line, (width, height));
        Some(Found { number: at + 1, of: rows.len() })
    }

    pub(crate) fn found_text(&self, width: u16) -> Option<String> {
        let line = self.found_line(width)?;
        let block = self.blocks().get(line.block)?;
        let BlockRow::Text { part, row } = block.row(line.row, width, self.unfolded)? else { return None };
        let text =
            |all: &Styled| all.text().as_str().get(row.start..row.end).map(|text| text.trim_end().to_owned());
        block.parts.get(part)?.with_text(width, text)
    }

    fn rows_with(&self, wanted: &str, width: u16) -> Vec<TranscriptLine> {
        let exact = wanted.chars().any(char::is_uppercase);
        let contains = |text: &str| {
            if exact { text.contains(wanted) } else { text.to_lowercase().contains(wanted) }
        };
        let mut rows = Vec::new();
        for (block, of) in self.blocks().iter().enumerate() {
            for row in 0..of.height(width, self.unfolded) {
                let Some(BlockRow::Text { part, row: text }) = of.row(row, width, self.unfolded) else {
                    continue;
                };
                let has_it = of.parts.get(part).is_some_and(|part| {
                    part.with_text(width, |all| {
                        contains(all.text().as_str().get(text.start..text.end).unwrap_or_default())
                    })
                });
                if has_it {
                    rows.push(TranscriptLine { block, row });
                }
            }
        }
        rows
    }
}
