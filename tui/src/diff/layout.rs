use std::ops::Range;

use super::{DiffLine, Kind};
use crate::model::Lines;
use crate::text::{Clusters, Columns, Ground, Ink, Row, Tone, Wrap, wrap};

/// Minimum columns of a screen on which a diff is shown side by side: before at the left, after at the right.
const WIDE: usize = 140;

/// Minimum columns of the area in which a diff is shown side by side; the area may be a part of the screen.
const NARROWEST: usize = 40;

const BETWEEN: &str = " │ ";

// Sides of a change.
const BEFORE: usize = 0;
const AFTER: usize = 1;

/// Lines of a diff, laid out in a number of columns.
pub(super) struct Layout<'a> {
    lines: &'a [DiffLine],
    columns: usize,
    /// Number of digits of the greatest line number; 0 if the lines have no numbers.
    digits: usize,
}

impl<'a> Layout<'a> {
    pub(super) fn new(lines: &'a [DiffLine], columns: usize) -> Self {
        Self { lines, columns, digits: digits(lines) }
    }

    /// Shows all lines in one column.
    pub(super) fn one_below_another(&self) -> Lines {
        let mut lines = Lines::default();
        self.lines.iter().for_each(|line| self.put_line(line, &mut lines));
        lines
    }

    /// Shows removed lines at the left, and the added lines that replace them at the right.
    pub(super) fn side_by_side(&self) -> Lines {
        let mut lines = Lines::default();
        let half = self.columns.saturating_sub(BETWEEN.chars().count()) / 2;
        for (left, right) in self.pairs() {
            if let Some(line) = left.filter(|line| matches!(line.kind, Kind::Gap | Kind::Note)) {
                self.put_line(line, &mut lines);
                continue;
            }
            let laid = |line: Option<&'a DiffLine>, side| {
                line.map(|line| LaidDiff::new(line, side, half, self.digits))
            };
            let sides = [laid(left, BEFORE), laid(right, AFTER)];
            let height = sides.iter().flatten().map(|laid| laid.rows.len()).max().unwrap_or(0);
            for n in 0..height {
                for (side, laid) in sides.iter().enumerate() {
                    if side > 0 {
                        lines.put(BETWEEN, Tone::default());
                    }
                    match laid.as_ref().filter(|laid| n < laid.rows.len()) {
                        Some(laid) => laid.put(n, &mut lines),
                        None => lines.space(half, Tone::default()),
                    }
                }
                lines.end_row(n == 0);
            }
        }
        lines
    }

    fn put_line(&self, line: &DiffLine, lines: &mut Lines) {
        let laid = LaidDiff::new(line, AFTER, self.columns, self.digits);
        for n in 0..laid.rows.len() {
            laid.put(n, lines);
            lines.end_row(n == 0);
        }
    }

    /// Returns the lines at the left and right of each row; `None` for an empty side. Unchanged lines are on both
    /// sides.
    fn pairs(&self) -> Vec<(Option<&'a DiffLine>, Option<&'a DiffLine>)> {
        let mut pairs = Vec::new();
        let mut rest = self.lines;
        while let [first, after @ ..] = rest {
            if !matches!(first.kind, Kind::Added | Kind::Removed) {
                pairs.push((Some(first), Some(first)));
                rest = after;
                continue;
            }
            let run = |lines: &[DiffLine], kind| lines.iter().take_while(|line| line.kind == kind).count();
            let removed = run(rest, Kind::Removed);
            let (left, others) = rest.split_at(removed);
            let (right, others) = others.split_at(run(others, Kind::Added));
            pairs.extend((0..left.len().max(right.len())).map(|n| (left.get(n), right.get(n))));
            rest = others;
        }
        pairs
    }
}

pub(super) fn is_side_by_side(lines: &[DiffLine], columns: usize, screen: usize) -> bool {
    let has = |kind| lines.iter().any(|line| line.kind == kind);
    screen >= WIDE && columns >= NARROWEST && has(Kind::Added) && has(Kind::Removed)
}

