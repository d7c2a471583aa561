//! The rights of an agent: those that it has, those that the user changes, and approvals that last for the session.
//!
//! Rights never change in place: the worker is replaced. [`RightsState`] decides which rights follow from a change, and
//! whether a worker has to be replaced for them; it knows no call. Results are held back until the next worker is
//! ready, so that the model reads them together with its new rights; calls that it makes meanwhile wait for that
//! worker.

mod machine;
mod turn_access;

pub(in crate::core) use machine::{Changed, RightsState, Withdrawal};
pub(in crate::core) use turn_access::Due;

#[cfg(test)]
mod tests;
