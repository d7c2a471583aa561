use std::ops::Range;

use super::{Diff, DiffLine, Kind};
use crate::model::Lines;
use crate::text::{Clusters, Columns, Ground, Ink, Row, Tone, Wrap, wrap};

/// Minimum width for showing before and after side by side.
pub(super) const WIDE: usize = 140;

/// Minimum columns of a card or area for showing them side by side.
const NARROWEST: usize = 40;

const BETWEEN: &str = " │ ";

/// Sides of a change.
const BEFORE: usize = 0;
const AFTER: usize = 1;

impl Diff {
    /// `screen` is the width of the screen or card.
    pub(crate) fn lay(&self, columns: usize, screen: usize) -> Lines {
        let mut lines = Lines::default();
        let digits = self.digits();
        if self.is_side_by_side(columns, screen) {
            self.side_by_side(columns, digits, &mut lines);
        } else {
            for line in &self.lines {
                let laid = LaidDiff::new(line, AFTER, columns, digits);
                for n in 0..laid.rows.len() {
                    laid.put(n, &mut lines);
                    lines.end_row(n == 0);
                }
            }
        }
        lines
    }

    /// True if before and after stand side by side.
    pub(crate) fn is_side_by_side(&self, columns: usize, screen: usize) -> bool {
        let has = |kind| self.lines.iter().any(|line| line.kind == kind);
        screen >= WIDE && columns >= NARROWEST && has(Kind::Added) && has(Kind::Removed)
    }

    /// With its sign, as in a patch.
    pub(crate) fn written_line(&self, line: usize) -> Option<String> {
        let line = self.lines.get(line)?;
        let sign = match line.kind {
            Kind::Added => "+",
            Kind::Removed => "-",
            Kind::Same => " ",
            Kind::Gap | Kind::Note => "",
        };
        Some([sign, line.text.as_str()].concat())
    }

    pub(crate) fn margin(&self) -> u16 {
        u16::try_from(before(self.digits()) - 1).unwrap_or_default()
    }

    fn digits(&self) -> usize {
        let numbers = self.lines.iter().flat_map(|line| line.numbers).flatten();
        numbers.max().map_or(0, |number| number.to_string().len())
    }

    fn side_by_side<'a>(&'a self, columns: usize, digits: usize, lines: &mut Lines) {
        let half = columns.saturating_sub(BETWEEN.chars().count()) / 2;
        for (left, right) in self.pairs() {
            if let Some(line) = left.filter(|line| matches!(line.kind, Kind::Gap | Kind::Note)) {
                let laid = LaidDiff::new(line, AFTER, columns, digits);
                for n in 0..laid.rows.len() {
                    laid.put(n, lines);
                    lines.end_row(n == 0);
                }
                continue;
            }
            let laid =
                |line: Option<&'a DiffLine>, side| line.map(|line| LaidDiff::new(line, side, half, digits));
            let sides = [laid(left, BEFORE), laid(right, AFTER)];
            let height = sides.iter().flatten().map(|laid| laid.rows.len()).max().unwrap_or(0);
            for n in 0..height {
                for (side, laid) in sides.iter().enumerate() {
                    if side > 0 {
                        lines.put(BETWEEN, Tone::default());
                    }
                    match laid.as_ref().filter(|laid| n < laid.rows.len()) {
                        Some(laid) => laid.put(n, lines),
                        None => lines.space(half, Tone::default()),
                    }
                }
                lines.end_row(n == 0);
            }
        }
    }

    /// Lines to show side by side.
    fn pairs(&self) -> Vec<(Option<&DiffLine>, Option<&DiffLine>)> {
        let mut pairs = Vec::new();
        let mut rest = self.lines.as_slice();
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
        // A single column shows the number after the change, if there is one.
        let [old, new] = line.numbers;
        let number = if side == BEFORE { old } else { new.or(old) };
        Self { line, rows, number, columns, digits }
    }

    /// The first row starts with line number and sign.
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
    /// Range, kind of text, and true for changed words.
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

/// Number of columns for line number and sign.
const fn before(digits: usize) -> usize {
    1 + if digits > 0 { digits + 1 } else { 0 }
}
