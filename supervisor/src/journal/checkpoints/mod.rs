//! Checkpoints: the project's files at the messages of the person, so that they can be restored later.
//!
//! Each checkpoint is a snapshot of the project's files that a confined worker took: before the first call of a turn
//! that may write, at the turn's end, and before and after each restoration of files. While a front end watches, more
//! checkpoints are taken between the calls of a turn, to show the changed files. The first one stores the contents of
//! all files, and each later one those that changed. The files are in the state directory, which no agent can access:
//!
//! ```text
//! checkpoints/SESSION/looks.jsonl   a line for each checkpoint: paths that changed since the last one, and states
//! checkpoints/SESSION/contents      contents, one behind the other, each once
//! ```
//!
//! Ignored files, git's own directory and contents beyond [`MOST_OF_A_FILE`] are not in a checkpoint.

mod checkpoint;
mod differences;
mod rewinding;
mod store;
#[cfg(test)]
mod tests;

pub use checkpoint::{At, Checkpoint, Kept};
pub use differences::{CheckpointChanges, CheckpointDifference, StampedChange, counts};
pub use rewinding::{Restore, Rewinding, Why};
pub use store::{Checkpoints, Wanted, copy, nanoseconds, remove, remove_old};

/// Maximum size in bytes of a file whose content is stored: 2 MiB.
pub const MOST_OF_A_FILE: u64 = 2 << 20;

/// Maximum size in bytes of a session's file `looks.jsonl`: 256 MiB.
pub const MOST_OF_LINES: u64 = 256 << 20;

/// Maximum size in bytes of a session's file `contents`: 512 MiB.
pub const MOST_OF_A_SESSION: u64 = 512 << 20;
