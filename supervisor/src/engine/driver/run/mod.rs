//! An agent run: one agent with its worker, stream and timers. It only routes between the core and these values.

mod effects;
mod end;
mod events;
mod machine;

pub(super) use end::add_below;
pub(super) use events::Request;
pub(super) use machine::Occurrence;
pub use machine::{AgentParts, AgentRun};
