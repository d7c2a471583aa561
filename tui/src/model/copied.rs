//! Conversion of rows of the transcript to text for the clipboard. Margins are removed and wrapped lines are joined.

use std::ops::Range;

use super::block::BlockRow;
use super::look::Look;
use super::part::{Part, Unfolded};
use super::rows::{Rows, TranscriptLine};
use crate::text::{Clusters, Row};

/// Range of columns that includes a whole row.
pub(super) const WHOLE: Range<u16> = 0..u16::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    pub from: TranscriptLine,
    pub to: TranscriptLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyOf {
    /// Whole lines, as the language model or a tool wrote them.
    Lines,
    /// Characters; rows of a wrapped line are joined.
    Characters,
    /// The same columns of each row; rows are not joined.
    Columns,
}

#[derive(Debug, Default)]
struct CopiedLines {
    lines: Vec<CopiedText>,
    last: Option<(CopiedPart, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CopiedPart {
    block: usize,
    part: usize,
}

#[derive(Debug, Default)]
struct CopiedText {
    text: String,
    /// True if the lines are code, whose trailing spaces are kept.
    keeps_blanks: bool,
}

/// Returns the text of whole blocks, folded text included.
pub(super) fn text_of(rows: Rows<'_>, blocks: Range<usize>) -> String {
    let end = blocks.end.min(rows.blocks().len());
    let Some(last) = end.checked_sub(1).filter(|last| *last >= blocks.start) else {
        return String::new();
    };
    let to = TranscriptLine { block: last, row: usize::MAX - 1 };
    let from = TranscriptLine { block: blocks.start, row: 0 };
    let open = Unfolded::all(true);
    let text = copied(rows, RowRange { from, to }, Some(open), CopyOf::Lines, |_| WHOLE);
    text.trim_matches('\n').to_owned()
}

/// Returns the text in some columns of a range of rows. `open`, if given, replaces the folding of the blocks.
pub(super) fn copied(
    all: Rows<'_>,
    RowRange { from, to }: RowRange,
    open: Option<Unfolded>,
    of: CopyOf,
    columns: impl Fn(TranscriptLine) -> Range<u16>,
) -> String {
    let width = all.width();
    let mut copied = CopiedLines::default();
    for (at, block) in all.blocks().iter().enumerate().take(to.block + 1).skip(from.block) {
        let unfolded = open.unwrap_or_else(|| all.unfolded(block));
        let first = if at == from.block { from.row } else { 0 };
        let rows = block.height_as(width, unfolded);
        let end = if at == to.block { rows.min(to.row + 1) } else { rows };
        for n in first..end {
            let line = TranscriptLine { block: at, row: n };
            match block.row_as(n, width, unfolded) {
                Some(BlockRow::Gap) => copied.blank(),
                Some(BlockRow::Text { part, row }) => {
                    let Some(of_part) = block.parts.get(part) else { continue };
                    let is_label = block.parts.get(part + 1).is_some_and(|next| of_part.is_label_of(next));
                    if !is_label {
                        let from = CopiedPart { block: at, part };
                        copied.row(from, of_part, row, width, of, columns(line));
                    }
                }
                Some(BlockRow::Folded { .. }) | None => {}
            }
        }
    }
    copied.finish()
}

impl CopiedLines {
    fn blank(&mut self) {
        self.lines.push(CopiedText::default());
        self.last = None;
    }

    fn row(
        &mut self,
        part: CopiedPart,
        of_part: &Part,
        row: Row,
        width: u16,
        of: CopyOf,
        columns: Range<u16>,
    ) {
        let before = self.last.filter(|(last, _)| *last == part).map(|(_, line)| line);
        let line = match before {
            Some(line) => line + usize::from(row.first),
            None => of_part.line_of(row, width),
        };
        self.last = Some((part, line));
        let is_same = before == Some(line);
        let keeps_blanks = of_part.look() == Look::Code;
        if of == CopyOf::Lines
            && let Some(text) = of_part.written_line(line, width)
        {
            if !is_same {
                self.lines.push(CopiedText { text, keeps_blanks });
            }
            return;
        }
        let text = of_part.cut(row, width, columns);
        match self.lines.last_mut().filter(|_| is_same && of != CopyOf::Columns && of_part.joins()) {
            Some(last) => last.text.push_str(&text),
            None => self.lines.push(CopiedText { text, keeps_blanks }),
        }
    }

    fn finish(self) -> String {
        let lines = self
            .lines
            .iter()
            .map(|line| if line.keeps_blanks { line.text.as_str() } else { line.text.trim_end() });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Part {
    pub(super) fn columns(&self, row: Row, width: u16) -> Range<u16> {
        let mark = columns_of(self.mark(row, width).as_str());
        let text = self.with_text(width, |text| {
            columns_of(text.text().as_str().get(row.start..row.end).unwrap_or_default().trim_end())
        });
        mark..mark.saturating_add(text)
    }

    /// Returns the text of a row in a range of columns; with the row's mark if the range begins before the text.
    fn cut(&self, row: Row, width: u16, columns: Range<u16>) -> String {
        let begins = self.columns(row, width).start;
        let mut cut = String::new();
        if columns.start < begins && row.first {
            cut.push_str(&self.lead(row, width));
        }
        let margin = begins.saturating_add(self.inner_margin(width));
        self.with_text(width, |text| {
            let mut x = begins;
            for cluster in Clusters::new(text.text().as_str().get(..row.end).unwrap_or_default(), row.start) {
                if x >= margin && columns.contains(&x) {
                    cut.push_str(cluster.text);
                }
                x = x.saturating_add(u16::try_from(cluster.columns).unwrap_or(u16::MAX));
            }
        });
        cut
    }

    /// Returns the mark before a row, as ASCII characters; empty for code.
    fn lead(&self, row: Row, width: u16) -> String {
        if !self.has_marks() || self.look() == Look::Code {
            return String::new();
        }
        let mark = self.mark(row, width);
        let mark = mark.as_str().chars().skip(MARGIN).map(|c| match c {
            '•' => '-',
            '▏' => '>',
            c => c,
        });
        mark.collect()
    }

    /// Returns the index of the line that a row belongs to, from 0.
    fn line_of(&self, row: Row, width: u16) -> usize {
        let rows = self.rows(width);
        let starts = rows.iter().take_while(|other| other.start <= row.start).filter(|other| other.first);
        starts.count().saturating_sub(1)
    }
}

const MARGIN: usize = 2;

fn columns_of(text: &str) -> u16 {
    let columns: usize = Clusters::new(text, 0).map(|cluster| cluster.columns).sum();
    u16::try_from(columns).unwrap_or(u16::MAX)
}
