//! The plans that are kept: a directory of ours, private and hidden from every agent. Each plan has a file of its own, and beside it a record
//! of its project and of its fate.
//!
//! The plan's file is Markdown that people edit. The record says nothing of the plan's text but its digest: of other bytes nothing that it
//! says holds.

mod find;
mod record;
mod store;

pub(crate) use self::find::{FindError, KeptPlan, record_of};
pub(crate) use self::record::{PlanFate, PlanRecord};
pub(crate) use self::store::{Store, StoreError};
