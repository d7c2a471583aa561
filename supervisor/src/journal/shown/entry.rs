//! Entries: a log as it is shown, before it has a form.

use jiff::Timestamp;

/// The most lines of a text that is cut.
const MOST_LINES: usize = 24;

/// The most characters of a text that is cut.
const MOST_CHARS: usize = 4000;

const LONGEST_TITLE: usize = 300;

/// The deepest indentation: an id in a log may name any level.
const DEEPEST: usize = 9;

#[derive(Debug)]
pub(crate) struct ShownText {
    pub(super) session: String,
    /// Facts about it, each with its name.
    pub(super) facts: Vec<(&'static str, String)>,
    /// The faults of its log, as sentences. They come first.
    pub(super) warnings: Vec<String>,
    pub(super) entries: Vec<ShownEntry>,
    /// Its account, a line for each part.
    pub(super) totals: Vec<String>,
}

/// One event. Its texts come from models, files and commands: each form escapes them.
#[derive(Debug)]
pub(super) struct ShownEntry {
    /// The level of its agent, by which it is indented.
    pub level: usize,
    pub kind: EntryKind,
    pub time_ms: u64,
    /// One line that describes the entry. Each form escapes it, and keeps it to one line.
    pub title: String,
    pub parts: Vec<ShownPart>,
}

/// The kind of an entry, by which it is marked and coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Message,
    Reply,
    /// A call that begins.
    Call,
    Success,
    /// A call that failed, or was denied.
    Failure,
    /// A denial, or something that was restored.
    Denial,
    /// A request for an approval, or its answer.
    Approval,
    Agent,
    Plan,
    Notice,
}

#[derive(Debug)]
pub(super) struct ShownPart {
    pub text: String,
    /// A name for it, unless the entry's title describes it.
    pub label: Option<String>,
    /// True if it shows only on demand.
    pub folded: bool,
    /// The part that was cut off, in words.
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

    /// The class of its element.
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

    /// Adds a text, unless it is empty.
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
    /// A text that is never folded.
    pub(super) fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), label: None, folded: false, left_out: None }
    }

    /// A text that is cut, unless everything is wanted.
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

    /// Sets the name of a text.
    pub(super) fn named(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// Hides a text until it is asked for.
    pub(super) fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    pub(super) fn size(&self) -> String {
        lines(self.text.lines().count())
    }
}

/// The rest of a text, in words.
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

/// A moment in a form of `strftime`; empty for one that no calendar has.
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
