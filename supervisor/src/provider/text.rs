//! Text that comes in pieces.
//!
//! A character outside the basic plane may be cut into two escapes (`\ud83e` and `\udd80`) that come in two deltas (S4).
//! A piece is therefore taken as bytes in which `serde_json` writes such a half as WTF-8, and joined here.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A JSON string that may begin or end with half a character.
#[derive(Debug)]
pub(crate) struct Piece<'a>(Cow<'a, [u8]>);

impl Piece<'_> {
    /// Whether it adds nothing.
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

/// Text joined from pieces; a half that finds no other half becomes U+FFFD (R2 forbids it in a request).
#[derive(Debug, Default)]
pub(crate) struct Joined {
    text: String,
    /// The first half of a character, in WTF-8.
    half: Option<[u8; 3]>,
}

impl Joined {
    /// Text that begins with `text`.
    pub(crate) fn new(text: String) -> Self {
        Self { text, half: None }
    }

    /// The text so far.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The whole text.
    pub(crate) fn into_string(self) -> String {
        self.text
    }

    /// The whole text, ended.
    pub(crate) fn into_whole(mut self) -> String {
        self.finish();
        self.text
    }

    /// Adds a piece, and returns what it added.
    pub(crate) fn push(&mut self, piece: &Piece<'_>) -> &str {
        let before = self.text.len();
        match (self.half.take(), std::str::from_utf8(&piece.0)) {
            (None, Ok(text)) => self.text.push_str(text),
            (half, _) => self.join(half, &piece.0),
        }
        &self.text[before..]
    }

    /// Adds whole characters, and returns them with what else that added.
    pub(crate) fn push_str(&mut self, text: &str) -> &str {
        let before = self.text.len();
        self.finish();
        self.text.push_str(text);
        &self.text[before..]
    }

    /// Ends the text, and returns what that added.
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

    /// Adds the character that `first` begins, and returns what follows it.
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

const fn is_lead(unit: u16) -> bool {
    unit < 0xDC00
}

/// The UTF-16 surrogate at the beginning of WTF-8 bytes, and what follows it.
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
    fn what_is_no_string_is_refused() {
        for json in ["1", "null", "[1]", "{}", "\"a"] {
            assert!(serde_json::from_str::<Piece<'_>>(json).is_err(), "{json}");
        }
    }
}
