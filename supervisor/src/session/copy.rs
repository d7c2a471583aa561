//! Lines of a log that are copied: into an archive with a chain of its own, and from one into a new log.

use ipc::event::SessionEvent;

use super::LogError;
use super::chain::{GENESIS, Link, rechained};
use super::log::SessionLog;

/// A chain over lines that are copied.
#[derive(Debug)]
pub(crate) struct Chain(Link);

impl Default for Chain {
    fn default() -> Self {
        Self(GENESIS)
    }
}

impl Chain {
    /// A line, without its end, as the next one of the chain; none if it carries no digest.
    pub(crate) fn next(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let (copy, own) = rechained(line, self.0)?;
        self.0 = own;
        Some(copy)
    }

    /// The digest of the last line, in hexadecimal.
    pub(crate) fn last(&self) -> String {
        String::from_utf8_lossy(&self.0.hex()).into_owned()
    }
}

impl SessionLog {
    /// Appends an event of another log as it was, but for the session that it belongs to.
    pub(crate) fn copy(&mut self, event: SessionEvent) -> Result<(), LogError> {
        let session = self.session().clone();
        self.write(SessionEvent { session, ..event }).map(drop)
    }
}
