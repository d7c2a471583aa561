//! Data of plans: the facts about the session that a planner needs, and the progress of an executor.

mod execution;
mod planning;

pub use execution::{Execution, STEP_BEGINS, STEP_CHANGES, Step};
pub(in crate::core) use execution::{STEP_ENDS, outcome};
pub use planning::{Approver, PLAN_FILE, PlanInFile, Planning};
