//! Preparation before the first confined process: directories, project, access policy, temp directory, spawner.

mod agent;
mod caches;
mod environment;
mod error;
mod git;
mod idle;
mod leftovers;
mod machine;
mod private_project;
mod programs;
mod scope;
mod setup;
mod unwritable;
mod wanted;

pub(crate) use agent::AgentPlace;
pub(crate) use error::SetupError;
pub(crate) use git::GIT_READS;
pub(crate) use idle::idle_flags;
pub(crate) use machine::User;
pub use private_project::PrivateProject;
pub(crate) use scope::Mode;
pub use setup::ProjectSandbox;
pub(crate) use wanted::{Caches, ConfinementOptions, Leftovers, NamedPath};
