//! An agent run: one agent with its worker, its open stream, its timers, and everything else that is its own.
//!
//! It only routes. Each thing that an agent has is a value with private fields; a run gives the core what happens in them, and gives them
//! what the core decides.

mod effects;
mod end;
mod events;
mod machine;

pub(super) use end::add_below;
pub(super) use events::Request;
pub(super) use machine::Occurrence;
pub use machine::{AgentParts, AgentRun};
