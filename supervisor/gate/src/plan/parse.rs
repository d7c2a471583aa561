use std::ops::Range;

use protocol::plan::{OnFailure, Plan, PlanRights};

use super::MOST_BYTES;
use super::error::{PlanError, quoted};
use super::items::items;
use super::layout::{Layout, Section, content, heading_text, text};
use super::lines::{LineKind, PlanLine, scan};
use super::span;
use super::steps::steps;
use super::words::{name_fault, path_fault};

/// Headings of the sections that are part of the plan. Other sections are ignored.
const SECTIONS: [&str; 4] = ["Context", "Rights", "On failure", "Steps"];

pub(super) fn parse(source: &str) -> Result<(Plan, Layout), PlanError> {
    if source.len() > MOST_BYTES {
        let found = format!("expected a plan of at most {MOST_BYTES} bytes, found {}", source.len());
        return Err(PlanError::at(0, found));
    }
    let lines = scan(source)?;
    let title = title(&lines)?;
    let mut plan = Plan { title: heading(&lines, title).to_owned(), ..Plan::default() };
    let mut layout = Layout {
        title: lines.get(title).map(heading_text).unwrap_or_default(),
        comments: comments(&lines),
        ..Layout::default()
    };
    for (at, range) in sections(&lines, title + 1)? {
        section(&lines, at, range, &mut plan, &mut layout)?;
    }
    if layout.steps.is_empty() {
        return Err(PlanError::at(
            lines.len().saturating_sub(1),
            "expected a section ## Steps, found the end of the file",
        ));
    }
    Ok((plan, layout))
}

