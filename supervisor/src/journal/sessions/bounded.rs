use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use protocol::event::SessionEvent;

use crate::journal::session::LONGEST_LINE;

/// The text before the type of an event. In a line, its first occurrence counts, because no value before the type has
/// quotes.
const TYPE: &[u8] = b"\"type\":\"";

pub(super) struct BoundedLines {
    log: BufReader<File>,
    line: Vec<u8>,
}

impl BoundedLines {
    /// Opens a log. Does not follow a symbolic link, and does not wait for a pipe.
    pub(super) fn open(log: &Path) -> io::Result<Self> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = File::options().read(true).custom_flags(flags).open(log)?;
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { log: BufReader::with_capacity(1 << 16, file), line: Vec::new() })
    }

    /// Returns the next line without its line end; `None` at the end of the log or if the last line is incomplete.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            let Some(is_short) = self.read()? else { return Ok(None) };
            if is_short {
                return Ok(Some(&self.line));
            }
        }
    }

    /// Reads a line. Returns true if the line is complete in memory, false if it is too long, and `None` at the log's
    /// end.
    fn read(&mut self) -> io::Result<Option<bool>> {
        let mut is_short = true;
        loop {
            let buffer = self.log.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', buffer);
            let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            is_short &= self.line.len() + piece.len() <= LONGEST_LINE;
            if is_short {
                self.line.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.log.consume(used);
            if end.is_some() {
                return Ok(Some(is_short));
            }
        }
    }
}

/// Returns the event of a line if it has one of these types. Other lines are not parsed.
pub(super) fn event(line: &[u8], types: &[&str]) -> Option<SessionEvent> {
    let at = memchr::memmem::find(line, TYPE)? + TYPE.len();
    let rest = line.get(at..)?;
    let is_wanted = types
        .iter()
        .any(|name| rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'"')));
    is_wanted.then(|| SessionEvent::from_json(line).ok())?
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_one_without_end_is_none() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("a.jsonl");
        let endless = "x".repeat(LONGEST_LINE + 1);
        fs::write(&log, format!("one\n{endless}\ntwo\nthree")).unwrap();
        let mut lines = BoundedLines::open(&log).unwrap();
        let mut read = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            read.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(read, ["one", "two"]);
    }

    #[test]
    fn neither_a_link_nor_a_pipe_is_read() {
        let place = tempfile::tempdir().unwrap();
        let (log, link, pipe) = (place.path().join("a"), place.path().join("b"), place.path().join("c"));
        fs::write(&log, "one\n").unwrap();
        symlink(&log, &link).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(BoundedLines::open(&log).is_ok());
        assert!(BoundedLines::open(&link).is_err() && BoundedLines::open(&pipe).is_err());
    }
}
