use std::ops::Range;

use super::error::PlanError;
use super::lines::{LineKind, PlanLine, dedent, indentation};
use super::span;

#[derive(Debug)]
pub(super) struct PlanItem<'a> {
    pub line: usize,
    /// Lines of the item without the list marker, indentation, comments, and blank lines at the end.
    lines: Vec<(LineKind, &'a str)>,
}

pub(super) fn items<'a>(lines: &[PlanLine<'a>], range: Range<usize>) -> (Vec<PlanItem<'a>>, usize) {
    let mut items: Vec<PlanItem<'a>> = Vec::new();
    let (mut end, mut column) = (range.start, 0);
    for (index, line) in lines.iter().enumerate().take(range.end).skip(range.start) {
        let continues = line.kind == LineKind::Fenced || indentation(line.text, 0).0 >= column;
        match (line.kind, items.last_mut()) {
            (LineKind::Comment, _) | (LineKind::Blank, None) => continue,
            (LineKind::Blank, Some(item)) => {
                item.lines.push((LineKind::Blank, ""));
                continue;
            }
            (_, Some(item)) if continues => item.lines.push((line.kind, dedent(line.text, column))),
            _ => match marked(line) {
                Some((behind, content)) => {
                    column = behind;
                    items.push(PlanItem { line: index, lines: vec![(line.kind, content)] });
                }
                None => break,
            },
        }
        end = index + 1;
    }
    for item in &mut items {
        while item.lines.pop_if(|(kind, _)| *kind == LineKind::Blank).is_some() {}
    }
    (items, end)
}

fn marked<'a>(line: &PlanLine<'a>) -> Option<(usize, &'a str)> {
    if !matches!(line.kind, LineKind::Text | LineKind::Opening) {
        return None;
    }
    let (column, bytes) = indentation(line.text, 0);
    let after = line.text.get(bytes..)?.strip_prefix(['-', '*', '+']).filter(|_| column <= 3)?;
    if after.is_empty() {
        return Some((column + 2, after));
    }
    let (behind, bytes) = indentation(after, column + 1);
    (bytes > 0).then(|| (behind, after.get(bytes..).unwrap_or_default()))
}

impl PlanItem<'_> {
    pub(super) fn text(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(|(_, text)| *text).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Returns the text of an item. Fails unless it has exactly one line.
    pub(super) fn one_line(&self, expected: &str) -> Result<&str, PlanError> {
        match self.lines.as_slice() {
            [] => Err(PlanError::at(self.line, format!("expected {expected}, found an empty item"))),
            [(_, text)] => Ok(text.trim()),
            [_, (_, second), ..] => {
                Err(PlanError::found(self.line + 1, &format!("{expected} on one line"), second))
            }
        }
    }

    /// Returns the command of an item that is one code span or one fenced block. Fails for a span of several lines.
    pub(super) fn command(&self) -> Result<Option<String>, PlanError> {
        let [(first, text), rest @ ..] = self.lines.as_slice() else { return Ok(None) };
        if *first == LineKind::Opening && text.starts_with(['`', '~']) {
            return Ok(fenced(rest));
        }
        if rest.is_empty() {
            return Ok(span::code(text.trim()).map(str::to_owned));
        }
        let whole = self.text().replace('\n', " ");
        match span::code(&whole) {
            Some(_) => Err(PlanError::at(
                self.line,
                "expected a command on one line or in a fenced block, found a code span of several lines",
            )),
            None => Ok(None),
        }
    }
}

/// Returns the code of a fenced block; `None` if the item contains anything else.
fn fenced(lines: &[(LineKind, &str)]) -> Option<String> {
    let (_, code) = lines.split_last()?;
    // A second fence would have an opening line.
    let is_one = lines.iter().all(|(kind, _)| *kind == LineKind::Fenced);
    is_one.then(|| code.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n"))
}
