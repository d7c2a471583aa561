//! Compares what a call needs with an agent's access, and explains denials.
//!
//! Pure: paths are compared as data and never opened. The kernel confines an agent; this module saves calls that cannot
//! succeed, and explains those that did not.

pub mod change;
pub mod command_line;
mod denial;
pub mod denied;
pub mod fetch;
pub mod flags;
pub mod guest;
pub mod judge;
mod machine;
pub mod offer;
pub mod path_pattern;
pub mod plan;
pub mod sockets;
pub mod spawn;
mod standing;

pub use change::{Change, Unchanged};
pub use guest::DeniedPart;
pub use judge::{Ask, Place, Verdict, plain};
pub use machine::Machine;
pub use offer::Offer;
pub use plan::PlanRefusal;
pub use spawn::{ChildRights, SpawnVerdict};
pub use standing::StandingRights;

pub use crate::modes::{ApprovalMode, Modes};

#[cfg(test)]
mod tests;
