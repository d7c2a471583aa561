//! Characters that are invisible, or that look like other characters.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

use super::emoji::is_sequence;

/// True for control characters, bidirectional formatting, zero-width characters, variation selectors, tags, fillers and
/// separators.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// True for a skin tone, which changes the emoji before it or is drawn next to it, depending on the terminal.
pub(super) const fn is_modifier(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// True if a character looks like the ASCII space but is not: a shell does not separate words at it.
pub(super) const fn is_other_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// True for a variation selector that only changes the look of the character before it.
pub(super) const fn is_presentation(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Returns the width of a character in columns; 0 for a combining character.
pub(super) fn columns(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// Escapes invisible characters, for a terminal. Line ends, tabs, known emoji and selectors stay.
pub fn printable(text: &str) -> String {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(stays) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        if is_sequence(cluster) {
            shown.push_str(cluster);
            continue;
        }
        for (at, c) in cluster.char_indices() {
            if stays(c) || (at > 0 && is_presentation(c)) {
                shown.push(c);
            } else {
                shown.extend(c.escape_unicode());
            }
        }
    }
    shown
}

/// Escapes invisible characters, for the clipboard. Line ends, tabs, selectors and emoji joiners stay.
pub(crate) fn shown(text: &str) -> String {
    let stays = |c: char| matches!(c, '\n' | '\t' | '\u{200d}') || is_presentation(c) || !is_hidden(c);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) { shown.push(c) } else { shown.extend(c.escape_unicode()) }
    }
    shown
}
