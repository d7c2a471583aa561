//! The messages to and from a worker, which can only answer tool calls.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::confinement::Tier;
use crate::effect::{Part, bytes};
use crate::id::{AgentId, CallId};
use crate::path::WirePath;
use crate::rights::Rights;
use crate::tool::{ToolCall, ToolError, ToolOutput};

/// A message from the supervisor to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// The first message, with the data that a worker needs at its start.
    Hello(Hello),
    /// A tool call to execute.
    Call {
        /// Id by which `Cancel` and all answers name the call.
        call: CallId,
        /// The work to do.
        work: Work,
    },
    /// A part of an approved effect. The last part starts its execution.
    Commit {
        /// Id of the tool call that has this effect.
        call: CallId,
        /// The next part, in order.
        part: Part,
    },
    /// Cancels a tool call; its outcome still follows.
    Cancel {
        /// The id that the supervisor gave the call in [`ToWorker::Call`].
        call: CallId,
    },
    /// No more tool calls follow: the worker finishes, sends `Bye` and exits.
    Drain,
}

/// Data that a worker needs at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The agent that the worker serves.
    pub agent: AgentId,
    /// Root directory of the project, to which relative paths refer.
    pub project: WirePath,
    /// The private temp directory, if the worker has one.
    pub temp: Option<WirePath>,
    /// Access of the worker, enforced by the kernel. The worker uses it for error messages and its commands' domains.
    pub rights: Rights,
    /// The sandbox tier that enforces the access.
    pub tier: Tier,
    /// A line that the shell executes before each command, if the settings have one.
    pub shell_init: Option<String>,
    /// Temporary files that an earlier process of a continued session may have left.
    pub leftovers: Option<Leftovers>,
}

/// Temporary files that interrupted writes have left behind, to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// Paths of the files that were to be written, or of their directories.
    pub places: Vec<WirePath>,
    /// A time in nanoseconds since the epoch. Only files that did not change since then may be removed.
    pub before_ns: i64,
}

/// The work of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Executes a tool call of the model.
    Run(ToolCall),
    /// Computes the effect of a tool call without executing it.
    Prepare(ToolCall),
    /// Reads the project: sends an entry for each file and link that git tracks or does not ignore.
    Snapshot {
        /// True if the content of each file follows its entry.
        contents: bool,
    },
    /// Sends entry and content of each of these paths that exists.
    Fetch {
        /// Paths relative to the project.
        paths: Vec<WirePath>,
    },
}

/// A message from a worker to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToSupervisor {
    /// The first message, in answer to [`ToWorker::Hello`].
    Ready(Ready),
    /// Output of a tool call before its outcome.
    Output {
        /// The id that the supervisor gave the call in [`ToWorker::Call`].
        call: CallId,
        /// Bytes of output, or entries of a snapshot.
        chunk: Chunk,
    },
    /// A part of a computed effect. The outcome of the tool call follows the last part.
    Prepared {
        /// The id that the supervisor gave the call in [`ToWorker::Call`].
        call: CallId,
        /// The next part, in order.
        part: Part,
    },
    /// The end of a tool call: exactly one for each.
    Outcome {
        /// The id that the supervisor gave the call in [`ToWorker::Call`].
        call: CallId,
        /// The result, which the supervisor does not trust.
        outcome: CallOutcome,
    },
    /// The last message, after `Drain`.
    Bye,
}

/// A worker's description of itself. The supervisor does not trust it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The worker's process id in its own pid namespace.
    pub pid: u32,
    /// The worker's own version.
    pub version: String,
}

/// A part of a tool call's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chunk {
    /// Bytes of a command's standard output and standard error as they came, or lines that a search found.
    Text(#[serde(with = "bytes")] Vec<u8>),
    /// The next entries of a snapshot, from one to [`MOST_ENTRIES`].
    Entries(#[serde(deserialize_with = "few")] Vec<SnapshotEntry>),
    /// A part of the content of the last entry before it. All parts together have the size in the entry.
    Content(#[serde(with = "bytes")] Vec<u8>),
}

/// Maximum number of entries of a chunk. An entry takes three times as many bytes in memory as in a frame.
pub const MOST_ENTRIES: usize = 1024;

fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SnapshotEntry>, D::Error> {
    let entries = Vec::deserialize(deserializer)?;
    if (1..=MOST_ENTRIES).contains(&entries.len()) {
        return Ok(entries);
    }
    Err(D::Error::custom(format!("{} entries in a chunk, not between 1 and {MOST_ENTRIES}", entries.len())))
}

/// A file or link of the project in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    /// Path relative to the project.
    pub path: WirePath,
    /// The kind of file, with its size or target.
    pub kind: SnapshotKind,
    /// Inode and times, which show if the file has changed.
    pub stamp: Stamp,
    /// Birth time of the file in nanoseconds since the epoch, if its content was read and the file system has it.
    pub born_ns: Option<i64>,
}

/// The kinds of entries in a snapshot, which are those of git.
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

/// Inode number and times of a file. Equal stamps mean an unchanged file, except within one clock tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Inode number of the file.
    pub inode: u64,
    /// Time of the last change of content, in nanoseconds since the epoch.
    pub modified_ns: i64,
    /// Time of the last change of the inode, in nanoseconds since the epoch. Setting it needs capabilities.
    pub changed_ns: i64,
}

/// Result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallOutcome {
    /// The call succeeded.
    Done(ToolOutput),
    /// The effect was computed, and its parts have been sent.
    Prepared,
    /// The call failed.
    Failed(ToolError),
    /// The tool call was cancelled.
    Cancelled,
}
