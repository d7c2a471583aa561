mod between;
mod code;
mod layout;
mod unified;
mod words;

use std::ops::Range;

pub(crate) use between::between;
pub(crate) use unified::read_unified;

use crate::highlight::{CodeRead, Unread};
use crate::model::Lines;
use crate::text::{Ink, SafeText};
use code::Code;
use layout::Layout;

#[derive(Clone, Debug, Default)]
pub(crate) struct Diff {
    lines: Vec<DiffLine>,
    code: Code,
}

#[derive(Clone, Debug)]
struct DiffLine {
    kind: Kind,
    /// Line number before and after the change; `None` if the line is not in that version, or if unknown.
    numbers: [Option<u64>; 2],
    text: SafeText,
    words: Vec<Range<usize>>,
    /// Byte ranges of the line with their kinds of text; empty until the line is highlighted.
    kinds: Vec<(Range<usize>, Ink)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Same,
    Added,
    Removed,
    /// Lines of the file that are left out between two hunks.
    Gap,
    Note,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub added: usize,
    pub removed: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.added, self.removed) {
            (0, 0) => write!(f, "±0"),
            (added, 0) => write!(f, "+{added}"),
            (0, removed) => write!(f, "-{removed}"),
            (added, removed) => write!(f, "+{added} -{removed}"),
        }
    }
}

impl Diff {
    pub(crate) fn added(content: &str) -> Self {
        Self::whole(Kind::Added, content)
    }

    pub(crate) fn removed(content: &str) -> Self {
        Self::whole(Kind::Removed, content)
    }

    fn whole(kind: Kind, content: &str) -> Self {
        let mut diff = Self::default();
        for (number, line) in (1..).zip(content.split_inclusive('\n')) {
            diff.push(kind, [Some(number); 2], line);
        }
        if content.is_empty() {
            diff.note("(empty)");
        } else if !content.ends_with('\n') {
            diff.note("\\ no line end at the end of the file");
        }
        diff
    }

    pub(crate) fn joined(diffs: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for diff in diffs {
            if !all.lines.is_empty() {
                all.gap();
            }
            all.lines.extend(diff.lines);
        }
        all
    }

    pub(crate) fn counts(&self) -> Counts {
        let of = |kind| self.lines.iter().filter(|line| line.kind == kind).count();
        Counts { added: of(Kind::Added), removed: of(Kind::Removed) }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    #[must_use]
    pub(crate) fn in_language(self, language: &str) -> Self {
        Self { code: Code::of(language), ..self }
    }

    pub(crate) fn forget_reading(&mut self) {
        self.code.forget();
    }

    pub(crate) const fn is_plain(&self) -> bool {
        self.code.is_plain()
    }

    pub(crate) fn begin_reading(&mut self, number: u64) -> Unread {
        self.code.begin(number, &self.lines)
    }

    /// Applies the result of a highlighting request. False if it belongs to another request.
    pub(crate) fn has_read(&mut self, read: &CodeRead) -> bool {
        self.code.has_read(read, &mut self.lines)
    }

    /// Lays out the diff in `columns` columns, side by side if `screen`, the width of the screen or card, is large
    /// enough.
    pub(crate) fn lay(&self, columns: usize, screen: usize) -> Lines {
        let layout = Layout::new(&self.lines, columns);
        if self.is_side_by_side(columns, screen) { layout.side_by_side() } else { layout.one_below_another() }
    }

    pub(crate) fn is_side_by_side(&self, columns: usize, screen: usize) -> bool {
        layout::is_side_by_side(&self.lines, columns, screen)
    }

    pub(crate) fn margin(&self) -> u16 {
        layout::margin(&self.lines)
    }

    /// Returns a line with `+`, `-` or a space before it, as in a patch; `None` if there is no line with this index.
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

    fn push(&mut self, kind: Kind, [old, new]: [Option<u64>; 2], line: &str) {
        let numbers = match kind {
            Kind::Same => [old, new],
            Kind::Added => [None, new],
            Kind::Removed => [old, None],
            Kind::Gap | Kind::Note => [None, None],
        };
        let text = SafeText::exact(line.strip_suffix('\n').unwrap_or(line));
        self.lines.push(DiffLine { kind, numbers, text, words: Vec::new(), kinds: Vec::new() });
    }

    fn note(&mut self, words: &str) {
        self.push(Kind::Note, [None; 2], words);
    }

    fn gap(&mut self) {
        self.push(Kind::Gap, [None; 2], "⋮");
    }
}

#[cfg(test)]
mod tests;
