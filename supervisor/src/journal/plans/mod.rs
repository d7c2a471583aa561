//! Stored plans. They are in a private directory that is hidden from every agent. Each plan has a file, and beside it a
//! record with its project and its fate.
//!
//! The plan's file is Markdown that people may edit. The record has the digest of the text and applies only while the digest fits.

mod find;
mod record;
mod store;

pub(crate) use self::find::{FindError, KeptPlan, record_of};
pub(crate) use self::record::{PlanFate, PlanRecord};
pub(crate) use self::store::{Store, StoreError};
