//! The project as it was at the messages of the user's, so that its files can be taken back to there.
//!
//! A *look* is what a confined worker saw of the project: before the first call of a turn that may write, at the turn's end, and before and
//! after each rewind. While somebody watches, there are looks between the calls of a turn as well, for what front ends show as changed. The first look keeps the contents of all files, each later one those that changed since. Everything lies in the state
//! directory, where no agent can reach it:
//!
//! ```text
//! checkpoints/SESSION/looks.jsonl   a line for each look: the paths that changed since the one before, and their states
//! checkpoints/SESSION/contents      contents, one behind the other, each once
//! ```
//!
//! Not covered is what the first look did not see: ignored files, git's own directory, contents beyond [`MOST_OF_A_FILE`].

mod differences;
mod look;
mod rewinding;
mod store;
#[cfg(test)]
mod tests;

pub use differences::{LookChanges, LookDifference, StampedChange, counts};
pub use look::{At, Kept, Look};
pub use rewinding::{Restore, Rewinding, Why};
pub use store::{Checkpoints, Wanted, copy, nanoseconds, remove, remove_old};

/// The largest file whose content is kept: 2 MiB.
pub const MOST_OF_A_FILE: u64 = 2 << 20;

/// The most bytes of the looks of one session, without contents: 256 MiB.
pub const MOST_OF_LOOKS: u64 = 256 << 20;

/// The most bytes of contents that are kept of one session: 512 MiB.
pub const MOST_OF_A_SESSION: u64 = 512 << 20;
