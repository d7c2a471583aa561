//! The digest chain of a log: each line has the SHA-256 of the line before it, and a digest of itself.
//!
//! The line's own digest protects the last line too. Logs of earlier versions have no such digests. After the first
//! line that has one, every line must have one.

use sha2::{Digest, Sha256};

/// The digest that the first line of a log states, as no line is before it.
pub(super) const GENESIS: Link = Link([0; 32]);

const OWN: usize = 16;

/// The SHA-256 of a line without its line feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link([u8; 32]);

impl Link {
    pub(super) fn of(line: &[u8]) -> Self {
        Self(Sha256::digest(line).into())
    }

    /// Finishes the digest of a line that was hashed in parts.
    pub(super) fn hashed(line: Sha256) -> Self {
        Self(line.finalize().into())
    }

    pub(super) fn hex(self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        hex
    }
}

/// Beginning of the digests, which stand at the end of a line: `,"prev":"` 64 digits `","sum":"` 16 digits `"}`.
const PREV: &[u8] = b",\"prev\":\"";
const SUM: &[u8] = b"\",\"sum\":\"";
const END: &[u8] = b"\"}";

/// Adds the digests to a line, which is a JSON object without its closing brace. `prev` is the digest of the line
/// before. Returns the digest of this line.
pub(super) fn close(line: &mut Vec<u8>, prev: Link) -> Link {
    for part in [PREV, &prev.hex()] {
        line.extend_from_slice(part);
    }
    let mut hash = Sha256::new_with_prefix(&line);
    let own = Link(hash.clone().finalize().into()).hex();
    let before = line.len();
    for part in [SUM, own.get(..OWN).unwrap_or_default(), END] {
        line.extend_from_slice(part);
    }
    hash.update(line.get(before..).unwrap_or_default());
    Link(hash.finalize().into())
}

/// Returns a line with its digests recomputed for another previous line, and the digest of the new line; `None` if the
/// line has no digests.
pub(super) fn rechained(line: &[u8], prev: Link) -> Option<(Vec<u8>, Link)> {
    let has_own = carried(line)?.own.is_some();
    let digests = PREV.len() + 64 + END.len() + if has_own { SUM.len() + OWN } else { 0 };
    let mut copy = line.get(..line.len().checked_sub(digests)?)?.to_vec();
    if has_own {
        let own = close(&mut copy, prev);
        return Some((copy, own));
    }
    for part in [PREV, &prev.hex(), END] {
        copy.extend_from_slice(part);
    }
    let own = Link::of(&copy);
    Some((copy, own))
}

/// The digests that a line states. They are found by their position at the line's end, so that no text can imitate one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried<'a> {
    /// Digest of the line before, in hexadecimal.
    pub(super) prev: &'a [u8],
    /// True if the line's own digest is right, false if it is wrong; `None` if the line has none.
    pub(super) own: Option<bool>,
}

pub(super) fn carried(line: &[u8]) -> Option<Carried<'_>> {
    digests(line).0
}

pub(super) fn digests(line: &[u8]) -> (Option<Carried<'_>>, Link) {
    let signed = line.strip_suffix(END).and_then(|rest| digits(rest, OWN));
    if let Some((rest, own)) = signed
        && let Some(signed) = rest.strip_suffix(SUM)
    {
        let mut hash = Sha256::new_with_prefix(signed);
        let fits = Link(hash.clone().finalize().into()).hex().starts_with(own);
        hash.update(line.get(signed.len()..).unwrap_or_default());
        let carried = previous(signed).map(|prev| Carried { prev, own: Some(fits) });
        return (carried, Link(hash.finalize().into()));
    }
    let prev = line.strip_suffix(END).and_then(previous);
    (prev.map(|prev| Carried { prev, own: None }), Link::of(line))
}

fn previous(rest: &[u8]) -> Option<&[u8]> {
    let (rest, digest) = digits(rest, 64)?;
    rest.ends_with(PREV).then_some(digest)
}

/// Splits off the last `count` bytes; `None` unless they are hexadecimal digits.
fn digits(text: &[u8], count: usize) -> Option<(&[u8], &[u8])> {
    let (rest, digits) = text.split_at_checked(text.len().checked_sub(count)?)?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some((rest, digits))
}
