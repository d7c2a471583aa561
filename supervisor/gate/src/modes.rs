//! Approval modes: what each makes writable.

use ipc::path::WirePath;
pub use protocol::approval::ApprovalMode;

/// What the modes of a session differ in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// What `auto` makes writable: the project, and what git and caches need beside it.
    pub auto: Vec<WirePath>,
    /// What is writable in every mode.
    pub always: Vec<WirePath>,
}
