//! What a session leaves behind: its log and what is shown of it, checkpoints, changes, plans and pictures.

pub mod changes;
pub mod checkpoints;
pub(crate) mod pictures;
pub(crate) mod plans;
pub mod session;
pub mod sessions;
pub(crate) mod shown;
