//! The two directions of the worker boundary.
//!
//! No message of a worker asks for anything: it can only answer calls, or lie about their results.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::confinement::Tier;
use crate::effect::{Part, bytes};
use crate::id::{AgentId, CallId};
use crate::path::WirePath;
use crate::rights::Rights;
use crate::tool::{ToolCall, ToolError, ToolOutput};

/// Supervisor → worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// The first message: what the worker is for.
    Hello(Hello),
    /// A call to serve.
    Call {
        /// Id of the call.
        call: CallId,
        /// The work to do.
        work: Work,
    },
    /// A part of the effect to carry out; with the last one it happens.
    Commit {
        /// The call that it belongs to.
        call: CallId,
        /// The part.
        part: Part,
    },
    /// Ends a call; its outcome still comes.
    Cancel {
        /// The call.
        call: CallId,
    },
    /// No more calls will come: finish, say `Bye`, exit.
    Drain,
}

/// Facts that a worker needs at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The agent that it serves.
    pub agent: AgentId,
    /// The project: where relative paths begin.
    pub project: WirePath,
    /// The private temp directory.
    pub temp: Option<WirePath>,
    /// Rights of the worker, enforced by the kernel. The worker uses them for error messages and for the domains of its
    /// commands.
    pub rights: Rights,
    /// The tier that the kernel holds it to them by.
    pub tier: Tier,
    /// A line that every command's shell runs first.
    pub shell_init: Option<String>,
    /// Unfinished writes of an earlier process of its session, where a session is continued.
    pub leftovers: Option<Leftovers>,
}

/// Temporary files that nobody will rename, of writes that were cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// The files that were to be written, and directories that some were to be written in.
    pub places: Vec<WirePath>,
    /// Since this time none of them changed, in nanoseconds since the epoch.
    pub before_ns: i64,
}

/// Work that a call asks of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Serves a tool call of the model.
    Run(ToolCall),
    /// Works out the effect of a tool call without carrying it out.
    Prepare(ToolCall),
    /// Walks the project (ignore rules, and what git tracks) and streams an entry for everything that belongs to it.
    Snapshot {
        /// True if the contents of the files follow their entries.
        contents: bool,
    },
    /// Streams entries and contents of these paths, relative to the project; missing ones are left out.
    Fetch {
        /// The paths.
        paths: Vec<WirePath>,
    },
}

/// Worker → supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToSupervisor {
    /// The first message.
    Ready(Ready),
    /// Something that a call brings before its outcome.
    Output {
        /// The call.
        call: CallId,
        /// The piece.
        chunk: Chunk,
    },
    /// A part of a prepared effect; the outcome of the call follows the last one.
    Prepared {
        /// The call.
        call: CallId,
        /// The part.
        part: Part,
    },
    /// The end of a call: exactly one for each.
    Outcome {
        /// The call.
        call: CallId,
        /// The result.
        outcome: CallOutcome,
    },
    /// The last message, after `Drain`.
    Bye,
}

/// Self-description of a worker. A claim: the supervisor verifies from outside what matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The worker's process id in its own pid namespace.
    pub pid: u32,
    /// The worker's own version.
    pub version: String,
}

/// A piece of a call's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chunk {
    /// Bytes that a command printed (standard output and error as they came), or lines that a search found.
    Text(#[serde(with = "bytes")] Vec<u8>),
    /// The next entries of a snapshot, from one to [`MOST_ENTRIES`].
    Entries(#[serde(deserialize_with = "few")] Vec<SnapshotEntry>),
    /// Content of the last entry before it; the pieces add up to its size.
    Content(#[serde(with = "bytes")] Vec<u8>),
}

/// The most entries of a chunk. In memory each takes three times its bytes in a frame.
pub const MOST_ENTRIES: usize = 1024;

fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SnapshotEntry>, D::Error> {
    let entries = Vec::deserialize(deserializer)?;
    if (1..=MOST_ENTRIES).contains(&entries.len()) {
        return Ok(entries);
    }
    Err(D::Error::custom(format!("{} entries in a chunk, not between 1 and {MOST_ENTRIES}", entries.len())))
}

/// One thing of the project, as a snapshot saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    /// Path relative to the project.
    pub path: WirePath,
    /// The kind of entry.
    pub kind: SnapshotKind,
    /// The file system's evidence that it did not change.
    pub stamp: Stamp,
    /// Birth time of the file in nanoseconds since the epoch, if its content was read and the file system has it.
    pub born_ns: Option<i64>,
}

/// Kinds of entries that a snapshot can hold: those of git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotKind {
    /// A regular file.
    File {
        /// Permission bits (`0o777` of the mode).
        mode: u32,
        /// Size in bytes. That many bytes follow as `Content` if contents were requested and `omitted` is false.
        size: u64,
        /// True if the content is too large to be included.
        omitted: bool,
    },
    /// A symbolic link and its target.
    Symlink(WirePath),
}

/// Inode, size and times: equal stamps mean an unchanged file, except within one clock tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The inode's number.
    pub inode: u64,
    /// Last change of content, nanoseconds since the epoch.
    pub modified_ns: i64,
    /// Last change of inode, nanoseconds since the epoch; no process without capabilities can set it.
    pub changed_ns: i64,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallOutcome {
    /// The call succeeded.
    Done(ToolOutput),
    /// The effect that was asked for has been sent.
    Prepared,
    /// The call failed.
    Failed(ToolError),
    /// `Cancel` ended the call.
    Cancelled,
}
