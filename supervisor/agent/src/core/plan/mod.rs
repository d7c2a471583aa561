//! Plans as values: what their planner knows of the session, and how far their executor has come.

mod execution;
mod planning;

pub use execution::{Execution, STEP_BEGINS, STEP_CHANGES, Step};
pub(in crate::core) use execution::{STEP_ENDS, outcome};
pub use planning::{Approver, PLAN_FILE, PlanInFile, Planning};
