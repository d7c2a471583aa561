//! The Markdown form of a session: a heading for each entry, and the entry's texts in fenced blocks.
//!
//! Replies are fenced too. Otherwise a reply's headings would look like the headings of entries, and a viewer would
//! fetch the reply's pictures.

use std::fmt::Write;

use tui::text::SafeText;

use super::entry::{ShownEntry, ShownPart, ShownText};

pub(crate) fn markdown(shown: &ShownText) -> String {
    let mut out = format!("# Session {}\n\n", escaped(&shown.session));
    for warning in &shown.warnings {
        add(&mut out, "", &format!("**{}**\n", escaped(warning)));
    }
    for (name, value) in &shown.facts {
        add(&mut out, "", &format!("- {name}: {}", escaped(value)));
    }
    for entry in &shown.entries {
        out.push('\n');
        write(&mut out, entry);
    }
    out.push_str("\n## Spent\n\n");
    for total in &shown.totals {
        add(&mut out, "", &format!("- {}", escaped(total)));
    }
    out
}

fn write(out: &mut String, entry: &ShownEntry) {
    // A sub-agent's entries are quoted once for each level. A fence inside a quotation cannot go beyond it.
    let quote = "> ".repeat(entry.level);
    add(out, &quote, &format!("### {} {} {}", entry.kind.mark(), entry.time(), escaped(&entry.title)));
    for part in &entry.parts {
        write_part(out, &quote, part);
    }
}

fn write_part(out: &mut String, quote: &str, part: &ShownPart) {
    add(out, quote, "");
    let label = part.label.as_deref().map(escaped);
    if part.folded {
        let label = label.unwrap_or_default();
        add(out, quote, &format!("*{label}: {}, folded; `--full` shows it*", part.size()));
        return;
    }
    if let Some(label) = label {
        add(out, quote, &format!("*{label}*\n{quote}"));
    }
    let safe = SafeText::exact(&part.text);
    let fence = "`".repeat((longest_run(safe.as_str()) + 1).max(3));
    add(out, quote, &format!("{fence}text"));
    safe.as_str().lines().for_each(|row| add(out, quote, row));
    add(out, quote, &fence);
    if let Some(left_out) = &part.left_out {
        add(out, quote, &format!("\n{quote}*{left_out}; `--full` shows them*"));
    }
}

/// Returns the length of the longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

fn add(out: &mut String, before: &str, text: &str) {
    let _ = writeln!(out, "{before}{text}");
}

/// Returns a text in one line with all characters escaped that have a meaning in Markdown (`CommonMark` 0.31, 2.4).
fn escaped(untrusted: &str) -> String {
    let safe = SafeText::line(untrusted);
    let mut escaped = String::with_capacity(safe.len());
    for c in safe.as_str().chars() {
        if c.is_ascii_punctuation() && !"-.,:;/()' ".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
