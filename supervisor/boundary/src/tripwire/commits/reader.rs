//! Reads objects from `git cat-file --batch` and verifies each against its id.

use std::io;

use super::object::{GitObject, ObjectId};
use crate::tripwire::git::GitQuestion;

/// Maximum number of ids in one request, which then fits into a pipe of one page, so that neither side waits for the
/// other.
const MOST_NAMES: usize = 60;

/// Maximum number of objects that one reader accepts.
const MOST_OBJECTS: usize = 200_000;
/// Maximum number of bytes in all objects that one reader accepts.
const MOST_BYTES: usize = 512 << 20;

/// Maximum number of bytes in the header line of an answer.
const LONGEST_LINE: usize = 200;

#[derive(Debug)]
pub(super) struct ObjectReader {
    git: GitQuestion,
    buffer: Vec<u8>,
    objects: usize,
    bytes: usize,
}

impl ObjectReader {
    pub(super) fn new(git: GitQuestion) -> Self {
        Self { git, buffer: Vec::new(), objects: 0, bytes: 0 }
    }

    /// Returns the objects with these ids, with `None` for each that is missing or does not match its id.
    pub(super) fn objects(&mut self, names: &[ObjectId]) -> io::Result<Vec<Option<GitObject>>> {
        let mut found = Vec::with_capacity(names.len());
        for names in names.chunks(MOST_NAMES) {
            let question: String = names.iter().map(|name| name.hex() + "\n").collect();
            self.git.say(question.as_bytes())?;
            for name in names {
                found.push(self.answer(name)?);
            }
        }
        Ok(found)
    }

    /// Reads one answer: `ID KIND SIZE`, a line end, the content and a line end; or `ID missing`. `None` unless the
    /// content matches `name`.
    fn answer(&mut self, name: &ObjectId) -> io::Result<Option<GitObject>> {
        self.objects += 1;
        let line = self.line()?;
        let words: Vec<_> = line.split(|byte| *byte == b' ').collect();
        let [_, kind, size] = words[..] else { return Ok(None) };
        let size = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok());
        let size: usize = size.ok_or(io::ErrorKind::InvalidData)?;
        self.bytes = self.bytes.saturating_add(size);
        if self.objects > MOST_OBJECTS || self.bytes > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.fill(size + 1)?;
        let content = self.buffer.drain(..=size).take(size).collect();
        Ok(GitObject::verified(name, &String::from_utf8_lossy(kind), content))
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                return Ok(line);
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.fill(self.buffer.len() + 1)?;
        }
    }

    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        let mut piece = vec![0; 1 << 16];
        while self.buffer.len() < wanted {
            match self.git.hear(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.buffer.extend_from_slice(&piece[..read]),
            }
        }
        Ok(())
    }
}
