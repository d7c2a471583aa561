//! The access of an agent: its current rights, the user's changes, and approvals for the session.
//!
//! A worker's access never changes: another worker replaces it. [`RightsState`] decides when, independently of calls.
//! Results are held back until the next worker is ready, so that the model reads them together with the new access.

mod machine;
mod turn_access;

pub(in crate::core) use machine::{Changed, RightsState, Withdrawal};
pub(in crate::core) use turn_access::Due;

#[cfg(test)]
mod tests;
