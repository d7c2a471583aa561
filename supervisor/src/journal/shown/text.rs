//! The text form of a session: a mark and a title for each entry, then the entry's texts behind a rule.

use tui::text::{Columns, SafeText, Wrap, wrap};

use super::entry::{ShownEntry, ShownPart, ShownText};

/// The rule before each line of an untrusted text. With it, the text cannot imitate a title.
const RULE: &str = "│ ";

/// Minimum width of a text in columns.
const NARROWEST: usize = 20;

/// Returns a session as text. Invisible characters and terminal controls are escaped. With `columns`, lines are broken
/// at that width.
pub(crate) fn text(shown: &ShownText, columns: Option<usize>) -> String {
    let mut sheet = Sheet { text: String::new(), columns, is_live: false };
    sheet.line("", &format!("session {}", line(&shown.session)));
    for (name, value) in &shown.facts {
        sheet.line("", &format!("{name}: {}", line(value)));
    }
    for warning in &shown.warnings {
        sheet.line("! ", &line(warning));
    }
    for entry in &shown.entries {
        sheet.text.push('\n');
        sheet.entry(entry);
    }
    sheet.text.push('\n');
    for total in &shown.totals {
        sheet.line("", &line(total));
    }
    sheet.text
}

/// Returns one entry of a running session as text, without folded parts.
pub(super) fn entry_text(entry: &ShownEntry, columns: Option<usize>) -> String {
    let mut sheet = Sheet { text: String::new(), columns, is_live: true };
    sheet.entry(entry);
    sheet.text
}

/// Breaks a trusted text at blanks. Continuation lines are indented.
pub(crate) fn broken(text: &str, columns: Option<usize>) -> String {
    let mut sheet = Sheet { text: String::new(), columns, is_live: true };
    text.lines().for_each(|line| sheet.line("", line));
    sheet.text
}

struct Sheet {
    text: String,
    columns: Option<usize>,
    is_live: bool,
}

impl Sheet {
    fn entry(&mut self, entry: &ShownEntry) {
        let indent = "  ".repeat(entry.level);
        let before = format!("{indent}{} ", entry.kind.mark());
        self.line(&before, &format!("{} {}", entry.time(), line(&entry.title)));
        for part in &entry.parts {
            self.part(&indent, part);
        }
    }

    fn part(&mut self, indent: &str, part: &ShownPart) {
        let label = part.label.as_deref().map(line);
        let beside = format!("{indent}  ");
        if part.folded && self.is_live {
            return;
        }
        if part.folded {
            let label = label.unwrap_or_default();
            self.line(&beside, &format!("[{label}: {}, folded; --full shows it]", part.size()));
            return;
        }
        if let Some(label) = label {
            self.line(&beside, &format!("[{label}]"));
        }
        let rule = format!("{indent}{RULE}");
        for row in SafeText::exact(&part.text).as_str().lines() {
            self.rows(&rule, &rule, row);
        }
        if let Some(left_out) = &part.left_out {
            let how = if self.is_live { "bailiwick show --full shows them" } else { "--full shows them" };
            self.line(&beside, &format!("[{left_out}; {how}]"));
        }
    }

    /// Adds a line of trusted text after `before`. Continuation lines are indented more than the mark in `before`.
    fn line(&mut self, before: &str, text: &str) {
        let rest = " ".repeat(before.chars().count() + 4);
        self.rows(before, &rest, text);
    }

    /// Breaks a line into rows. The first row begins with `first`, and all others with `rest`.
    fn rows(&mut self, first: &str, rest: &str, text: &str) {
        let Some(columns) = self.columns else { return self.row(first, text) };
        let room = |before: &str| columns.saturating_sub(before.chars().count()).max(NARROWEST);
        let mut rows = Vec::new();
        let widths = Columns { first: room(first), rest: room(rest) };
        wrap(text, 0, widths, Wrap::Words, &mut rows);
        for row in rows {
            let before = if row.first { first } else { rest };
            // Spaces at the end of a row may exceed the width.
            self.row(before, text.get(row.start..row.end).unwrap_or_default().trim_end());
        }
    }

    fn row(&mut self, before: &str, text: &str) {
        for part in [before, text, "\n"] {
            self.text.push_str(part);
        }
    }
}

fn line(untrusted: &str) -> String {
    SafeText::line(untrusted).as_str().to_owned()
}
