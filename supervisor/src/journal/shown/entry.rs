//! Entries: the events of a log in a form for people. Each output form (text, Markdown, HTML) is made from them.

use jiff::Timestamp;

/// Maximum number of lines that remain of a shortened text.
const MOST_LINES: usize = 24;

/// Maximum number of characters that remain of a shortened text.
const MOST_CHARS: usize = 4000;

const LONGEST_TITLE: usize = 300;

/// Maximum depth of the indentation. The id of an agent in a forged log could state any depth.
const DEEPEST: usize = 9;

#[derive(Debug)]
pub(crate) struct ShownText {
    pub(super) session: String,
    /// Facts about the session with their names.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Faults of the log as sentences, which are shown before the entries.
    pub(super) warnings: Vec<String>,
    pub(super) entries: Vec<ShownEntry>,
    /// Lines with the usage totals of the session.
    pub(super) totals: Vec<String>,
}

#[derive(Debug)]
pub(super) struct ShownEntry {
    /// The depth of the agent in the tree of agents. It sets the indentation.
    pub level: usize,
    pub kind: EntryKind,
    pub time_ms: u64,
    /// Description of the entry in one line. Each output form escapes it and keeps it on one line.
    pub title: String,
    pub parts: Vec<ShownPart>,
}

/// The kind of an entry. It decides the mark and colour of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Message,
    Reply,
    Call,
    Success,
    Failure,
    /// A denial, or a restored file.
    Denial,
    Approval,
    Agent,
    Plan,
    Notice,
}

#[derive(Debug)]
pub(super) struct ShownPart {
    pub text: String,
    /// Name of the text; `None` if the title of the entry is enough.
    pub label: Option<String>,
    /// True if the text is hidden until the reader opens it.
    pub folded: bool,
    /// Note about the part that was cut off; `None` if the text is complete.
    pub left_out: Option<String>,
}

impl EntryKind {
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Message => "❯",
            Self::Reply => "●",
            Self::Call => "→",
            Self::Success => "✓",
            Self::Failure | Self::Denial => "✗",
            Self::Approval => "?",
            Self::Agent => "⑂",
            Self::Plan => "☰",
            Self::Notice => "·",
        }
    }

    /// Returns the CSS class of the entry's HTML element.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Reply => "reply",
            Self::Call => "call",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Denial => "denial",
            Self::Approval => "approval",
            Self::Agent => "agent",
            Self::Plan => "plan",
            Self::Notice => "notice",
        }
    }
}

impl ShownEntry {
    pub(super) fn new(kind: EntryKind, level: usize, time_ms: u64, title: impl Into<String>) -> Self {
        let title: String = title.into();
        let mut chars = title.char_indices();
        let title = match chars.nth(LONGEST_TITLE) {
            Some((end, _)) => format!("{}…", title.get(..end).unwrap_or_default()),
            None => title,
        };
        Self { level: level.min(DEEPEST), kind, time_ms, title, parts: Vec::new() }
    }

    pub(super) fn with(mut self, part: ShownPart) -> Self {
        self.add(part);
        self
    }

    pub(super) fn add(&mut self, part: ShownPart) {
        if !part.text.trim().is_empty() {
            self.parts.push(part);
        }
    }

    pub(super) fn time(&self) -> String {
        moment(self.time_ms, "%H:%M:%S")
    }
}

impl ShownPart {
    pub(super) fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), label: None, folded: false, left_out: None }
    }

    pub(super) fn cut(text: &str, full: bool) -> Self {
        let whole = text.trim_end();
        if full {
            return Self::whole(whole);
        }
        let end = whole.char_indices().nth(MOST_CHARS).map_or(whole.len(), |(end, _)| end);
        let cut = whole.get(..end).unwrap_or_default();
        let end = cut.match_indices('\n').nth(MOST_LINES - 1).map_or(end, |(end, _)| end);
        let (kept, rest) = whole.split_at(end);
        Self { left_out: left_out(rest), ..Self::whole(kept) }
    }

    pub(super) fn named(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// Marks a text as folded: hidden until the reader opens it.
    pub(super) fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    pub(super) fn size(&self) -> String {
        lines(self.text.lines().count())
    }
}

/// Returns a note about the size of `rest`, the part of a text that was cut off; `None` if it is empty.
fn left_out(rest: &str) -> Option<String> {
    let rest = rest.trim_start_matches('\n');
    let count = rest.lines().count();
    match count {
        0 => None,
        1 => Some(format!("{} more characters", rest.chars().count())),
        several => Some(format!("{several} more lines")),
    }
}

fn lines(count: usize) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

/// Formats a time by a `strftime` format. Returns an empty text for a time that is out of range.
pub(super) fn moment(time_ms: u64, form: &str) -> String {
    let time = i64::try_from(time_ms).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
    time.map(|time| time.strftime(form).to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_says_how_much_is_missing_and_a_full_one_is_whole() {
        let lines: Vec<_> = (0..100).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n");
        let cut = ShownPart::cut(&text, false);
        assert_eq!((cut.text.lines().count(), cut.left_out.as_deref()), (MOST_LINES, Some("76 more lines")));
        let cut = ShownPart::cut(&"ü".repeat(MOST_CHARS + 3), false);
        assert_eq!(cut.left_out.as_deref(), Some("3 more characters"));
        assert_eq!(ShownPart::cut("a\nb\n", false).left_out, None);
        assert_eq!(ShownPart::cut(&text, true).left_out, None);
        assert_eq!(ShownPart::cut(&text, true).text, text.trim_end());
    }

    #[test]
    fn a_moment_that_no_calendar_has_is_empty() {
        assert_eq!(moment(0, "%Y-%m-%d %H:%M"), "1970-01-01 00:00");
        assert_eq!(moment(u64::MAX, "%Y"), "");
    }
}
