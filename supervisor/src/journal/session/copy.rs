//! Copies of a log's lines: into an archive with a new digest chain, and from an archive into a new log.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ipc::id::ConversationId;
use protocol::event::SessionEvent;

use super::chain::{GENESIS, Link, rechained};
use super::log::SessionLog;
use super::parts::{LONGEST_LINE, LogPart, Parts};
use super::scan::{Scanned, scan};
use super::{Fault, LogError};

/// Digest of the last copied line, with which the next line of the copy continues the chain.
#[derive(Debug)]
pub(crate) struct Chain(Link);

impl Default for Chain {
    fn default() -> Self {
        Self(GENESIS)
    }
}

impl Chain {
    /// Returns a line with the digests of the new chain; `None` if the line has no digests.
    pub(crate) fn next(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let (copy, own) = rechained(line, self.0)?;
        self.0 = own;
        Some(copy)
    }

    pub(crate) fn last(&self) -> String {
        String::from_utf8_lossy(&self.0.hex()).into_owned()
    }
}

/// Calls `each` with every complete line of a log, except those that are too long.
pub(crate) fn each_line<E: From<io::Error>>(
    from: impl Read,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut parts = Parts::new(from);
    while let Some(part) = parts.next()? {
        let LogPart::Lines(lines) = part else { continue };
        lines.split_inclusive(|byte| *byte == b'\n').try_for_each(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if line.len() > LONGEST_LINE { Ok(()) } else { each(line) }
        })?;
    }
    Ok(())
}

/// Calls `each` with every event of a log, in the order of the lines. Does not check the digest chain.
pub(crate) fn each_event(path: &Path, each: &mut dyn FnMut(&SessionEvent)) -> Result<(), LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let log = File::open(path).map_err(failed)?;
    let each = &mut |_, scanned| {
        if let Scanned::Event(event) = scanned {
            each(&event);
        }
    };
    scan(log, &mut |_| (), each).map(drop).map_err(failed)
}

impl SessionLog {
    /// Creates a log with every event of another log. A process may have that log open. Returns the new log and the id
    /// of the copied session. On failure, removes the new log.
    pub(crate) fn copy_of(
        path: &Path,
        state: &Path,
        session: &ConversationId,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<(Self, ConversationId), LogError> {
        let mut log = Self::create(state, session)?;
        let copied = log.copy_all(path, watch);
        if copied.is_err() {
            // This function has created the log.
            let _ = std::fs::remove_file(log.path());
        }
        copied.map(|origin| (log, origin))
    }

    fn copy_all(&mut self, path: &Path, watch: &mut dyn FnMut(u64, u64)) -> Result<ConversationId, LogError> {
        let failed = |source| LogError::Read { path: path.to_owned(), source };
        let broken = |fault| LogError::Broken { path: path.to_owned(), fault };
        let from = File::open(path).map_err(failed)?;
        let size = from.metadata().map_err(failed)?.len();
        let (mut copied, mut origin) = (Ok(()), None);
        let scan = scan(from, &mut |read| watch(read, size), &mut |_, scanned| {
            if let Scanned::Event(event) = scanned
                && copied.is_ok()
            {
                origin.get_or_insert_with(|| event.session.clone());
                copied = self.copy(*event);
            }
        })
        .map_err(failed)?;
        copied?;
        match scan.faults.into_iter().find(|fault| !matches!(fault, Fault::Torn { .. })) {
            Some(fault) => Err(broken(fault)),
            None => origin.ok_or_else(|| broken(Fault::Torn { line: 1 })),
        }
    }

    /// Appends an event of another log, with the id of this session.
    pub(crate) fn copy(&mut self, event: SessionEvent) -> Result<(), LogError> {
        let session = self.session().clone();
        self.write(SessionEvent { session, ..event }).map(drop)
    }
}
