//! A log in parts of whole lines: however long it is, one part of it is in memory.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::chain::Link;

/// The longest line that is written, and read: a reply has at most 64 MiB, and so has the arguments of a call; the rest is room.
pub const LONGEST_LINE: usize = 80 << 20;

/// The bytes that are read at once.
const PART: usize = 8 << 20;

#[derive(Debug)]
pub(super) enum LogPart<'a> {
    /// Whole lines, each with its end.
    Lines(&'a [u8]),
    /// A line that is too long, with its length and its digest. It was not kept.
    Long { bytes: u64, link: Link },
    /// Bytes without an end: the writer ends every line in the same write(2).
    Torn,
}

pub(super) struct Parts<R> {
    from: R,
    held: Vec<u8>,
    /// The bytes of `held` that were given out.
    given: usize,
}

impl<R: Read> Parts<R> {
    pub(super) const fn new(from: R) -> Self {
        Self { from, held: Vec::new(), given: 0 }
    }

    /// The next part, none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<LogPart<'_>>> {
        self.held.drain(..self.given);
        self.given = 0;
        self.held.shrink_to(2 * PART);
        // The last line of a part before has no end yet.
        let mut looked = self.held.len();
        loop {
            if !self.read()? {
                let is_torn = !self.held.is_empty();
                self.held.clear();
                return Ok(is_torn.then_some(LogPart::Torn));
            }
            if let Some(end) = memchr::memrchr(b'\n', self.held.get(looked..).unwrap_or_default()) {
                self.given = looked + end + 1;
                return Ok(self.held.get(..self.given).map(LogPart::Lines));
            }
            looked = self.held.len();
            if looked > LONGEST_LINE {
                return self.long().map(Some);
            }
        }
    }

    /// Reads more; false at the end.
    fn read(&mut self) -> io::Result<bool> {
        self.held.reserve(PART);
        Ok(self.from.by_ref().take(PART as u64).read_to_end(&mut self.held)? > 0)
    }

    /// Passes over a line.
    fn long(&mut self) -> io::Result<LogPart<'_>> {
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        loop {
            let end = memchr::memchr(b'\n', &self.held);
            let piece = self.held.get(..end.unwrap_or(self.held.len())).unwrap_or_default();
            hash.update(piece);
            bytes += piece.len() as u64;
            if let Some(end) = end {
                self.given = end + 1;
                return Ok(LogPart::Long { bytes, link: Link::hashed(hash) });
            }
            self.held.clear();
            if !self.read()? {
                return Ok(LogPart::Torn);
            }
        }
    }
}
