//! Beginning and end of a long output, and the number of bytes that are omitted between them.

use std::collections::VecDeque;

/// Divisor: this fraction of the beginning and of the end may be given up so that the cut is between two lines.
const GIVEN_UP: usize = 4;

#[derive(Debug)]
pub struct HeadTail {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
}

/// Kept text of an output, as valid UTF-8; invalid bytes became U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Beginning of the output; the whole output if nothing is omitted.
    pub head: String,
    pub omitted: u64,
    /// End of the output; empty if nothing is omitted.
    pub tail: String,
}

impl HeadTail {
    /// Creates an empty output of which up to `limit` bytes are kept, half of them at each end.
    pub fn new(limit: usize) -> Self {
        Self { half: limit / 2, head: Vec::new(), tail: VecDeque::new(), omitted: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let skipped = rest.len().saturating_sub(self.half);
        let overflow = (self.tail.len() + rest.len() - skipped).saturating_sub(self.half);
        self.tail.drain(..overflow);
        self.tail.extend(&rest[skipped..]);
        self.omitted += (overflow + skipped) as u64;
    }

    pub fn whole(self) -> Option<Vec<u8>> {
        (self.omitted == 0).then(|| self.head.into_iter().chain(self.tail).collect())
    }

    /// Returns the kept text. It is cut between two lines if a line end is near, else between two characters.
    pub fn finish(self) -> Ends {
        let (head, mut tail) = (self.head, self.tail);
        let tail = &*tail.make_contiguous();
        if self.omitted == 0 {
            let head = String::from_utf8_lossy(&[&head, tail].concat()).into_owned();
            return Ends { head, omitted: 0, tail: String::new() };
        }
        let (end, start) = (end_of_head(&head), start_of_tail(tail));
        Ends {
            head: String::from_utf8_lossy(&head[..end]).into_owned(),
            omitted: self.omitted + (head.len() - end + start) as u64,
            tail: String::from_utf8_lossy(&tail[start..]).into_owned(),
        }
    }
}

fn end_of_head(head: &[u8]) -> usize {
    let near = head.len() - head.len() / GIVEN_UP;
    match memchr::memrchr(b'\n', &head[near..]) {
        Some(index) => near + index + 1,
        None => whole_characters(head),
    }
}

fn start_of_tail(tail: &[u8]) -> usize {
    match memchr::memchr(b'\n', &tail[..tail.len() / GIVEN_UP]) {
        Some(index) => index + 1,
        None => tail.iter().take(3).take_while(|&&byte| is_continuation(byte)).count(),
    }
}

/// Returns the number of bytes without an incomplete character at the end.
pub fn whole_characters(bytes: &[u8]) -> usize {
    let continued = bytes.iter().rev().take(3).take_while(|&&byte| is_continuation(byte)).count();
    let Some(lead) = bytes.len().checked_sub(continued + 1) else {
        return bytes.len();
    };
    let length = match bytes[lead] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if continued + 1 < length { lead } else { bytes.len() }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(limit: usize, bytes: &[u8], piece: usize) -> Ends {
        let mut kept = HeadTail::new(limit);
        bytes.chunks(piece).for_each(|piece| kept.push(piece));
        kept.finish()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        for text in ["", "a", "0123456789"] {
            let expected = Ends { head: text.to_owned(), omitted: 0, tail: String::new() };
            assert_eq!(ends(10, text.as_bytes(), 3), expected);
        }
    }

    #[test]
    fn pieces_do_not_matter_and_every_byte_is_counted() {
        let text: String = (0..500).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        let whole = ends(400, text.as_bytes(), text.len());
        for piece in [1, 7, 199, 200, 201, 450] {
            assert_eq!(ends(400, text.as_bytes(), piece), whole, "{piece}");
        }
        assert_eq!(whole.head.len() as u64 + whole.omitted + whole.tail.len() as u64, text.len() as u64);
        assert!(whole.head.starts_with("line 0\n") && whole.head.ends_with('\n'));
        assert!(whole.tail.starts_with("line ") && whole.tail.ends_with("line 499"));
    }

    #[test]
    fn characters_are_not_torn() {
        let text = "ä→😀".repeat(100);
        for limit in 8..40 {
            let ends = ends(limit, text.as_bytes(), 5);
            assert!(!ends.head.contains('\u{fffd}') && !ends.tail.contains('\u{fffd}'), "{limit}: {ends:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_become_text() {
        assert_eq!(ends(10, b"a\xffb", 1).head, "a\u{fffd}b");
        assert!(ends(4, &[0x80; 50], 3).head.chars().all(|char| char == '\u{fffd}'));
    }

    #[test]
    fn incomplete_characters_are_found() {
        for (bytes, whole) in [
            (&b"ab"[..], 2),
            ("aä".as_bytes(), 3),
            (b"a\xc3", 1),
            (b"a\xf0\x9f\x98", 1),
            (b"\x80", 1),
            (b"", 0),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:x?}");
        }
    }
}
