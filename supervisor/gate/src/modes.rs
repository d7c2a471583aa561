//! Approval modes: what each makes writable.

pub use ipc::approval::ApprovalMode;
use ipc::path::WirePath;

/// What the modes of a session differ in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// What `auto` makes writable: the project, and what git and caches need beside it.
    pub auto: Vec<WirePath>,
    /// What is writable in every mode.
    pub always: Vec<WirePath>,
}
