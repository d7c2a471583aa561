//! Calls that the supervisor itself sends to a worker: for a project's instructions, its file names and its branch.

mod branch;
mod file_names;
mod instructions;
mod machine;
mod order;
mod origin;
mod repository_above;

pub(super) use machine::OwnCalls;
pub(super) use order::{OwnOrder, ProjectWords};
pub(super) use origin::CallOrigin;
