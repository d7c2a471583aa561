//! Positions of a plan's fields in its file, in bytes. They let an edit of one field leave all other bytes unchanged.

use std::ops::Range;

use super::lines::{LineKind, PlanLine};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub title: Range<usize>,
    pub context: Option<Section>,
    pub rights: Option<Section>,
    pub on_failure: Option<Section>,
    pub steps_heading: usize,
    pub steps: Vec<StepLayout>,
    /// Ranges of comments. Neighbouring comment lines are one range.
    pub comments: Vec<Range<usize>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub heading: Range<usize>,
    pub content: Option<Range<usize>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepLayout {
    pub heading: Range<usize>,
    pub number: Range<usize>,
    pub title: Range<usize>,
    pub description: Option<Range<usize>>,
    /// Range of the list of files, with the label `Files:`.
    pub files: Option<Range<usize>>,
    pub acceptance: Option<Range<usize>>,
    pub end: usize,
}

pub(super) fn heading_text(line: &PlanLine<'_>) -> Range<usize> {
    let text = line.heading();
    let before = line.text.len() - line.text.trim_start_matches('#').trim_start().len();
    let start = line.range.start + before;
    start..start + text.len()
}

pub(super) fn content(lines: &[PlanLine<'_>], range: Range<usize>) -> Option<Range<usize>> {
    let mut within = lines.get(range)?.iter().filter(|line| !line.is_void());
    let first = within.next()?;
    let last = within.next_back().unwrap_or(first);
    Some(first.range.start..last.range.end)
}

pub(super) fn text(lines: &[PlanLine<'_>], range: Range<usize>) -> String {
    let within = lines.get(range).unwrap_or_default();
    let first = within.iter().position(|line| !line.is_void()).unwrap_or(within.len());
    let last = within.iter().rposition(|line| !line.is_void()).map_or(first, |last| last + 1);
    let kept = within.get(first..last).unwrap_or_default().iter();
    let kept: Vec<_> = kept.filter(|line| line.kind != LineKind::Comment).map(|line| line.text).collect();
    kept.join("\n")
}
