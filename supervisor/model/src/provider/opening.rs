//! Detects the kind of a body from its first bytes, whatever the headers say.

use bytes::{Buf, Bytes, BytesMut};

use super::failure::one_line;

/// Maximum number of blanks before a body. A gateway may send blanks every few seconds to keep a connection open.
pub(crate) const MAX_BLANKS: usize = 64 * 1024;

/// Maximum bytes of the text that an error quotes from a body which is not a reply.
const MAX_LINE: usize = 200;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Field names that can begin a line of an event stream.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// The beginning of a body, without leading blanks and byte-order marks.
#[derive(Default)]
pub(crate) struct Opening {
    head: BytesMut,
    blanks: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    Events,
    Html,
    /// Text in no known format. The value is the first line of the text.
    Text(String),
    /// More than [`MAX_BLANKS`] blanks, and no other content so far.
    Blank,
    /// The body ended without any visible content.
    Empty,
}

impl Opening {
    /// Returns the kind of the body; `None` until more bytes show the kind.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Option<BodyKind> {
        self.head.extend_from_slice(chunk);
        while let Some(length) = self.blank_prefix() {
            self.head.advance(length);
            self.blanks += length;
        }
        if self.blanks > MAX_BLANKS { Some(BodyKind::Blank) } else { self.kind(false) }
    }

    /// Returns the kind of a body that has no further bytes.
    pub(crate) fn finish(&self) -> BodyKind {
        self.kind(true).unwrap_or(BodyKind::Empty)
    }

    pub(crate) fn into_head(self) -> Bytes {
        self.head.freeze()
    }

    fn blank_prefix(&self) -> Option<usize> {
        let blanks = self.head.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let length = if self.head.starts_with(BOM) { BOM.len() } else { blanks };
        (length > 0).then_some(length)
    }

    fn kind(&self, is_over: bool) -> Option<BodyKind> {
        match self.head.first()? {
            b'{' => Some(BodyKind::Json),
            b'<' => Some(BodyKind::Html),
            b':' => Some(BodyKind::Events),
            _ if BOM.starts_with(&self.head) && !is_over => None,
            _ if FIELDS.iter().any(|field| self.may_begin_with(field)) => {
                let is_longer = self.head.iter().any(|byte| !byte.is_ascii_lowercase());
                (is_longer || is_over).then_some(BodyKind::Events)
            }
            _ => self.text(is_over),
        }
    }

    /// True if the first line has this field name, or may have it after further bytes.
    fn may_begin_with(&self, field: &[u8]) -> bool {
        match self.head.strip_prefix(field) {
            Some(rest) => rest.first().is_none_or(|next| b":\r\n".contains(next)),
            None => field.starts_with(&self.head),
        }
    }

    fn text(&self, is_over: bool) -> Option<BodyKind> {
        let shown = &self.head[..self.head.len().min(MAX_LINE)];
        let end = shown.iter().position(|byte| b"\r\n".contains(byte));
        let is_enough = end.is_some() || is_over || shown.len() == MAX_LINE;
        let line = String::from_utf8_lossy(&shown[..end.unwrap_or(shown.len())]);
        is_enough.then(|| BodyKind::Text(one_line(&line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kind and the beginning of a body that arrives in chunks of `size` bytes.
    fn opened(body: &[u8], size: usize) -> (BodyKind, Bytes) {
        let mut opening = Opening::default();
        let kind = body.chunks(size).find_map(|chunk| opening.push(chunk));
        (kind.unwrap_or_else(|| opening.finish()), opening.into_head())
    }

    #[test]
    fn s10_a_body_is_known_by_its_first_visible_bytes_in_any_chunks() {
        let text = |line: &str| BodyKind::Text(line.to_owned());
        for (body, expected) in [
            ("\r\n \u{feff}{\"a\":1}", BodyKind::Json),
            ("\u{feff}\u{feff}<html>", BodyKind::Html),
            ("data: x\n\n", BodyKind::Events),
            ("\n: comment\n", BodyKind::Events),
            ("retry\n", BodyKind::Events),
            ("even", BodyKind::Events),
            ("", BodyKind::Empty),
            (" \n\u{feff}", BodyKind::Empty),
            ("[1]\n[2]", text("[1]")),
            ("database: down", text("database: down")),
            ("idle", text("idle")),
        ] {
            for size in 1..=body.len().max(1) {
                assert_eq!(opened(body.as_bytes(), size).0, expected, "{body:?} in chunks of {size}");
            }
        }
        assert_eq!(opened(&[0xEF], 1).0, text("\u{fffd}"));
        assert_eq!(opened(&[b'x'; 1000], 1000), (text(&"x".repeat(MAX_LINE)), vec![b'x'; 1000].into()));
    }

    #[test]
    fn blanks_are_dropped_as_they_come_and_bounded() {
        let mut opening = Opening::default();
        for _ in 0..MAX_BLANKS / 64 {
            assert_eq!(opening.push(&[b'\n'; 64]), None);
            assert!(opening.head.is_empty());
        }
        assert_eq!(opening.push(b" "), Some(BodyKind::Blank));
    }
}
