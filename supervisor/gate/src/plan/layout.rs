//! Positions of a plan's fields in its file, in bytes, so that an edit of one field leaves all other bytes unchanged.

use std::ops::Range;

use super::lines::{LineKind, PlanLine};

/// Positions of all fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub title: Range<usize>,
    /// The section of the context, if there is one.
    pub context: Option<Section>,
    pub rights: Option<Section>,
    /// The section that says how to handle failures.
    pub on_failure: Option<Section>,
    /// The start of the heading above the steps.
    pub steps_heading: usize,
    pub steps: Vec<StepLayout>,
    /// Each comment; neighbouring lines are one.
    pub comments: Vec<Range<usize>>,
}

/// Position of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub heading: Range<usize>,
    /// From the first to the last line with content.
    pub content: Option<Range<usize>>,
}

/// Positions of the fields of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepLayout {
    pub heading: Range<usize>,
    pub number: Range<usize>,
    pub title: Range<usize>,
    pub description: Option<Range<usize>>,
    /// The list of files, with its label.
    pub files: Option<Range<usize>>,
    /// The list of acceptance commands and criteria, with its label.
    pub acceptance: Option<Range<usize>>,
    /// The end of the last line with content.
    pub end: usize,
}

pub(super) fn heading_text(line: &PlanLine<'_>) -> Range<usize> {
    let text = line.heading();
    let before = line.text.len() - line.text.trim_start_matches('#').trim_start().len();
    let start = line.range.start + before;
    start..start + text.len()
}

/// Returns the range from the first to the last line with content.
pub(super) fn content(lines: &[PlanLine<'_>], range: Range<usize>) -> Option<Range<usize>> {
    let mut within = lines.get(range)?.iter().filter(|line| !line.is_void());
    let first = within.next()?;
    let last = within.next_back().unwrap_or(first);
    Some(first.range.start..last.range.end)
}

/// Returns the text of these lines without comments, and without blank lines at both ends.
pub(super) fn text(lines: &[PlanLine<'_>], range: Range<usize>) -> String {
    let within = lines.get(range).unwrap_or_default();
    let first = within.iter().position(|line| !line.is_void()).unwrap_or(within.len());
    let last = within.iter().rposition(|line| !line.is_void()).map_or(first, |last| last + 1);
    let kept = within.get(first..last).unwrap_or_default().iter();
    let kept: Vec<_> = kept.filter(|line| line.kind != LineKind::Comment).map(|line| line.text).collect();
    kept.join("\n")
}
