//! A reply as text: its code blocks, and the positions at which a call may begin.

/// Maximum number of bytes before a code block that can introduce a call.
const LONGEST_LEAD: usize = 600;

/// Words of an explanation. A code block that follows them is not taken for a call.
const EXPLAINING: [&str; 17] = [
    "looks like",
    "look like",
    "for example",
    "an example",
    "example of",
    "for instance",
    "e.g.",
    "format",
    "syntax",
    "schema",
    "would ",
    "written as",
    "is called with",
    "called like",
    "in general",
    "such as",
    "documented",
];

/// Labels of code blocks that may contain a call.
const LABELS: [&str; 9] = ["", "json", "json5", "jsonc", "xml", "text", "txt", "plaintext", "python"];

/// Words that begin a call even in the middle of a line.
const MARKS: [&str; 3] = ["to=functions.", "functions.", "assistantcommentary"];

pub(super) struct ReplyPage<'a> {
    text: &'a str,
    lines: Vec<PageLine<'a>>,
}

struct PageLine<'a> {
    at: usize,
    text: &'a str,
    kind: ReplyLineKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplyLineKind {
    Words,
    /// A quoted or indented line, or one in a code block.
    Quoted,
    Opens,
    Closes,
}

pub(super) struct CallPlace<'a> {
    pub(super) before: &'a str,
    pub(super) rest: &'a str,
    pub(super) begins_line: bool,
}

pub(super) struct CodeBlock<'a> {
    pub(super) before: &'a str,
    label: &'a str,
    pub(super) text: &'a str,
}

impl CodeBlock<'_> {
    /// True if the label of the code block says that it contains a call.
    pub(super) fn is_for_calls(&self) -> bool {
        self.label.starts_with("tool") || self.label.starts_with("function_call")
    }
}

impl<'a> ReplyPage<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let text = without_thoughts(text);
        let mut fence: Option<&str> = None;
        let mut at = 0;
        let mut before_is_blank = true;
        let line = |line: &'a str| {
            let start = at;
            at += line.len();
            let trimmed = without_action(line.trim());
            let kind = match fence {
                Some(open)
                    if is_fence(trimmed)
                        && trimmed.starts_with(open)
                        && trimmed.trim_matches(['`', '~']).is_empty() =>
                {
                    fence = None;
                    ReplyLineKind::Closes
                }
                Some(_) => ReplyLineKind::Quoted,
                None if is_fence(trimmed) => {
                    fence = Some(&trimmed[..3]);
                    ReplyLineKind::Opens
                }
                None if trimmed.starts_with('>') => ReplyLineKind::Quoted,
                None if before_is_blank
                    && start > 0
                    && (line.starts_with("    ") || line.starts_with('\t')) =>
                {
                    ReplyLineKind::Quoted
                }
                None => ReplyLineKind::Words,
            };
            before_is_blank = kind == ReplyLineKind::Quoted && fence.is_none() || trimmed.is_empty();
            PageLine { at: start, text: line, kind }
        };
        let lines = text.split_inclusive('\n').map(line).collect();
        Self { text, lines }
    }

    /// Returns the only code block of a text, if it ends the text and may contain a call; else `None`.
    pub(super) fn last_block(&self) -> Option<CodeBlock<'a>> {
        let opens: Vec<_> = self.lines.iter().filter(|line| line.kind == ReplyLineKind::Opens).collect();
        let [open] = opens[..] else { return None };
        let from = open.at + open.text.len();
        let last = self.lines.iter().rfind(|line| !line.text.trim().is_empty())?;
        let end = match last.kind {
            ReplyLineKind::Closes => last.at,
            ReplyLineKind::Quoted => self.text.len(),
            ReplyLineKind::Words if is_end(last.text) => {
                self.lines.iter().find(|line| line.kind == ReplyLineKind::Closes)?.at
            }
            ReplyLineKind::Words | ReplyLineKind::Opens => return None,
        };
        let label = without_action(open.text.trim()).trim_start_matches(['`', '~']).trim();
        let block = CodeBlock { before: &self.text[..open.at], label, text: self.text.get(from..end)? };
        (LABELS.contains(&label) || block.is_for_calls()).then_some(block)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = CallPlace<'a>> {
        let words = self.lines.iter().filter(|line| line.kind == ReplyLineKind::Words);
        words.flat_map(PageLine::places).map(|(at, begins_line)| {
            let (before, rest) = self.text.split_at(at);
            CallPlace { before, rest, begins_line }
        })
    }
}

impl PageLine<'_> {
    fn places(&self) -> Vec<(usize, bool)> {
        let first = self.text.len() - self.text.trim_start().len();
        let mut places = Vec::new();
        let mut within_code = false;
        for (at, c) in self.text.char_indices().skip_while(|(at, _)| *at < first) {
            within_code ^= c == '`';
            let begins_line = at == first;
            let is_mark =
                matches!(c, '<' | '[') || MARKS.iter().any(|mark| self.text[at..].starts_with(mark));
            if !within_code && (begins_line || is_mark) {
                places.push((self.at + at, begins_line));
            }
        }
        places
    }
}

/// True if the words before a call may introduce the call: they are few, and do not explain.
pub(super) fn announces(before: &str) -> bool {
    let words = before.trim();
    let paragraph = words.rsplit("\n\n").next().unwrap_or_default().to_lowercase();
    words.len() <= LONGEST_LEAD && !EXPLAINING.iter().any(|explaining| paragraph.contains(explaining))
}

fn is_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~")
}

/// Removes the word `Action:`, which Command R writes before its code block of calls.
fn without_action(line: &str) -> &str {
    line.strip_prefix("Action:").map(str::trim_start).filter(|rest| is_fence(rest)).unwrap_or(line)
}

/// True for a line with a special token or tag by which a model marks the end of its reply.
fn is_end(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("<|") && line.ends_with("|>") || line.starts_with("</") && line.ends_with('>')
}

/// Removes the thinking that some servers leave at the beginning of a text.
fn without_thoughts(text: &str) -> &str {
    match text.rsplit_once("</think>") {
        Some((thoughts, rest)) if !thoughts.trim_start().starts_with(['`', '>']) => rest,
        _ => text,
    }
}