fn heading<'a>(lines: &'a [PlanLine<'_>], index: usize) -> &'a str {
    lines.get(index).map(PlanLine::heading).unwrap_or_default()
}

fn title(lines: &[PlanLine<'_>]) -> Result<usize, PlanError> {
    let Some((index, line)) = lines.iter().enumerate().find(|(_, line)| !line.is_void()) else {
        return Err(PlanError::at(0, "expected a title \"# …\", found no text"));
    };
    if line.kind != LineKind::Heading(1) {
        return Err(PlanError::found(index, "a title \"# …\"", line.text));
    }
    if line.heading().is_empty() {
        return Err(PlanError::at(index, "expected a title after #, found nothing"));
    }
    Ok(index)
}

fn sections(lines: &[PlanLine<'_>], from: usize) -> Result<Vec<(usize, Range<usize>)>, PlanError> {
    let mut sections: Vec<(usize, Range<usize>)> = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(from) {
        match (line.kind, sections.last_mut()) {
            (LineKind::Heading(1), _) => {
                return Err(PlanError::found(
                    index,
                    "only one title, followed by sections \"## …\"",
                    line.text,
                ));
            }
            (LineKind::Heading(2), _) => sections.push((index, index + 1..index + 1)),
            (_, Some((_, range))) => range.end = index + 1,
            (LineKind::Blank | LineKind::Comment, None) => {}
            (_, None) => return Err(PlanError::found(index, "a section \"## …\"", line.text)),
        }
    }
    Ok(sections)
}

fn section(
    lines: &[PlanLine<'_>],
    at: usize,
    range: Range<usize>,
    plan: &mut Plan,
    layout: &mut Layout,
) -> Result<(), PlanError> {
    let heading = lines.get(at).map(|line| line.range.clone()).unwrap_or_default();
    let place = Section { heading: heading.clone(), content: content(lines, range.clone()) };
    let name = known(lines, at)?;
    let is_second = match name {
        Some("Context") => {
            plan.context = text(lines, range);
            layout.context.replace(place).is_some()
        }
        Some("Rights") => {
            plan.rights = Some(rights(lines, at, range)?);
            layout.rights.replace(place).is_some()
        }
        Some("On failure") => {
            plan.on_failure = Some(on_failure(lines, at, range)?);
            layout.on_failure.replace(place).is_some()
        }
        Some(_) if layout.steps.is_empty() => {
            (plan.steps, layout.steps) = steps(lines, at, range)?;
            layout.steps_heading = heading.start;
            false
        }
        Some(_) => true,
        None => false,
    };
    match name {
        Some(name) if is_second => {
            Err(PlanError::at(at, format!("expected one section ## {name}, found a second one")))
        }
        _ => Ok(()),
    }
}

/// Returns the section of [`SECTIONS`] that a heading names, if any. Fails for another spelling of its name.
fn known(lines: &[PlanLine<'_>], at: usize) -> Result<Option<&'static str>, PlanError> {
    let found = heading(lines, at);
    let bare = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let meant = SECTIONS.into_iter().find(|name| bare(name) == bare(found));
    match meant {
        Some(name) if name != found => Err(PlanError::found(at, &format!("## {name}"), found)),
        meant => Ok(meant),
    }
}

fn rights(lines: &[PlanLine<'_>], at: usize, range: Range<usize>) -> Result<PlanRights, PlanError> {
    const EXPECTED: &str = "\"- write: PATH\", \"- network: on\" or \"- server: NAME\"";
    let (items, end) = items(lines, range.clone());
    nothing_after(lines, end..range.end, EXPECTED)?;
    if items.is_empty() {
        return Err(PlanError::at(at, format!("expected {EXPECTED} below this heading, found nothing")));
    }
    let (mut rights, mut network) = (PlanRights::default(), None);
    for item in items {
        let line = item.one_line(EXPECTED)?;
        let (word, value) =
            line.split_once(':').ok_or_else(|| PlanError::found(item.line, EXPECTED, line))?;
        let value = value.trim();
        match (word.trim(), value) {
            ("write", path) => {
                let path = span::code(path).unwrap_or(path);
                path_fault(path).map_or(Ok(()), |fault| Err(PlanError::at(item.line, fault)))?;
                rights.write.push(path.to_owned());
            }
            ("server" | "tool", name) => {
                let name = span::code(name).unwrap_or(name);
                name_fault(name).map_or(Ok(()), |fault| Err(PlanError::at(item.line, fault)))?;
                let names = if word.trim() == "server" { &mut rights.servers } else { &mut rights.tools };
                names.push(name.to_owned());
            }
            ("network", _) if network.is_some() => {
                return Err(PlanError::at(item.line, "expected only one network item, found a second one"));
            }
            ("network", "on" | "off") => network = Some(value == "on"),
            ("network", _) => return Err(PlanError::found(item.line, "network: on or network: off", value)),
            (word, _) => {
                return Err(PlanError::found(
                    item.line,
                    "one of these kinds of access: write, network, server, tool",
                    word,
                ));
            }
        }
    }
    rights.network = network.unwrap_or_default();
    Ok(rights)
}

fn on_failure(lines: &[PlanLine<'_>], at: usize, range: Range<usize>) -> Result<OnFailure, PlanError> {
    const EXPECTED: &str = "one of these words: stop, retry, replan";
    let mut words = lines.iter().enumerate().take(range.end).skip(range.start);
    let mut next = || words.find(|(_, line)| !line.is_void());
    let Some((index, line)) = next() else {
        return Err(PlanError::at(at, format!("expected {EXPECTED}, found nothing")));
    };
    if let Some((index, line)) = next() {
        return Err(PlanError::found(index, EXPECTED, line.text));
    }
    let all = [OnFailure::Stop, OnFailure::Retry, OnFailure::Replan];
    let found = all.into_iter().find(|word| word.as_str() == line.text.trim());
    found.ok_or_else(|| PlanError::found(index, EXPECTED, line.text))
}

/// Fails if a line of the range has content. Comments do not count.
pub(super) fn nothing_after(
    lines: &[PlanLine<'_>],
    range: Range<usize>,
    expected: &str,
) -> Result<(), PlanError> {
    let mut rest = lines.iter().enumerate().take(range.end).skip(range.start);
    match rest.find(|(_, line)| !line.is_void()) {
        Some((index, line)) => {
            Err(PlanError::at(index, format!("expected {expected}, found {}", quoted(line.text))))
        }
        None => Ok(()),
    }
}

fn comments(lines: &[PlanLine<'_>]) -> Vec<Range<usize>> {
    let mut comments: Vec<Range<usize>> = Vec::new();
    let mut was_comment = false;
    for line in lines {
        let is_comment = line.kind == LineKind::Comment;
        match comments.last_mut() {
            Some(last) if is_comment && was_comment => last.end = line.range.end,
            _ if is_comment => comments.push(line.range.clone()),
            _ => {}
        }
        was_comment = is_comment;
    }
    comments
}
