//! Makes a client show text exactly, although clients render texts as Markdown.

use tui::text::{SafeText, printable};

/// Maximum number of characters of a title.
const TITLE: usize = 120;

/// Cuts and escapes a text for a title on one line.
pub(super) fn title(text: &str) -> String {
    tui::cut(text, TITLE)
}

/// Escapes an untrusted text, such as a file name, for use in one line of Bailiwick's own words.
pub(super) fn line(text: &str) -> String {
    SafeText::line(text).as_str().to_owned()
}

pub(super) fn visible(text: &str) -> String {
    printable(text)
}

/// True if a client shows every character of the text.
pub(super) fn is_visible(text: &str) -> bool {
    let tabs = text.replace('\t', "    ").replace("\r\n", "\n");
    SafeText::exact(&tabs).as_str() == tabs
}

/// Returns a code block with the text. Every character is visible, and the text cannot end the block.
pub(super) fn block(text: &str, language: &str) -> String {
    let text = if is_visible(text) { text.to_owned() } else { SafeText::exact(text).as_str().to_owned() };
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// Returns the last part of a text: at most `most` bytes, beginning at a character boundary.
pub(super) fn tail(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_block() {
        assert_eq!(block("ls", "sh"), "```sh\nls\n```");
        assert_eq!(block("a\n````\nb\n", ""), "`````\na\n````\nb\n`````");
    }

    #[test]
    fn an_invisible_character_is_escaped_and_counts() {
        assert!(is_visible("a\tb\n") && is_visible("ä"));
        for hidden in ["a\u{202e}b", "a\u{200b}", "a\u{a0}b", "\u{1b}[8m"] {
            assert!(!is_visible(hidden), "{hidden:?}");
            assert!(block(hidden, "").contains("\\u{"), "{hidden:?}");
        }
    }

    #[test]
    fn a_tail_begins_with_a_character() {
        assert_eq!((tail("aäb", 2), tail("ab", 9)), ("b", "ab"));
    }
}
