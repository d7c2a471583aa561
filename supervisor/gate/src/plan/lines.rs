//! Splits a plan file into lines of different kinds.
//!
//! Fenced blocks are recognised wherever they begin. A comment is a block of its own, from `<!--` at the beginning of a
//! line to `-->` at the end of one.

use std::ops::Range;

use super::error::PlanError;

/// Distance between tab stops, in columns.
const TAB: usize = 4;

/// Maximum indentation of a heading, a fence or a comment, in columns.
const MOST_INDENT: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct PlanLine<'a> {
    pub range: Range<usize>,
    pub text: &'a str,
    pub kind: LineKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    Comment,
    Heading(usize),
    /// Opening line of a fenced block, which may begin after the marker of a list item.
    Opening,
    /// A line of code, or the closing line of a fenced block.
    Fenced,
    Text,
}

#[derive(Clone, Copy)]
struct Fence {
    column: usize,
    length: usize,
    mark: char,
}

enum Inside {
    Nothing,
    Fence(Fence, usize),
    Comment(usize),
}

impl PlanLine<'_> {
    pub(super) fn is_void(&self) -> bool {
        matches!(self.kind, LineKind::Blank | LineKind::Comment)
    }

    pub(super) fn heading(&self) -> &str {
        self.text.trim_start_matches('#').trim()
    }
}

/// Splits a plan file into lines. Fails for control characters, unclosed fences and comments, and code left of its
/// fence.
pub(super) fn scan(source: &str) -> Result<Vec<PlanLine<'_>>, PlanError> {
    let mut lines = Vec::new();
    let mut inside = Inside::Nothing;
    let mut start = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    for (index, whole) in source.get(start..).unwrap_or_default().split_inclusive('\n').enumerate() {
        let text = whole.strip_suffix('\n').map_or(whole, |line| line.strip_suffix('\r').unwrap_or(line));
        if let Some(c) = text.chars().find(|c| c.is_control() && *c != '\t') {
            let found = format!("expected no control character, found U+{:04X}", u32::from(c));
            return Err(PlanError::at(index, found));
        }
        let kind = kind(text, index, &mut inside)?;
        lines.push(PlanLine { range: start..start + text.len(), text, kind });
        start += whole.len();
    }
    match inside {
        Inside::Nothing => Ok(lines),
        Inside::Fence(fence, index) => {
            let mark: String = std::iter::repeat_n(fence.mark, fence.length).collect();
            Err(PlanError::at(
                index,
                format!("expected a line {mark} that closes this fence, found the end of the file"),
            ))
        }
        Inside::Comment(index) => {
            Err(PlanError::at(index, "expected --> at the end of this comment, found the end of the file"))
        }
    }
}

fn kind(text: &str, index: usize, inside: &mut Inside) -> Result<LineKind, PlanError> {
    match *inside {
        Inside::Fence(fence, _) => {
            if closes(text, fence) {
                *inside = Inside::Nothing;
            } else if !text.trim().is_empty() && indentation(text, 0).0 < fence.column {
                let expected =
                    format!("code indented at least as far as its fence ({} spaces)", fence.column);
                return Err(PlanError::found(index, &expected, text));
            }
            Ok(LineKind::Fenced)
        }
        Inside::Comment(_) => comment(text, text, index, inside),
        Inside::Nothing => outside(text, index, inside),
    }
}

fn outside(text: &str, index: usize, inside: &mut Inside) -> Result<LineKind, PlanError> {
    let (column, bytes) = indentation(text, 0);
    let rest = text.get(bytes..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(LineKind::Blank);
    }
    if column <= MOST_INDENT
        && let Some(after) = rest.strip_prefix("<!")
        && after.starts_with("--")
    {
        *inside = Inside::Comment(index);
        return comment(text, after, index, inside);
    }
    if let Some(level) = heading_level(text) {
        return Ok(LineKind::Heading(level));
    }
    match opening(text) {
        Some(fence) => {
            *inside = Inside::Fence(fence, index);
            Ok(LineKind::Opening)
        }
        None => Ok(LineKind::Text),
    }
}

/// Reads a line of a comment. The comment ends if `rest` contains `-->`. HTML takes `<!-->` for a whole comment.
fn comment(text: &str, rest: &str, index: usize, inside: &mut Inside) -> Result<LineKind, PlanError> {
    let Some((_, after)) = rest.split_once("-->") else { return Ok(LineKind::Comment) };
    *inside = Inside::Nothing;
    if after.trim().is_empty() {
        Ok(LineKind::Comment)
    } else {
        Err(PlanError::found(index, "a new line after -->", text))
    }
}

fn heading_level(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then_some(level)
}

/// Returns the column and the number of bytes after the white space at the beginning of a text that starts in `column`.
pub(super) fn indentation(text: &str, mut column: usize) -> (usize, usize) {
    let mut bytes = 0;
    for byte in text.bytes() {
        match byte {
            b' ' => column += 1,
            b'\t' => column += TAB - column % TAB,
            _ => break,
        }
        bytes += 1;
    }
    (column, bytes)
}

pub(super) fn dedent(text: &str, columns: usize) -> &str {
    let (mut column, mut bytes) = (0, 0);
    for byte in text.bytes() {
        column = match byte {
            b' ' => column + 1,
            b'\t' => column + TAB - column % TAB,
            _ => break,
        };
        if column > columns {
            break;
        }
        bytes += 1;
    }
    text.get(bytes..).unwrap_or_default()
}

fn opening(text: &str) -> Option<Fence> {
    let (mut column, mut rest) = (0, text);
    loop {
        let (behind, bytes) = indentation(rest, column);
        (column, rest) = (behind, rest.get(bytes..)?);
        let Some(length) = marker(rest) else { break };
        (column, rest) = (column + length, rest.get(length..)?);
    }
    let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = rest.trim_start_matches(mark);
    let length = rest.len() - info.len();
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Fence { column, length, mark })
}

/// Returns the length of a list item's marker; `None` unless white space follows it.
fn marker(text: &str) -> Option<usize> {
    let digits = text.bytes().take(10).take_while(u8::is_ascii_digit).count();
    let ends: &[char] = if digits == 0 { &['-', '*', '+'] } else { &['.', ')'] };
    let after = text.get(digits..)?.strip_prefix(ends)?;
    (digits < 10 && after.starts_with([' ', '\t'])).then_some(digits + 1)
}

fn closes(text: &str, fence: Fence) -> bool {
    let (column, bytes) = indentation(text, 0);
    let rest = text.get(bytes..).unwrap_or_default();
    let after = rest.trim_start_matches(fence.mark);
    let is_within = (fence.column..=fence.column + MOST_INDENT).contains(&column);
    is_within && rest.len() - after.len() >= fence.length && after.trim().is_empty()
}
