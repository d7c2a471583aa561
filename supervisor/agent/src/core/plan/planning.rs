//! The session as far as its planner has to know it.

use std::sync::Arc;
use std::time::Duration;

use gate::StandingRights;
use gate::tools::OfferedServer;
use ipc::path::WirePath;
use protocol::plan::{OnFailure, PlaceToCreate, PlanStep};
use serde::{Deserialize, Serialize};

/// The name under which the session's server writes a plan to its file, and answers with a [`PlanInFile`] as JSON.
pub const PLAN_FILE: &str = "plan_file";

/// The answer to a plan that is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlanInFile {
    /// The file that the plan was written to.
    pub path: WirePath,
    /// The places that it asks for and where nothing stands.
    pub to_create: Vec<PlaceToCreate>,
}

/// The session as far as its planner has to know it.
#[derive(Clone, Debug)]
pub struct Planning {
    /// The rights that the flags and settings of the session allow: execution has no more.
    pub ceiling: StandingRights,
    /// The decision on a plan, where no person is asked.
    pub approver: Approver,
    /// The fate of the rest after a failed step, where the plan does not say.
    pub on_failure: OnFailure,
    /// The number of times that a failed step may be tried again.
    pub retries: u32,
    /// The longest that an acceptance command may take.
    pub acceptance_timeout: Duration,
    /// The steps that executions so far have finished, from the first.
    pub finished: Vec<PlanStep>,
    /// SHA-256 of a plan, in hexadecimal, that the user approved before the session began: it is executed as far as the
    /// flags of this run allow.
    pub approved: Option<String>,
    /// The servers of the session, whose tools a plan may list.
    pub servers: Arc<[OfferedServer]>,
}

/// The one that decides on a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approver {
    /// A person, by the front end that answers approvals; nobody if there is none.
    #[default]
    Person,
    /// The flags of this run, so many times: whatever lies within them is approved.
    Flags {
        /// The number of plans that they still approve.
        rounds: u32,
    },
}
