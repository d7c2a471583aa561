//! Rules for texts in a plan: invisible characters, commands, paths.

use std::path::{Component, Path};

use super::error::quoted;

/// Maximum number of characters in the name of a server or a tool.
const LONGEST_NAME: usize = 64;

/// Returns the first invisible character: one that changes the direction of writing, has no width, or ends a line only
/// in some programs.
fn unseen(text: &str) -> Option<char> {
    let is_unseen = |c: &char| {
        matches!(*c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
    };
    text.chars().find(is_unseen)
}

fn control(text: &str, allowed: &[char]) -> Option<char> {
    text.chars().find(|c| c.is_control() && !allowed.contains(c))
}

fn named(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// Returns the reason why a text is not an acceptance command; `None` if it is one.
pub(super) fn command_fault(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("expected a command, found an empty text".into());
    }
    if let Some(c) = control(text, &['\n', '\t']) {
        return Some(format!("expected a command without control characters, found {}", named(c)));
    }
    let c = unseen(text)?;
    Some(format!("expected a command without invisible characters, found {}", named(c)))
}

/// Returns the reason why a text is not the name of a server or a tool; `None` if it is one.
pub(super) fn name_fault(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !text.is_empty() && text.len() <= LONGEST_NAME && text.chars().all(is_plain);
    (!is_name).then(|| {
        format!(
            "expected a name of at most {LONGEST_NAME} letters, digits, _, - and ., found {}",
            quoted(text)
        )
    })
}

/// Returns the reason why a text is not a path; `None` if it is one.
pub(super) fn path_fault(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("expected a path, found an empty text".into());
    }
    if let Some(c) = control(text, &[]).or_else(|| unseen(text)) {
        return Some(format!("expected a path of visible characters, found {}", named(c)));
    }
    let climbs = Path::new(text).components().any(|part| part == Component::ParentDir);
    climbs.then(|| format!("expected a path without .. components, found {}", quoted(text)))
}
