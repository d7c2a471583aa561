//! Stored plans, in a private directory that is hidden from every agent.
//!
//! A plan is a Markdown file that people may edit. The record of a plan has the digest of the text, and is valid only
//! while the file has that digest.

mod find;
mod record;
mod store;

pub(crate) use self::find::{FindError, KeptPlan, record_of};
pub(crate) use self::record::{PlanFate, PlanRecord};
pub(crate) use self::store::{Store, StoreError};
