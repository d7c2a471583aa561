//! Calls that the supervisor sends to an agent's worker by itself: for the project's instructions, the names of its files, and its branch.

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
