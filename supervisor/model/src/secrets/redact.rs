//! Hides the key in everything that is written: replies, errors, the session log, recordings.
//!
//! The key is found in plain text and in JSON, also with escaped characters (`sk\u002d`) and with doubly escaped ones.
//! It is not found in another case, in base64, or with other characters in between.

use memchr::memchr2;
use secrecy::{ExposeSecret, SecretString};

/// Byte that replaces each byte of the key, so that the text keeps its length.
const MASK: u8 = b'*';

/// Minimum length of a key that is hidden, in bytes. For servers that need no key, users set a plain word (`ollama`).
const SHORTEST: usize = 12;

/// Maximum number of backslashes of one escape: enough for JSON within JSON within JSON.
const BACKSLASHES: usize = 4;

/// Hides a secret in a text. The text may arrive in chunks that split the secret.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secret: Option<SecretString>,
    /// Bytes at the end of the last chunk that may begin the secret.
    held: Vec<u8>,
}

/// Result of the comparison of a text's beginning with the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelled {
    Not,
    /// The text ends before the secret is complete.
    Begun,
    Whole(usize),
}

impl Redactor {
    pub fn new(secret: Option<SecretString>) -> Self {
        let secret = secret.filter(|secret| secret.expose_secret().len() >= SHORTEST);
        Self { secret, held: Vec::new() }
    }

    /// Adds a chunk. Returns the text that cannot belong to a later secret, with secrets hidden.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        if let Mended { open: Some(open), .. } = self.mend(&mut text) {
            self.held = text.split_off(open);
        }
        text
    }

    pub fn push_str(&mut self, piece: &str) -> String {
        into_text(self.push(piece.as_bytes()))
    }

    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    pub fn finish_str(&mut self) -> String {
        into_text(self.finish())
    }

    /// Hides the secret in a whole text. Returns true if the text contained it.
    pub fn mask(&self, text: &mut [u8]) -> bool {
        self.mend(text).found
    }

    pub fn masked(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        if self.mask(&mut bytes) { into_text(bytes) } else { text.to_owned() }
    }

    fn mend(&self, text: &mut [u8]) -> Mended {
        let mut mended = Mended { found: false, open: None };
        let secret = self.secret.as_ref().map(|secret| secret.expose_secret().as_bytes()).unwrap_or_default();
        let Some(first) = secret.first() else { return mended };
        let mut at = 0;
        while let Some(begin) = text.get(at..).and_then(|rest| memchr2(*first, b'\\', rest)) {
            at += begin;
            match spelled(&text[at..], secret) {
                Spelled::Whole(length) => {
                    text[at..at + length].fill(MASK);
                    mended.found = true;
                    at += length;
                }
                Spelled::Begun => {
                    mended.open = Some(at);
                    return mended;
                }
                Spelled::Not => at += 1,
            }
        }
        mended
    }
}

struct Mended {
    found: bool,
    /// Index at which a secret begins that may continue in the next chunk; `None` if there is none.
    open: Option<usize>,
}

/// Converts bytes to text. The bytes are valid UTF-8, because the mask and the secret's bytes are ASCII.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Compares the beginning of `text` with the secret.
fn spelled(text: &[u8], secret: &[u8]) -> Spelled {
    let mut length = 0;
    for &wanted in secret {
        match spelled_byte(&text[length..], wanted) {
            Spelled::Whole(more) => length += more,
            other => return other,
        }
    }
    Spelled::Whole(length)
}

/// Compares the beginning of `text` with one byte of the secret, which may be plain or escaped.
fn spelled_byte(text: &[u8], wanted: u8) -> Spelled {
    let backslashes = text.iter().take(BACKSLASHES + 1).take_while(|byte| **byte == b'\\').count();
    match (backslashes, text.get(backslashes)) {
        (0, Some(byte)) if *byte == wanted => Spelled::Whole(1),
        (_, None) => Spelled::Begun,
        (count @ 1.., Some(b'u')) => match by_number(&text[count + 1..], wanted) {
            Spelled::Whole(digits) => Spelled::Whole(count + 1 + digits),
            other => other,
        },
        (count @ 1.., Some(byte)) if *byte == wanted && !wanted.is_ascii_alphanumeric() => {
            Spelled::Whole(count + 1)
        }
        _ => Spelled::Not,
    }
}

/// Compares the beginning of `text` with the four hexadecimal digits of the escape `\uXXXX` of `wanted`.
fn by_number(text: &[u8], wanted: u8) -> Spelled {
    let digits = format!("{wanted:04x}");
    let came = &text[..text.len().min(digits.len())];
    if !digits.as_bytes()[..came.len()].eq_ignore_ascii_case(came) {
        return Spelled::Not;
    }
    if came.len() < digits.len() { Spelled::Begun } else { Spelled::Whole(digits.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-ant-sk-ab";

    fn redactor() -> Redactor {
        Redactor::new(Some(SecretString::from(KEY)))
    }

    fn in_pieces(text: &str, size: usize) -> String {
        let mut redactor = redactor();
        let mut all: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| redactor.push(piece)).collect();
        all.extend(redactor.finish());
        String::from_utf8(all).expect("text")
    }

    #[test]
    fn the_secret_is_masked_wherever_pieces_part() {
        let stars = "*".repeat(KEY.len());
        let text = format!("xsk-{KEY}ysk-ant{KEY}{KEY} sk-ant-sk-a");
        let expected = format!("xsk-{stars}ysk-ant{stars}{stars} sk-ant-sk-a");
        for size in 1..=text.len() {
            assert_eq!(in_pieces(&text, size), expected, "{size}");
        }
        assert_eq!(Redactor::default().masked("nothing to hide"), "nothing to hide");
    }

    #[test]
    fn the_secret_is_masked_however_json_escapes_it() {
        for spelled in [
            r"sk\u002dant-sk-ab",
            r"\u0073\u006B\u002dant\u002Dsk-ab",
            r"sk\\u002dant-sk-a\\u0062",
            r"sk\\\\u002dant-sk-ab",
            r"sk\-ant-sk-ab",
        ] {
            let expected = format!("a{}b\\n\\\\\\\\\\\\", "*".repeat(spelled.len()));
            for size in 1..40 {
                assert_eq!(
                    in_pieces(&format!("a{spelled}b\\n\\\\\\\\\\\\"), size),
                    expected,
                    "{spelled} {size}"
                );
            }
        }
        for other in [r"sk\u002eant-sk-ab", r"sk\nant-sk-ab", "SK-ANT-SK-AB", r"\sk-ant-sk-a"] {
            assert_eq!(redactor().masked(other), other);
        }
    }

    #[test]
    fn a_word_that_stands_for_no_key_is_left_alone() {
        let redactor = Redactor::new(Some(SecretString::from("not-needed")));
        assert_eq!(redactor.masked("it is not-needed"), "it is not-needed");
    }

    #[test]
    fn text_that_only_begins_like_the_secret_is_written_when_that_shows() {
        let mut redactor = redactor();
        let written = ["Files", " of s", "k-ant", "s, and s"].map(|piece| redactor.push_str(piece));
        assert_eq!(written, ["File", "s of ", "", "sk-ants, and "]);
        assert_eq!(redactor.finish_str(), "s");
    }
}
