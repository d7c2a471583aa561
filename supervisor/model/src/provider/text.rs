//! Text that arrives in deltas.
//!
//! A character outside of the basic plane may be split into two escapes (`\ud83e` and `\udd80`) in two deltas.
//! `serde_json` decodes each half as WTF-8. This module joins the halves.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A JSON string that may begin or end with half a character (a lone surrogate).
#[derive(Debug)]
pub(crate) struct Piece<'a>(Cow<'a, [u8]>);

impl Piece<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> From<&'a str> for Piece<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Piece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Piece<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Piece(Cow::Borrowed(bytes)))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Piece(Cow::Owned(bytes.to_vec())))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Text that is joined from pieces. A lone half of a character becomes U+FFFD, because APIs reject it in requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joined {
    text: String,
    /// The first half of a character, in WTF-8, while its second half has not arrived; otherwise `None`.
    half: Option<[u8; 3]>,
}

impl Joined {
    pub(crate) fn new(text: String) -> Self {
        Self { text, half: None }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }

    /// Returns the whole text. A character without its second half becomes U+FFFD.
    pub(crate) fn into_whole(mut self) -> String {
        self.finish();
        self.text
    }

    pub(crate) fn push(&mut self, piece: &Piece<'_>) -> &str {
        let before = self.text.len();
        match (self.half.take(), std::str::from_utf8(&piece.0)) {
            (None, Ok(text)) => self.text.push_str(text),
            (half, _) => self.join(half, &piece.0),
        }
        &self.text[before..]
    }

    /// Adds a text. Returns the added text, after U+FFFD if the previous character lacks its second half.
    pub(crate) fn push_str(&mut self, text: &str) -> &str {
        let before = self.text.len();
        self.finish();
        self.text.push_str(text);
        &self.text[before..]
    }

    /// Ends the text. A character without its second half becomes U+FFFD. Returns the text that this adds.
    pub(crate) fn finish(&mut self) -> &str {
        let before = self.text.len();
        if self.half.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        &self.text[before..]
    }

    fn join(&mut self, half: Option<[u8; 3]>, piece: &[u8]) {
        let mut bytes = half.map_or_else(Vec::new, |half| half.to_vec());
        bytes.extend_from_slice(piece);
        let mut rest = &bytes[..];
        while let Some(chunk) = rest.utf8_chunks().next() {
            self.text.push_str(chunk.valid());
            rest = &rest[chunk.valid().len()..];
            rest = match surrogate(rest) {
                _ if rest.is_empty() => rest,
                Some((first, after @ [])) if is_lead(first) => {
                    self.half = rest.first_chunk().copied();
                    after
                }
                Some((first, after)) => self.pair(first, after),
                None => {
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    &rest[chunk.invalid().len().max(1)..]
                }
            };
        }
    }

    /// Adds the character whose first half is `first`. Returns the bytes after the character.
    fn pair<'a>(&mut self, first: u16, after: &'a [u8]) -> &'a [u8] {
        if let Some((second, rest)) = surrogate(after)
            && let Some(Ok(joined)) = char::decode_utf16([first, second]).next()
        {
            self.text.push(joined);
            return rest;
        }
        self.text.push(char::REPLACEMENT_CHARACTER);
        after
    }
}

/// Replaces lone surrogates in the strings of a JSON text by U+FFFD.
pub(crate) fn without_lone_halves(json: String) -> String {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json;
    }
    let mut whole = String::with_capacity(json.len());
    let mut rest = &json[..];
    while let Some((before, escape)) = rest.find('\\').map(|at| rest.split_at(at)) {
        whole.push_str(before);
        let (kept, length) = match (half(escape), escape.get(ESCAPE..).and_then(half)) {
            (Some(first), Some(second)) if is_lead(first) && !is_lead(second) => (None, 2 * ESCAPE),
            (Some(_), _) => (Some(r"\ufffd"), ESCAPE),
            // A backslash and the character that it escapes. The digits of `\u` are copied later.
            (None, _) => (None, 2),
        };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        whole.push_str(kept.unwrap_or(escape));
        rest = after;
    }
    whole + rest
}

/// Returns the UTF-16 surrogate of the escape at the beginning of a text; `None` if the text does not begin with one.
fn half(text: &str) -> Option<u16> {
    let unit = u16::from_str_radix(text.strip_prefix("\\u")?.get(..ESCAPE - 2)?, 16).ok()?;
    (0xD800..0xE000).contains(&unit).then_some(unit)
}

const ESCAPE: usize = r"\uXXXX".len();

const fn is_lead(unit: u16) -> bool {
    unit < 0xDC00
}

/// Returns the UTF-16 surrogate at the beginning of WTF-8 bytes, and the bytes after it; `None` without a surrogate.
fn surrogate(bytes: &[u8]) -> Option<(u16, &[u8])> {
    match bytes {
        [0xED, second @ 0xA0..=0xBF, third, rest @ ..] => {
            Some((0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F), rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(pieces: &[&str]) -> String {
        let mut joined = Joined::default();
        let mut added = String::new();
        for piece in pieces {
            let piece = serde_json::from_str::<Piece<'_>>(piece).expect("a string");
            added.push_str(joined.push(&piece));
        }
        added.push_str(joined.finish());
        assert_eq!(added, joined.as_str());
        added
    }

    #[test]
    fn s4_halves_of_a_character_are_joined_across_pieces() {
        assert_eq!(join(&[r#""a\ud83e""#, r#""\udd80b""#]), "a🦀b");
        assert_eq!(join(&[r#""\ud83e""#, r#""""#, r#""\udd80""#]), "🦀");
        assert_eq!(join(&[r#""\ud83e\udd80\ud83e""#, r#""\udd80\ud83e\udd80""#]), "🦀🦀🦀");
    }

    #[test]
    fn r2_a_half_that_stays_alone_is_replaced() {
        for (pieces, expected) in [
            (&[r#""a\ud83e""#, r#""b""#][..], "a\u{fffd}b"),
            (&[r#""a\ud83e""#], "a\u{fffd}"),
            (&[r#""\udd80a""#], "\u{fffd}a"),
            (&[r#""\ud83e\ud83e""#, r#""\udd80""#], "\u{fffd}🦀"),
            (&[r#""\ud83e\ud83e x""#], "\u{fffd}\u{fffd} x"),
        ] {
            assert_eq!(join(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn r2_json_goes_back_without_halves_of_characters_and_otherwise_as_it_was() {
        for (json, expected) in [
            (r#"{"a":"\ud83e\uDD80 \n\\ud83e \u00e9"}"#, r#"{"a":"\ud83e\uDD80 \n\\ud83e \u00e9"}"#),
            (r#"["\ud83e","\udd80"]"#, r#"["\ufffd","\ufffd"]"#),
            (r#""\ud83e\ud83e\udd80\udd80""#, r#""\ufffd\ud83e\udd80\ufffd""#),
            (r#""\\\ud83e🦀\"\ud83e""#, r#""\\\ufffd🦀\"\ufffd""#),
        ] {
            let whole = without_lone_halves(json.to_owned());
            assert_eq!(whole, expected);
            serde_json::from_str::<serde_json::Value>(&whole).expect("whole characters");
        }
    }

    #[test]
    fn what_is_no_string_is_refused() {
        for json in ["1", "null", "[1]", "{}", "\"a"] {
            assert!(serde_json::from_str::<Piece<'_>>(json).is_err(), "{json}");
        }
    }
}
