//! Compares the needs of a call with an agent's access, and explains denials.
//!
//! Pure: paths are compared as data and never opened. The kernel confines an agent; this module saves calls that cannot
//! succeed, and explains those that did not.

mod advice;
mod calls;
mod change;
pub mod command_line;
mod explain;
mod fetch;
mod flags;
mod guest;
mod judge;
mod likely;
mod machine;
mod message;
mod offer;
pub mod path_pattern;
mod plan;
mod process;
mod proved;
mod sockets;
mod spawn;
mod standing;
mod succeeded;
mod unreached;

pub use change::{Change, Unchanged};
pub use guest::DeniedPart;
pub use judge::plain;
pub use judge::{Ask, Place, Verdict};
pub use likely::{declared_too_little, is_same};
pub use machine::Machine;
pub use offer::Offer;
pub use plan::PlanRefusal;
pub use sockets::hides_socket;
pub use spawn::{ChildRights, SpawnVerdict, at_start, narrowed, narrowed_grant};
pub use standing::StandingRights;

pub use crate::modes::{ApprovalMode, Modes};

#[cfg(test)]
mod tests;
