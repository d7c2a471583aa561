//! The chain of digests: each line carries the SHA-256 of the line before it.

use sha2::{Digest, Sha256};

/// What the first line carries.
pub(super) const GENESIS: Link = Link([0; 32]);

/// The digest of a line, without its line feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link([u8; 32]);

impl Link {
    pub(super) fn of(line: &[u8]) -> Self {
        Self(Sha256::digest(line).into())
    }

    /// 64 lower-case hexadecimal digits.
    pub(super) fn hex(self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        hex
    }
}

/// Where the digest stands in a line: `,"prev":"` 64 digits `"}`. The line's own fields come first.
pub(super) const KEY: &[u8] = b",\"prev\":\"";
pub(super) const END: &[u8] = b"\"}";

/// The digest that a line carries, by its place: nothing inside a string can stand there, since the line ends with it.
pub(super) fn carried(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_suffix(END)?;
    let (rest, digest) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
    (rest.ends_with(KEY) && digest.iter().all(u8::is_ascii_hexdigit)).then_some(digest)
}
