//! Part of a block of the transcript: a text, and its rows, which are laid out once per width.

use std::cell::{Ref, RefCell};

use super::code::CodeBlock;
use super::lines::Lines;
use super::look::Look;
use crate::diff::Diff;
use crate::highlight::{CodeRead, Unread};
use crate::markdown::Table;
use crate::text::{Columns, Output, Row, SafeStr, SafeText, Styled, Tone, wrap};

/// Maximum number of columns of a line of prose.
pub(crate) const MEASURE: u16 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Never,
    /// Shows nothing while output is folded: another part summarizes this one.
    Told,
    /// Shows everything while output is folded. While output is unfolded, the next part shows it in full instead.
    Stands,
    /// Shows only the number of hidden rows while thinking is folded.
    Thinking,
    /// Shows this number of rows from the beginning while output is folded.
    Head(usize),
    Tail(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfolded {
    pub thinking: bool,
    pub output: bool,
}

impl Unfolded {
    pub(crate) const fn all(is_open: bool) -> Self {
        Self { thinking: is_open, output: is_open }
    }
}

#[derive(Debug)]
pub(crate) struct Part {
    body: Body,
    look: Look,
    fold: Fold,
    /// Marks before the first row and before the other rows; `None` for the marks that all parts of this look have.
    marks: Option<Box<[SafeText; 2]>>,
    laid: RefCell<LaidPart>,
}

#[derive(Clone, Debug)]
enum Body {
    Text(Styled),
    Code(CodeBlock),
    Output(Output),
    Diff(Box<Diff>),
    Table(Box<Table>),
}

#[derive(Debug, Default)]
struct LaidPart {
    width: u16,
    /// Length in bytes of the text that is laid out; `None` before the first layout.
    len: Option<usize>,
    rows: Vec<Row>,
    /// Text as laid out for one width. Used for tables and diffs, whose text depends on the width.
    text: Styled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Showing {
    pub from: usize,
    pub count: usize,
    /// Number of hidden rows. A line before or after the shown rows says this number.
    pub folded: usize,
    pub marker_first: bool,
}

impl Showing {
    const NOTHING: Self = Self { from: 0, count: 0, folded: 0, marker_first: false };

    pub(crate) const fn height(self) -> usize {
        self.count + (self.folded > 0) as usize
    }
}

impl Part {
    pub(crate) fn new(text: SafeText, look: Look) -> Self {
        Self::styled(text.into(), look)
    }

    pub(crate) fn styled(text: Styled, look: Look) -> Self {
        Self::of(Body::Text(text), look)
    }

    pub(crate) fn table(table: Table, look: Look) -> Self {
        Self::of(Body::Table(Box::new(table)), look)
    }

    pub(crate) fn code(untrusted: &str, language: &str) -> Self {
        Self::of(Body::Code(CodeBlock::new(untrusted, language)), Look::Code)
    }

    pub(crate) fn diff(diff: Diff) -> Self {
        Self::of(Body::Diff(Box::new(diff)), Look::Diff)
    }

    pub(crate) fn output(output: Output) -> Self {
        Self::of(Body::Output(output), Look::Output)
    }

    fn of(body: Body, look: Look) -> Self {
        Self { body, look, fold: Fold::Never, marks: None, laid: RefCell::default() }
    }

    pub(crate) fn copy(&self) -> Self {
        let mut body = self.body.clone();
        match &mut body {
            Body::Code(code) => code.forget_reading(),
            Body::Diff(diff) => diff.forget_reading(),
            Body::Text(_) | Body::Output(_) | Body::Table(_) => {}
        }
        Self { fold: self.fold, marks: self.marks.clone(), ..Self::of(body, self.look) }
    }

    #[must_use]
    pub(crate) fn folded(self, fold: Fold) -> Self {
        Self { fold, ..self }
    }

    #[must_use]
    pub(crate) fn after(self, first: String, rest: String) -> Self {
        let marks = [first, rest].map(|mark| SafeText::line(&mark));
        Self { marks: Some(Box::new(marks)), ..self }
    }

    /// Creates an item of a list; its continuation rows are indented by `columns`.
    pub(crate) fn listed(text: SafeText, columns: usize) -> Self {
        Self::new(text, Look::Notice).after("  ".to_owned(), " ".repeat(columns + 2))
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &SafeText {
        match &self.body {
            Body::Text(text) => text.text(),
            Body::Code(code) => code.styled().text(),
            Body::Output(output) => output.styled().text(),
            Body::Table(_) | Body::Diff(_) => panic!("the text depends on the width"),
        }
    }

    pub(crate) const fn look(&self) -> Look {
        self.look
    }

    pub(crate) const fn fold(&self) -> Fold {
        self.fold
    }

    /// Returns the mark before a row. Marks of deeply nested text take at most half of the width.
    pub(crate) fn mark(&self, row: Row, width: u16) -> SafeStr<'_> {
        let is_first = row.first && (row.start == 0 || self.look.repeats_mark());
        match &self.marks {
            Some(marks) => {
                let marks = &marks[usize::from(!is_first)];
                let mut ends = marks.as_str().char_indices().map(|(at, _)| at);
                marks.slice(0..ends.nth(usize::from(width / 2)).unwrap_or(marks.len()))
            }
            None if is_first => self.look.gutters().0.into(),
            None => self.look.gutters().1.into(),
        }
    }

    /// True if the part has other marks than those of its look.
    pub(super) const fn has_marks(&self) -> bool {
        self.marks.is_some()
    }

    pub(super) fn is_label_of(&self, next: &Self) -> bool {
        let is_label = matches!(&self.body, Body::Text(text) if text.text().as_str().starts_with("╭ "));
        is_label && matches!(next.body, Body::Code(_))
    }

    /// True if the rows of a wrapped line can be joined when they are copied.
    pub(super) const fn joins(&self) -> bool {
        !matches!(self.body, Body::Table(_) | Body::Diff(_))
    }

    /// Returns a line as it was written; `None` if the screen shows it unchanged.
    pub(super) fn written_line(&self, line: usize, width: u16) -> Option<String> {
        match &self.body {
            Body::Code(code) => code.written_line(line),
            Body::Diff(diff) if !self.is_side_by_side(diff, width) => diff.written_line(line),
            _ => None,
        }
    }

    pub(super) fn inner_margin(&self, width: u16) -> u16 {
        match &self.body {
            Body::Diff(diff) if !self.is_side_by_side(diff, width) => diff.margin(),
            _ => 0,
        }
    }

    fn is_side_by_side(&self, diff: &Diff, width: u16) -> bool {
        diff.is_side_by_side(self.left(width, false), usize::from(width))
    }

    pub(crate) fn push(&mut self, untrusted: &str) {
        match &mut self.body {
            Body::Text(text) => text.push_in(untrusted, Tone::default()),
            Body::Code(code) => code.push(untrusted),
            Body::Output(output) => output.push(untrusted),
            Body::Table(_) | Body::Diff(_) => {}
        }
    }

    /// Replaces the text. If the new text starts with the old one, the layout of the old rows is kept.
    pub(crate) fn becomes(&mut self, other: Self) {
        if let (Body::Code(code), Body::Code(new)) = (&mut self.body, &other.body)
            && code.becomes(new)
        {
            return;
        }
        *self = other;
    }

    pub(crate) fn is_plain(&self) -> bool {
        match &self.body {
            Body::Code(code) => code.is_plain(),
            Body::Diff(diff) => diff.is_plain(),
            Body::Text(_) | Body::Output(_) | Body::Table(_) => false,
        }
    }

    pub(crate) fn begin_reading(&mut self, number: u64) -> Option<Unread> {
        match &mut self.body {
            Body::Code(code) if code.is_plain() => Some(code.begin_reading(number)),
            Body::Diff(diff) if diff.is_plain() => Some(diff.begin_reading(number)),
            _ => None,
        }
    }

    pub(crate) fn has_read(&mut self, read: &CodeRead) -> bool {
        match &mut self.body {
            Body::Code(code) => code.has_read(read),
            Body::Diff(diff) => {
                let changes = diff.has_read(read);
                if changes {
                    *self.laid.get_mut() = LaidPart::default();
                }
                changes
            }
            _ => false,
        }
    }

    /// Removes the beginning of a command's output that is longer than `most` bytes.
    pub(crate) fn keep_last(&mut self, most: usize) {
        if let Body::Output(output) = &mut self.body
            && output.styled().text().len() > most
        {
            output.keep_last(most / 2);
            *self.laid.get_mut() = LaidPart::default();
        }
    }

    pub(crate) fn replace(&mut self, text: impl Into<Styled>, look: Look) {
        let fold = self.fold;
        *self = Self::styled(text.into(), look).folded(fold);
    }

    pub(crate) fn set_look(&mut self, look: Look) {
        self.look = look;
        *self.laid.get_mut() = LaidPart::default();
    }

    /// Calls `look` with the text to which the byte ranges of [`rows`](Self::rows) refer.
    pub(crate) fn with_text<T>(&self, width: u16, look: impl FnOnce(&Styled) -> T) -> T {
        self.lay(width);
        match &self.body {
            Body::Text(text) => look(text),
            Body::Code(code) => look(code.styled()),
            Body::Output(output) => look(output.styled()),
            Body::Table(_) | Body::Diff(_) => look(&self.laid.borrow().text),
        }
    }

    pub(crate) fn rows(&self, width: u16) -> Ref<'_, [Row]> {
        self.lay(width);
        Ref::map(self.laid.borrow(), |laid| {
            // The empty row after the last line end is not drawn.
            let open = laid.rows.last().is_some_and(|row| row.first && row.start == row.end);
            laid.rows.get(..laid.rows.len() - usize::from(open)).unwrap_or_default()
        })
    }

    /// True if any row of the part is shown while output is folded.
    pub(crate) fn is_told_here(&self) -> bool {
        let is_empty = match &self.body {
            Body::Text(text) => text.text().is_empty(),
            Body::Output(output) => output.styled().text().is_empty(),
            Body::Code(_) | Body::Diff(_) | Body::Table(_) => false,
        };
        self.fold != Fold::Told && !is_empty
    }

    pub(crate) fn showing(&self, width: u16, unfolded: Unfolded) -> Showing {
        let all = self.rows(width).len();
        let (keep, last) = match self.fold {
            Fold::Never => (all, false),
            Fold::Thinking if unfolded.thinking => (all, false),
            Fold::Thinking => (0, false),
            Fold::Stands if !unfolded.output => (all, false),
            Fold::Told | Fold::Head(_) | Fold::Tail(_) if unfolded.output => (all, false),
            Fold::Stands | Fold::Told => return Showing::NOTHING,
            Fold::Head(keep) => (keep, false),
            Fold::Tail(keep) => (keep, true),
        };
        // Replacing a single hidden row by a line about it would save nothing.
        if all <= keep || (keep > 0 && all == keep + 1) {
            return Showing { from: 0, count: all, folded: 0, marker_first: false };
        }
        let from = if last { all - keep } else { 0 };
        Showing { from, count: keep, folded: all - keep, marker_first: last }
    }

    fn lay(&self, width: u16) {
        let text = match &self.body {
            Body::Text(text) => Some(text),
            Body::Code(code) => Some(code.styled()),
            Body::Output(output) => Some(output.styled()),
            Body::Table(_) | Body::Diff(_) => None,
        };
        let len = text.map_or(0, |text| text.text().len());
        let is_laid = |laid: &LaidPart| laid.width == width && laid.len == Some(len);
        if is_laid(&self.laid.borrow()) {
            return;
        }
        let laid = &mut *self.laid.borrow_mut();
        if laid.width != width || laid.len.is_none() {
            *laid = LaidPart { width, ..LaidPart::default() };
        }
        laid.len = Some(len);
        match (&self.body, text) {
            (Body::Table(table), _) => {
                let Lines { text, rows, .. } = table.lay(self.left(width, false));
                (laid.text, laid.rows) = (text, rows);
            }
            (Body::Diff(diff), _) => {
                let Lines { text, rows, .. } = diff.lay(self.left(width, false), usize::from(width));
                (laid.text, laid.rows) = (text, rows);
            }
            (_, Some(text)) => {
                let from = laid.rows.pop().map_or(0, |row| row.start);
                let columns = Columns { first: self.left(width, true), rest: self.left(width, false) };
                wrap(text.text().as_str(), from, columns, self.look.wrap(), &mut laid.rows);
            }
            (_, None) => {}
        }
    }

    /// Returns the number of columns for text after the marks. Prose is at most [`MEASURE`] columns wide.
    fn left(&self, width: u16, is_first: bool) -> usize {
        let gutter = match &self.marks {
            // Every mark is one column wide.
            Some(marks) => marks[usize::from(!is_first)].as_str().chars().count().min(usize::from(width / 2)),
            None => usize::from(self.look.gutter_columns(is_first)),
        };
        let left = usize::from(width).saturating_sub(gutter).max(1);
        if self.look.is_prose() && !matches!(self.body, Body::Table(_)) {
            left.min(usize::from(MEASURE))
        } else {
            left
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_streams_has_the_rows_of_the_whole() {
        let whole =
            "A line of words that is longer than the row.\n\nAnother one, e\u{301}tude 漢字 at last\n";
        let mut part = Part::new(SafeText::default(), Look::Assistant);
        for c in whole.chars() {
            part.push(&c.to_string());
            drop(part.rows(16));
        }
        let at_once = Part::new(SafeText::prose(whole), Look::Assistant);
        assert_eq!(*part.rows(16), *at_once.rows(16));
        assert_eq!(*part.rows(9), *at_once.rows(9));
        let mut part = Part::output(Output::default());
        let whole =
            "cargo test --package=sizes,parse --features a/b/c:d && echo 'a  long   text' | tee out/of.txt\n";
        for c in whole.chars() {
            part.push(&c.to_string());
            drop(part.rows(16));
        }
        let mut at_once = Part::output(Output::default());
        at_once.push(whole);
        assert_eq!(*part.rows(16), *at_once.rows(16));
    }

    #[test]
    fn a_fold_shows_one_end_and_counts_the_rest() {
        let text: String = (0..10).map(|n| ["line ", &n.to_string(), "\n"].concat()).collect();
        let part = Part::new(SafeText::exact(&text), Look::Output).folded(Fold::Tail(3));
        let folded = part.showing(40, Unfolded::default());
        assert_eq!(folded, Showing { from: 7, count: 3, folded: 7, marker_first: true });
        assert_eq!(part.showing(40, Unfolded { output: true, ..Unfolded::default() }).height(), 10);
        let part = part.folded(Fold::Head(9));
        assert_eq!(part.showing(40, Unfolded::default()).folded, 0, "one row is shown rather than counted");
    }

    #[test]
    fn what_is_shown_by_its_end_is_bounded() {
        let mut part = Part::output(Output::default());
        for n in 0..1000 {
            part.push(&format!("line {n}\n"));
            drop(part.rows(40));
            part.keep_last(500);
        }
        assert!(part.text().len() <= 500 && part.text().as_str().ends_with("line 999\n"));
        let last = *part.rows(40).last().unwrap();
        assert_eq!(&part.text().as_str()[last.start..last.end], "line 999");
    }
}
