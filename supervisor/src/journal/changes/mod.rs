//! The change set: the changes of a session to the project's files, and the patch that contains them.
//!
//! The base of the comparison is the project's content at the session's start, with the person's uncommitted changes.
//! The comparison happens at the session's end. Confined workers read the files. The supervisor opens none of the paths
//! and only checks and compares the received data.
//!
//! ```text
//! Snapshot{contents:true}  ─► Intake ─► Snapshot ─► Base ─┐
//! Snapshot{contents:false} ─► Intake ─► Snapshot ─────────┴► Comparison ─► paths to fetch
//! Fetch{paths}             ─► Intake ─► Snapshot ─────────────► resolve ─► ChangeSet ─► patch::write ─► PatchFile
//! ```
//!
//! Contents are in unlinked temporary files that no agent can open, and manifests are in memory. An [`Intake`] checks
//! all its limits before it stores anything, because the data may come from a compromised worker.

mod blob;
mod compare;
mod output;
pub mod patch;
mod path;
mod renames;
mod set;
mod snapshot;

pub use blob::{Blob, BlobId};
pub use compare::{Base, Comparison, batches};
pub use output::{PatchFile, PatchFileError};
pub use path::{PathError, ProjectPath};
pub use set::{ChangeSet, Content, Delta, FileDifference, State};
pub use snapshot::{Intake, IntakeError, Snapshot, SnapshotLimits};
