//! The plans that are kept: a directory of ours in which each plan has its text, `ID.md`, and its record, `ID.json`.
//!
//! An approval is bound to the digest of the text. Whoever reads a plan compares the two: an approval of other bytes counts for nothing.

mod error;
mod files;
mod id;
mod record;
mod store;
#[cfg(test)]
mod tests;

pub use self::error::StoreError;
pub use self::id::PlanId;
pub use self::record::{Approval, ApprovedBy, Execution, Record, Rejection, State, Switch};
pub use self::store::{Listing, Store, StoredPlan};
