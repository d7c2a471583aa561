//! A reader that returns a log in parts of complete lines. Only one part is in memory at a time.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::chain::Link;

/// Maximum size in bytes of a line. A reply, or the arguments of a call, has at most 64 MiB; the rest is reserve.
pub const LONGEST_LINE: usize = 80 << 20;

const PART: usize = 8 << 20;

#[derive(Debug)]
pub(super) enum LogPart<'a> {
    /// Complete lines with their line feeds.
    Lines(&'a [u8]),
    /// A line that was dropped because it is too long, with its size in bytes and its digest.
    Long { bytes: u64, link: Link },
    /// Bytes without a line feed at the end of the log. The writer was stopped in the middle of a write.
    Torn,
}

pub(super) struct Parts<R> {
    from: R,
    held: Vec<u8>,
    /// Number of bytes at the beginning of `held` that were already returned.
    given: usize,
}

impl<R: Read> Parts<R> {
    pub(super) const fn new(from: R) -> Self {
        Self { from, held: Vec::new(), given: 0 }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<LogPart<'_>>> {
        self.held.drain(..self.given);
        self.given = 0;
        self.held.shrink_to(2 * PART);
        // The last line in `held` is incomplete.
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

    /// Reads more bytes. Returns false at the end of the log.
    fn read(&mut self) -> io::Result<bool> {
        self.held.reserve(PART);
        Ok(self.from.by_ref().take(PART as u64).read_to_end(&mut self.held)? > 0)
    }

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
