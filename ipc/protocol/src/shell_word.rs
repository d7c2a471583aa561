//! Quoting of words in commands that are printed for a person to paste into a shell.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Returns `text` as one word of bash, zsh or ksh.
///
/// The word consists of letters and printable ASCII, which no terminal or sanitiser changes.
pub fn shell_word(text: impl AsRef<OsStr>) -> String {
    let bytes = text.as_ref().as_bytes();
    match text.as_ref().to_str() {
        Some("") => "''".to_owned(),
        Some(text) if text.chars().all(is_plain) => text.to_owned(),
        Some(text) if text.chars().all(is_printable) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => ansi_c(bytes),
    }
}

/// True if the character has no special meaning to a shell at any position in a word.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "/._-+:@%,=".contains(c)
}

fn is_printable(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric()
}

/// Quotes bytes in ANSI-C form (bash(1), QUOTING), which can represent every byte.
fn ansi_c(bytes: &[u8]) -> String {
    let mut word = "$'".to_owned();
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => {
                word.push('\\');
                word.push(char::from(*byte));
            }
            b' '..=b'~' => word.push(char::from(*byte)),
            // Writing to a String cannot fail. Octal numbers have a fixed width, so they do not take in a digit that
            // follows.
            _ => drop(write!(word, "\\{byte:03o}")),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_words_that_need_quotes_have_them() {
        let cases = [
            ("/srv/a-b_c.d", "/srv/a-b_c.d"),
            ("/srv/über", "/srv/über"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("~/x", "'~/x'"),
            ("a\nb'\\", r"$'a\012b\'\\'"),
            ("\u{202e}x", r"$'\342\200\256x'"),
        ];
        for (text, word) in cases {
            assert_eq!(shell_word(text), word);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bash_reads_back_the_same_bytes(bytes in proptest::collection::vec(1..=255_u8, 0..24)) {
            let text = OsString::from_vec(bytes.clone());
            let line = format!("printf %s {}", shell_word(&text));
            let output = Command::new("bash").args(["-c", &line]).output().unwrap();
            prop_assert_eq!(output.stdout, bytes);
        }
    }
}
