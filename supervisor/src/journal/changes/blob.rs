//! File contents outside of memory: each is a part of an unlinked temporary file.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sha1::{Digest, Sha1};

/// Number of bytes that are read at once when contents are compared or hashed.
const PIECE: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Blob {
    file: Arc<File>,
    offset: u64,
    len: u64,
}

/// The id that git gives to a content: the SHA-1 of `blob LEN NUL CONTENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId([u8; 20]);

impl BlobId {
    /// The id of zeros, which git writes where there is no content.
    pub const NONE: Self = Self([0; 20]);

    /// Returns the id of a content in memory.
    pub fn of(content: &[u8]) -> Self {
        let mut hash = Sha1::new_with_prefix(header(content.len() as u64));
        hash.update(content);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn header(len: u64) -> String {
    let mut header = String::with_capacity(32);
    // Writing to a string cannot fail.
    let _ = write!(header, "blob {len}\0");
    header
}

impl Blob {
    pub(super) const fn new(file: Arc<File>, offset: u64, len: u64) -> Self {
        Self { file, offset, len }
    }

    pub const fn len(&self) -> u64 {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn reader(&self) -> impl Read + use<> {
        BlobReader { blob: self.clone(), at: 0 }
    }

    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let len = usize::try_from(self.len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, self.offset)?;
        Ok(bytes)
    }

    pub fn id(&self) -> io::Result<BlobId> {
        let mut hash = Sha1::new_with_prefix(header(self.len));
        self.pieces(|piece| {
            hash.update(piece);
            Ok(true)
        })?;
        Ok(BlobId(hash.finalize().into()))
    }

    pub fn same_bytes(&self, other: &Self) -> io::Result<bool> {
        if self.len != other.len {
            return Ok(false);
        }
        let mut theirs = other.reader();
        let mut buffer = vec![0; PIECE];
        self.pieces(|piece| {
            let buffer = &mut buffer[..piece.len()];
            theirs.read_exact(buffer)?;
            Ok(piece == buffer)
        })
    }

    /// Passes the content to `each` in pieces, until `each` returns false. Returns false if `each` did.
    fn pieces(&self, mut each: impl FnMut(&[u8]) -> io::Result<bool>) -> io::Result<bool> {
        let mut reader = self.reader();
        let mut buffer = vec![0; PIECE];
        loop {
            let count = reader.read(&mut buffer)?;
            if count == 0 {
                return Ok(true);
            }
            if !each(&buffer[..count])? {
                return Ok(false);
            }
        }
    }
}

struct BlobReader {
    blob: Blob,
    at: u64,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.blob.len - self.at).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.blob.file.read_at(&mut buffer[..wanted], self.blob.offset + self.at)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(before: &[u8], content: &[u8]) -> Blob {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(before, 0).unwrap();
        file.write_all_at(content, before.len() as u64).unwrap();
        Blob::new(Arc::new(file), before.len() as u64, content.len() as u64)
    }

    #[test]
    fn the_name_is_the_one_that_git_gives() {
        assert_eq!(BlobId::of(b"").to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            blob(b"x", b"hello\n").id().unwrap().to_string(),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
    }

    #[test]
    fn contents_that_differ_in_their_last_byte_differ() {
        let mut content = vec![7; PIECE + 10];
        let first = blob(b"", &content);
        assert!(first.same_bytes(&blob(b"abc", &content)).unwrap());
        content[PIECE + 9] = 8;
        assert!(!first.same_bytes(&blob(b"abc", &content)).unwrap());
        assert!(!first.same_bytes(&blob(b"", &content[1..])).unwrap());
    }

    #[test]
    fn a_span_beyond_its_file_is_an_error() {
        let short = Blob::new(Arc::new(tempfile::tempfile().unwrap()), 0, 5);
        assert_eq!(short.id().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
