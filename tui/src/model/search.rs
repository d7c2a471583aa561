//! Search for text in the rows of a transcript, as they are on the screen.

use super::rows::{Rows, TranscriptLine};
use super::transcript::Transcript;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub number: usize,
    pub of: usize,
}

impl Transcript {
    /// Shows the next row that contains `wanted`, from the last match or the top of the screen on. After the last row,
    /// the search continues at the first. Case matters only if `wanted` has capital letters. `None` without a match.
    pub(crate) fn find(&mut self, wanted: &str, down: bool, (width, height): (u16, u16)) -> Option<Found> {
        let rows = rows_with(self.rows(width), wanted);
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
        let (part, row) = self.rows(width).text_row(self.found_line(width)?)?;
        part.with_text(width, |all| {
            all.text().as_str().get(row.start..row.end).map(|text| text.trim_end().to_owned())
        })
    }
}

fn rows_with(rows: Rows<'_>, wanted: &str) -> Vec<TranscriptLine> {
    let exact = wanted.chars().any(char::is_uppercase);
    let contains =
        |text: &str| if exact { text.contains(wanted) } else { text.to_lowercase().contains(wanted) };
    let lines = (0..rows.blocks().len())
        .flat_map(|block| (0..rows.height(block)).map(move |row| TranscriptLine { block, row }));
    let has_it = |line: &TranscriptLine| {
        rows.text_row(*line).is_some_and(|(part, row)| {
            part.with_text(rows.width(), |all| {
                contains(all.text().as_str().get(row.start..row.end).unwrap_or_default())
            })
        })
    };
    lines.filter(has_it).collect()
}
