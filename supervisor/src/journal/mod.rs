//! The records of a session: its log in every form, checkpoints, changes, plans and pictures.

pub mod changes;
pub mod checkpoints;
pub(crate) mod pictures;
pub(crate) mod plans;
pub mod session;
pub mod sessions;
pub(crate) mod shown;
