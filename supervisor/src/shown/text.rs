//! The form for a terminal and a pipe: a mark and a title for each entry, and its texts behind a rule.

use std::fmt::Write;

use tui::text::SafeText;

use super::entry::{Entry, Part, Shown};

/// The rule before each line of a text: no text of others stands where a title of ours stands.
const RULE: &str = "│ ";

/// A session as text. Everything that commands a terminal, or does not show, stands as an escape.
pub(crate) fn text(shown: &Shown) -> String {
    let mut out = format!("session {}\n", line(&shown.session));
    for (name, value) in &shown.facts {
        add(&mut out, "", &format!("{name}: {}", line(value)));
    }
    for warning in &shown.warnings {
        add(&mut out, "! ", &line(warning));
    }
    for entry in &shown.entries {
        out.push('\n');
        write(&mut out, entry);
    }
    out.push('\n');
    for total in &shown.totals {
        add(&mut out, "", &line(total));
    }
    out
}

fn write(out: &mut String, entry: &Entry) {
    let indent = "  ".repeat(entry.level);
    add(out, &format!("{indent}{} ", entry.kind.mark()), &format!("{} {}", entry.time(), line(&entry.title)));
    for part in &entry.parts {
        write_part(out, &indent, part);
    }
}

fn write_part(out: &mut String, indent: &str, part: &Part) {
    let label = part.label.as_deref().map(line);
    if part.folded {
        let label = label.unwrap_or_default();
        add(out, indent, &format!("  [{label}: {}, folded; --full shows it]", part.size()));
        return;
    }
    if let Some(label) = label {
        add(out, indent, &format!("  [{label}]"));
    }
    for row in SafeText::exact(&part.text).as_str().lines() {
        add(out, indent, &format!("{RULE}{row}"));
    }
    if let Some(left_out) = &part.left_out {
        add(out, indent, &format!("  [{left_out}; --full shows them]"));
    }
}

fn add(out: &mut String, before: &str, text: &str) {
    // A String takes every write.
    let _ = writeln!(out, "{before}{text}");
}

/// Text of others in one line.
fn line(untrusted: &str) -> String {
    SafeText::line(untrusted).as_str().to_owned()
}
