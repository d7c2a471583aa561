//! An agent run: routes between the agent's core and its worker, model stream, timers and other values.

mod effects;
mod end;
mod events;
mod machine;

pub(super) use end::add_below;
pub(super) use events::Request;
pub(super) use machine::Occurrence;
pub use machine::{AgentParts, AgentRun};
