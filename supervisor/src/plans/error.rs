//! Errors of the store of plans.

use std::io;
use std::path::PathBuf;

/// The reason why a plan cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A record is none of ours, or torn.
    #[error("cannot use the record {path}: {cause}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The text is too long.
    #[error("cannot keep a plan of {0} bytes: it may have 262144")]
    TooLong(usize),
    /// No plan is there.
    #[error("no plan of this project is kept")]
    None,
    /// No plan has such a name.
    #[error("no plan {prefix:?}; there are: {}", .candidates.join(", "))]
    Unknown {
        /// The beginning of a name that was asked for.
        prefix: String,
        /// The plans that are there.
        candidates: Vec<String>,
    },
    /// Several plans have such a name.
    #[error("{prefix:?} names several plans: {}", .candidates.join(", "))]
    Ambiguous {
        /// The beginning of a name that was asked for.
        prefix: String,
        /// The plans that it names.
        candidates: Vec<String>,
    },
    /// The text is another one than the one that was judged.
    #[error("the plan {id} has the digest {found}: another text than the one that was approved")]
    Changed {
        /// The plan.
        id: String,
        /// The digest of its text.
        found: String,
    },
}
