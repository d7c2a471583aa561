//! Stored plans, in a private directory that is hidden from every agent. Each plan has a file, and a record with its
//! project and its state.
//!
//! The plan's file is Markdown that people may edit. The record has the digest of the text and is valid only while
//! the digest matches.

mod find;
mod record;
mod store;

pub(crate) use self::find::{FindError, KeptPlan, record_of};
pub(crate) use self::record::{PlanFate, PlanRecord};
pub(crate) use self::store::{Store, StoreError};
