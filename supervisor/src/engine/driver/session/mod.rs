//! A session: its agents, the user's actions, pauses, rewinds, and the end.

mod agents;
mod finish;
mod machine;
mod newcomer;
mod pause;
mod planners;
mod rewind;
mod runs;
mod tree;
mod user_actions;

pub use machine::Session;
pub use tree::{NotOpened, OpenedAgent, OpensAgents};
