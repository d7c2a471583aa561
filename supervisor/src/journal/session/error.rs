use std::io;
use std::path::PathBuf;

use ipc::id::EventId;
use protocol::error_code::ErrorCode;

use super::parts::LONGEST_LINE;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("`{0}` is not a session id: expected at most 64 letters, digits, `-` and `_`")]
    Id(String),
    /// The directory of the logs cannot be created, or is not safe to use.
    #[error("cannot use the session directory {path}: {source}")]
    Directory { path: PathBuf, source: io::Error },
    #[error("the session directory {path} belongs to user {owner}, not to user {user}")]
    Owner { path: PathBuf, owner: u32, user: u32 },
    #[error("cannot make the session log {path}: {source}")]
    Create { path: PathBuf, source: io::Error },
    #[error("the session of {path} is open in another process{}\n  hint: end the session there", holder.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    Held {
        path: PathBuf,
        /// Id of the process that has the lock; `None` if the kernel does not report it.
        holder: Option<u32>,
    },
    /// The log is damaged. A session does not continue from events that may be false.
    #[error("cannot continue the session: {path}: {fault}\n  hint: bailiwick audit {path} checks the log")]
    Broken {
        path: PathBuf,
        /// The first fault of the log.
        fault: Fault,
    },
    #[error("cannot delete the session log {path}: {source}")]
    Remove { path: PathBuf, source: io::Error },
    #[error("event {id} cannot be written as JSON: {source}")]
    Encode { id: EventId, source: serde_json::Error },
    #[error("event {id} needs a line of {bytes} bytes, but the limit is {LONGEST_LINE}")]
    Long { id: EventId, bytes: usize },
    /// An event was not written. All earlier events are complete in the file.
    #[error("event {id} was not written to {path}: {source}; everything up to event {last} is saved{}", remedy(.source))]
    Append {
        id: EventId,
        last: EventId,
        path: PathBuf,
        /// The cause, such as `ENOSPC` for a full disk.
        source: io::Error,
    },
    #[error("the session log {path} cannot be written to the disk: {source}")]
    Sync { path: PathBuf, source: io::Error },
    #[error("the session log cannot be written to the disk: the thread for this has ended")]
    FlusherGone,
    #[error("cannot read the session log {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
}

impl LogError {
    /// Returns the stable code that front ends get for the error; `None` if it has none.
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

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space there, and start again"
        }
        _ => "",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The last line is incomplete, because its writer was killed while it wrote.
    #[error("line {line} is incomplete: Bailiwick was stopped in the middle of this line")]
    Torn {
        /// Number of the line, from 1.
        line: usize,
    },
    #[error("line {line} is not an event: {reason}")]
    Unreadable { line: usize, reason: String },
    #[error(
        "line {line} is an event of the type `{type}`, which this version does not know; the line is left out"
    )]
    UnknownType {
        /// Number of the line, from 1.
        line: usize,
        r#type: String,
    },
    #[error("line {line} has {bytes} bytes, more than any line of a log; the line is left out")]
    Long {
        /// Number of the line, from 1.
        line: usize,
        bytes: u64,
    },
    #[error("{count} more lines have faults")]
    More { count: usize },
    /// A line does not state the digest of the line before it. A line was changed, removed, added or moved.
    #[error("line {line} does not continue the chain: an earlier line was changed, removed or moved")]
    Chain {
        /// Number of the line, from 1.
        line: usize,
    },
    /// A line's own digest is missing or wrong.
    #[error("line {line} was changed: its digest does not match its content")]
    Changed {
        /// Number of the line, from 1.
        line: usize,
    },
    #[error("event {id} belongs to another session, {session}")]
    Session { id: EventId, session: String },
    #[error("there are two events {id}; the later line is left out")]
    Duplicate { id: EventId },
    #[error("event {id} comes after an event with a higher number")]
    Order { id: EventId },
    /// The parent of an event is missing, or comes after the event.
    #[error("event {id} follows from event {parent}, which is missing")]
    Orphan { id: EventId, parent: EventId },
}
