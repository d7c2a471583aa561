//! Text from other programs, made safe to display on a terminal. Bytes as text.

use std::fmt::Write;

/// Escapes control and invisible characters except line ends and tabs, so that text cannot control the terminal.
pub fn harmless(text: &str) -> String {
    let visible = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(c));
    if text.chars().all(visible) {
        return text.to_owned();
    }
    text.chars().map(|c| if visible(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// Escapes control and invisible characters, also line ends and tabs, so that untrusted text stays on one line.
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

/// True for bidirectional controls and zero-width characters, which make a text look different from its content.
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