/// Returns the number of columns at the left that the line numbers take.
pub(super) fn margin(lines: &[DiffLine]) -> u16 {
    u16::try_from(before(digits(lines)) - 1).unwrap_or_default()
}

fn digits(lines: &[DiffLine]) -> usize {
    let numbers = lines.iter().flat_map(|line| line.numbers).flatten();
    numbers.max().map_or(0, |number| number.to_string().len())
}

struct LaidDiff<'a> {
    line: &'a DiffLine,
    rows: Vec<Row>,
    number: Option<u64>,
    columns: usize,
    digits: usize,
}

impl<'a> LaidDiff<'a> {
    fn new(line: &'a DiffLine, side: usize, columns: usize, digits: usize) -> Self {
        let mut rows = Vec::new();
        let left = columns.saturating_sub(before(digits)).max(1);
        wrap(line.text.as_str(), 0, Columns::all(left), Wrap::Code, &mut rows);
        // In a single column, a line has its number after the change, or else its number before.
        let [old, new] = line.numbers;
        let number = if side == BEFORE { old } else { new.or(old) };
        Self { line, rows, number, columns, digits }
    }

    /// Appends row `n` of the wrapped line to `lines`. Row 0 starts with the line number and the sign.
    fn put(&self, n: usize, lines: &mut Lines) {
        let Self { line, digits, .. } = *self;
        let Some(row) = self.rows.get(n) else { return };
        let (sign, of_sign, ground, of_words) = match line.kind {
            Kind::Added => ("+", Ground::AddedSign, Ground::Added, Ground::AddedWords),
            Kind::Removed => ("-", Ground::RemovedSign, Ground::Removed, Ground::RemovedWords),
            Kind::Same => (" ", Ground::Same, Ground::Same, Ground::Same),
            Kind::Gap | Kind::Note => (" ", Ground::None, Ground::None, Ground::None),
        };
        let number = self.number.filter(|_| n == 0).map(|number| number.to_string()).unwrap_or_default();
        if digits > 0 {
            lines.put(&format!("{number:>digits$} "), Tone::default());
        }
        let tone = Tone::default().on(ground);
        lines.put(if n == 0 { sign } else { " " }, Tone::default().on(of_sign));
        let mut used = before(digits);
        for (range, ink, differs) in line.pieces(row.start..row.end) {
            let text = line.text.slice(range);
            used += Clusters::new(text.as_str(), 0).map(|cluster| cluster.columns).sum::<usize>();
            lines.text.append(text, Tone::of(ink).on(if differs { of_words } else { ground }));
        }
        // The background fills the row.
        lines.space(self.columns.saturating_sub(used), tone);
    }
}

impl DiffLine {
    /// Divides a row into pieces: byte range, kind of text, and true if the piece belongs to a changed word.
    fn pieces(&self, row: Range<usize>) -> Vec<(Range<usize>, Ink, bool)> {
        let ends = |range: &Range<usize>| [range.start, range.end];
        let kinds = self.kinds.iter().flat_map(|(range, _)| ends(range));
        let mut cuts: Vec<_> =
            kinds.chain(self.words.iter().flat_map(ends)).filter(|at| row.contains(at)).collect();
        cuts.extend([row.start, row.end]);
        cuts.sort_unstable();
        cuts.dedup();
        let piece = |(start, end): (&usize, &usize)| {
            let kind = self.kinds.iter().find(|(range, _)| range.contains(start));
            let ink = kind.map_or(Ink::Plain, |(_, ink)| *ink);
            (*start..*end, ink, self.words.iter().any(|range| range.contains(start)))
        };
        cuts.iter().zip(cuts.iter().skip(1)).map(piece).collect()
    }
}

/// Number of columns before the text, for line number and sign.
const fn before(digits: usize) -> usize {
    1 + if digits > 0 { digits + 1 } else { 0 }
}
