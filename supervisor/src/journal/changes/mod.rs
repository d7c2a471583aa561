//! The change set: what a session did to the project's files, and the patch that says so.
//!
//! The base is the project's content at the session's start, the user's uncommitted changes included; the difference is
//! taken at its end. Confined workers read both: the supervisor opens none of the paths here, it only checks and compares
//! what arrives.
//!
//! ```text
//! Snapshot{contents:true}  ─► Intake ─► Snapshot ─► Base ─┐
//! Snapshot{contents:false} ─► Intake ─► Snapshot ─────────┴► Comparison ─► paths to fetch
//! Fetch{paths}             ─► Intake ─► Snapshot ─────────────► resolve ─► ChangeSet ─► patch::write ─► PatchFile
//! ```
//!
//! Contents lie in unlinked files that no agent can open, manifests in memory. Every bound of an [`Intake`] is checked
//! before anything is kept, since what arrives may come from a worker that was taken over.

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
