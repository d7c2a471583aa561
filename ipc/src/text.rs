//! Text of others, for a terminal of ours; bytes as text.

use std::fmt::Write;

/// Makes control characters visible, but line ends and tabs: hostile text must not command the terminal.
pub fn harmless(text: &str) -> String {
    let visible = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(c));
    if text.chars().all(visible) {
        return text.to_owned();
    }
    text.chars().map(|c| if visible(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// Also escapes line ends and tabs: a foreign name makes no line of its own.
pub fn one_line(name: &str) -> String {
    harmless(name).replace('\n', "\\n").replace('\t', "\\t")
}

/// Writes each byte as two hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bidirectional controls and zero-width characters: what they show is not what is there.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_has_two_digits() {
        assert_eq!(hexadecimal(&[0, 0x0a, 0xff]), "000aff");
        assert_eq!(hexadecimal(&[]), "");
    }

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(one_line("a\n::stop::\tb\x1b"), r"a\n::stop::\tb\u{1b}");
    }

    #[test]
    fn escape_sequences_and_bidi_controls_become_visible() {
        assert_eq!(harmless("a\x1b]0;t\x07b\n\tc"), "a\\u{1b}]0;t\\u{7}b\n\tc");
        assert_eq!(harmless("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(harmless("ünï 漢"), "ünï 漢");
    }
}
