//! What can go wrong with a session log.

use std::io;
use std::path::PathBuf;

use ipc::id::EventId;
use protocol::error_code::ErrorCode;

use super::parts::LONGEST_LINE;

/// A log could not be made, written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The session's id cannot be a file's name.
    #[error("`{0}` is no session id: letters, digits, `-` and `_`, at most 64")]
    Id(String),
    /// The directory of the logs cannot be made or is not safe to use.
    #[error("cannot use the session directory {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        source: io::Error,
    },
    /// The directory of the logs belongs to another user.
    #[error("the session directory {path} belongs to user {owner}, not to user {user}")]
    Owner {
        /// The directory.
        path: PathBuf,
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    #[error("cannot make the session log {path}: {source}")]
    Create {
        /// The log.
        path: PathBuf,
        source: io::Error,
    },
    /// Another process has the session open.
    #[error("the session of {path} is open in another process{}\n  hint: end it there", holder.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    Held {
        /// The log.
        path: PathBuf,
        /// The process, where the kernel reports it.
        holder: Option<u32>,
    },
    /// The log is not whole: a session does not go on from what may not have happened.
    #[error("the session cannot go on: {path}: {fault}\n  hint: bailiwick audit {path} checks it")]
    Broken {
        /// The log.
        path: PathBuf,
        /// The first thing that is wrong.
        fault: Fault,
    },
    #[error("cannot delete the session log {path}: {source}")]
    Remove {
        /// The log.
        path: PathBuf,
        source: io::Error,
    },
    /// An event has no JSON form.
    #[error("event {id} cannot be written as JSON: {source}")]
    Encode {
        /// The event.
        id: EventId,
        source: serde_json::Error,
    },
    /// An event is longer than any line of a log may be.
    #[error("event {id} would be a line of {bytes} bytes, and {LONGEST_LINE} is the limit")]
    Long {
        /// The event.
        id: EventId,
        bytes: usize,
    },
    /// An event was not written. Nothing of it counts; what was written before is whole.
    #[error("event {id} was not written to {path}: {source}; everything up to event {last} is safe{}", remedy(.source))]
    Append {
        /// The event.
        id: EventId,
        /// The last event that is in the log.
        last: EventId,
        path: PathBuf,
        /// Cause: `ENOSPC` when the disk is full.
        source: io::Error,
    },
    #[error("the session log {path} cannot be synchronised: {source}")]
    Sync {
        /// The log.
        path: PathBuf,
        source: io::Error,
    },
    /// Nobody brings the log to the disk any more.
    #[error("the session log cannot be synchronised: the thread that does so has ended")]
    FlusherGone,
    #[error("cannot read the session log {path}: {source}")]
    Read {
        /// The log.
        path: PathBuf,
        source: io::Error,
    },
}

impl LogError {
    /// The stable code, where it has one.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        let source = match self {
            Self::Held { .. } => return Some(ErrorCode::SessionOpen),
            Self::Directory { source, .. }
            | Self::Create { source, .. }
            | Self::Append { source, .. }
            | Self::Sync { source, .. } => source,
            _ => return None,
        };
        let is_full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        is_full.then_some(ErrorCode::DiskFull)
    }
}

/// Returns the remedy, where one is known.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space there, and start again"
        }
        _ => "",
    }
}

/// Something in a log that should not be there. The rest of the log is usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The last line is incomplete: the writer was stopped in the middle of it.
    #[error("line {line} is torn: the writer was stopped in the middle of it")]
    Torn {
        /// The line, from 1.
        line: usize,
    },
    #[error("line {line} is no event: {reason}")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        reason: String,
    },
    /// A line is an event of a later version.
    #[error("line {line} is an event of the type `{type}`, which this version does not know; it is left out")]
    UnknownType {
        /// The line, from 1.
        line: usize,
        r#type: String,
    },
    /// A line is longer than any that is written; it is left out.
    #[error("line {line} has {bytes} bytes, which is longer than any line of a log; it is left out")]
    Long {
        /// The line, from 1.
        line: usize,
        bytes: u64,
    },
    /// More faults exist than are listed.
    #[error("{count} more lines have faults")]
    More {
        /// The number of those that are not listed.
        count: usize,
    },
    /// A line does not carry the digest of the line before it: something was changed, removed, added or moved.
    #[error("line {line} does not continue the chain: something before it was changed, removed or moved")]
    Chain {
        /// The line, from 1.
        line: usize,
    },
    /// A line does not have the digest that it carries of itself, or has lost it.
    #[error("line {line} was changed: its own digest does not fit")]
    Changed {
        /// The line, from 1.
        line: usize,
    },
    /// A line belongs to another session than the first one.
    #[error("event {id} belongs to session {session}")]
    Session {
        /// The event.
        id: EventId,
        session: String,
    },
    /// Two events have the same id; the first one counts.
    #[error("there are two events {id}; the later line is left out")]
    Duplicate {
        /// The id.
        id: EventId,
    },
    /// An event comes after one that happened later.
    #[error("event {id} stands behind a later one")]
    Order {
        /// The event.
        id: EventId,
    },
    /// An event's parent is missing, or comes after it.
    #[error("event {id} follows from event {parent}, which is not there")]
    Orphan {
        /// The event.
        id: EventId,
        parent: EventId,
    },
}
