use std::ops::Range;

use protocol::plan::{Acceptance, PlanStep};

use super::error::PlanError;
use super::items::{PlanItem, items};
use super::layout::{StepLayout, content, heading_text, text};
use super::lines::{LineKind, PlanLine};
use super::parse::nothing_after;
use super::span;
use super::words::{command_fault, path_fault};
use super::{MOST_COMMANDS, MOST_STEPS};

/// Kind of a list in a step, which the line above the list names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Files,
    Acceptance,
}

impl Label {
    const ALL: [Self; 2] = [Self::Files, Self::Acceptance];

    const fn line(self) -> &'static str {
        match self {
            Self::Files => "Files:",
            Self::Acceptance => "Acceptance:",
        }
    }

    /// Returns the label in a line, if any. Fails for another spelling: commands below that line would be overlooked.
    fn of(index: usize, line: &PlanLine<'_>) -> Result<Option<Self>, PlanError> {
        if !matches!(line.kind, LineKind::Text | LineKind::Heading(_)) {
            return Ok(None);
        }
        if let Some(label) = Self::ALL.into_iter().find(|label| label.line() == line.text.trim_end()) {
            return Ok(Some(label));
        }
        let is_bare = line.text.contains(':') || matches!(line.kind, LineKind::Heading(_));
        let letters = line.text.trim_matches(|c| " \t#*_:".contains(c)).to_lowercase();
        let meant = match letters.as_str() {
            "files" => Self::Files,
            "acceptance" | "acceptance criteria" => Self::Acceptance,
            _ => return Ok(None),
        };
        let expected = format!("a line with only {}, not indented", meant.line());
        if is_bare { Err(PlanError::found(index, &expected, line.text)) } else { Ok(None) }
    }
}

pub(super) fn steps(
    lines: &[PlanLine<'_>],
    at: usize,
    range: Range<usize>,
) -> Result<(Vec<PlanStep>, Vec<StepLayout>), PlanError> {
    let is_heading = |index: &usize| lines.get(*index).is_some_and(|line| line.kind == LineKind::Heading(3));
    let headings: Vec<usize> = range.clone().filter(is_heading).collect();
    let Some(first) = headings.first() else {
        nothing_after(lines, range, "a step \"### 1. …\"")?;
        return Err(PlanError::at(at, "expected a step \"### 1. …\" below this heading, found none"));
    };
    nothing_after(lines, range.start..*first, "a step \"### 1. …\"")?;
    if let Some(index) = headings.get(MOST_STEPS) {
        let found = format!("expected at most {MOST_STEPS} steps, found {}", headings.len());
        return Err(PlanError::at(*index, found));
    }
    let ends = headings.iter().skip(1).copied().chain([range.end]);
    let each = headings.iter().copied().zip(ends).enumerate();
    let read = each.map(|(count, (start, end))| step(lines, count + 1, start..end));
    Ok(read.collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
}

fn step(
    lines: &[PlanLine<'_>],
    number: usize,
    range: Range<usize>,
) -> Result<(PlanStep, StepLayout), PlanError> {
    let (title, mut layout) = step_heading(lines, number, range.start)?;
    let mut step = PlanStep { title, ..PlanStep::default() };
    let (mut label, mut at) = next_label(lines, range.start + 1..range.end)?;
    step.description = text(lines, range.start + 1..at);
    layout.description = content(lines, range.start + 1..at);
    while let Some(found) = label {
        let (list, end) = items(lines, at + 1..range.end);
        let place =
            lines.get(at).zip(lines.get(end - 1)).map(|(first, last)| first.range.start..last.range.end);
        let earlier = match found {
            Label::Files => {
                step.files = files(&list)?;
                std::mem::replace(&mut layout.files, place)
            }
            Label::Acceptance => {
                step.acceptance = acceptance(&list)?;
                std::mem::replace(&mut layout.acceptance, place)
            }
        };
        if earlier.is_some() {
            return Err(PlanError::at(
                at,
                format!("expected only one line {} in a step, found a second one", found.line()),
            ));
        }
        if list.is_empty() {
            return Err(PlanError::at(
                at,
                format!("expected an item \"- …\" below {}, found none", found.line()),
            ));
        }
        (label, at) = next_label(lines, end..range.end)?;
        nothing_after(lines, end..at, "an item \"- …\", Files:, Acceptance: or the next step")?;
    }
    layout.end = content(lines, range).map_or(layout.heading.end, |content| content.end);
    Ok((step, layout))
}

fn step_heading(
    lines: &[PlanLine<'_>],
    number: usize,
    index: usize,
) -> Result<(String, StepLayout), PlanError> {
    let Some(line) = lines.get(index) else {
        return Err(PlanError::at(
            index,
            format!("expected a step \"### {number}. …\", found the end of the file"),
        ));
    };
    let (digits, whole) = (number.to_string(), heading_text(line));
    let after = line.heading().strip_prefix(&digits).and_then(|rest| rest.strip_prefix('.'));
    let after = after.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    let Some(title) = after.map(str::trim) else {
        return Err(PlanError::found(index, &format!("\"### {number}. …\""), line.text));
    };
    if title.is_empty() {
        return Err(PlanError::at(index, format!("expected a title after ### {number}., found nothing")));
    }
    let layout = StepLayout {
        heading: line.range.clone(),
        number: whole.start..whole.start + digits.len(),
        title: whole.end - title.len()..whole.end,
        description: None,
        files: None,
        acceptance: None,
        end: line.range.end,
    };
    Ok((title.to_owned(), layout))
}

fn next_label(lines: &[PlanLine<'_>], range: Range<usize>) -> Result<(Option<Label>, usize), PlanError> {
    for (index, line) in lines.iter().enumerate().take(range.end).skip(range.start) {
        if let Some(label) = Label::of(index, line)? {
            return Ok((Some(label), index));
        }
    }
    Ok((None, range.end))
}

fn files(list: &[PlanItem<'_>]) -> Result<Vec<String>, PlanError> {
    let file = |item: &PlanItem<'_>| {
        let text = item.one_line("the path of a file")?;
        let path = span::code(text).unwrap_or(text);
        path_fault(path).map_or_else(|| Ok(path.to_owned()), |fault| Err(PlanError::at(item.line, fault)))
    };
    list.iter().map(file).collect()
}

fn acceptance(list: &[PlanItem<'_>]) -> Result<Vec<Acceptance>, PlanError> {
    let (mut all, mut commands) = (Vec::new(), 0);
    for item in list {
        let Some(command) = item.command()? else {
            let text = item.text();
            if text.is_empty() {
                return Err(PlanError::at(
                    item.line,
                    "expected a command or a criterion, found an empty item",
                ));
            }
            all.push(Acceptance::Criterion(text));
            continue;
        };
        if let Some(fault) = command_fault(&command) {
            return Err(PlanError::at(item.line, fault));
        }
        commands += 1;
        if commands > MOST_COMMANDS {
            let found = format!("expected at most {MOST_COMMANDS} commands in a step, found more");
            return Err(PlanError::at(item.line, found));
        }
        all.push(Acceptance::Command(command));
    }
    Ok(all)
}
