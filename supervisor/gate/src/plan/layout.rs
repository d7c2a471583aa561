//! The places of a plan's fields in its file, in bytes: an edit of one field leaves every other byte alone.

use std::ops::Range;

use super::lines::{LineKind, PlanLine};

/// The places of all fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// The text of the title.
    pub title: Range<usize>,
    /// The section of the context, where there is one.
    pub context: Option<Section>,
    /// The section of the rights.
    pub rights: Option<Section>,
    /// The section of the word for failures.
    pub on_failure: Option<Section>,
    /// The beginning of the heading of the steps.
    pub steps_heading: usize,
    /// Each step.
    pub steps: Vec<StepLayout>,
    /// Each comment, line by line.
    pub comments: Vec<Range<usize>>,
}

/// The place of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The line of its heading.
    pub heading: Range<usize>,
    /// From its first line that means something to the last one.
    pub content: Option<Range<usize>>,
}

/// The places of the fields of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepLayout {
    /// The line of its heading.
    pub heading: Range<usize>,
    /// The digits of its number.
    pub number: Range<usize>,
    /// The text of its title.
    pub title: Range<usize>,
    /// The lines of the description.
    pub description: Option<Range<usize>>,
    /// The list of files, with its label.
    pub files: Option<Range<usize>>,
    /// The list of what has to hold, with its label.
    pub acceptance: Option<Range<usize>>,
    /// The end of the last line that means something.
    pub end: usize,
}

/// The bytes of the heading's text.
pub(super) fn heading_text(line: &PlanLine<'_>) -> Range<usize> {
    let text = line.heading();
    let before = line.text.len() - line.text.trim_start_matches('#').trim_start().len();
    let start = line.range.start + before;
    start..start + text.len()
}

/// From the first line that means something to the last one.
pub(super) fn content(lines: &[PlanLine<'_>], range: Range<usize>) -> Option<Range<usize>> {
    let mut within = lines.get(range)?.iter().filter(|line| !line.is_void());
    let first = within.next()?;
    let last = within.next_back().unwrap_or(first);
    Some(first.range.start..last.range.end)
}

/// The text of these lines without comments, and without blank lines at both ends.
pub(super) fn text(lines: &[PlanLine<'_>], range: Range<usize>) -> String {
    let within = lines.get(range).unwrap_or_default();
    let first = within.iter().position(|line| !line.is_void()).unwrap_or(within.len());
    let last = within.iter().rposition(|line| !line.is_void()).map_or(first, |last| last + 1);
    let kept = within.get(first..last).unwrap_or_default().iter();
    let kept: Vec<_> = kept.filter(|line| line.kind != LineKind::Comment).map(|line| line.text).collect();
    kept.join("\n")
}
