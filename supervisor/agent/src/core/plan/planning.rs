//! The session, as far as its planner needs it.

use std::sync::Arc;
use std::time::Duration;

use gate::StandingRights;
use gate::tools::OfferedServer;
use ipc::path::WirePath;
use protocol::plan::{OnFailure, PlaceToCreate, PlanStep};
use serde::{Deserialize, Serialize};

/// Name under which the session's server writes a plan to its file, and answers with a [`PlanInFile`] as JSON.
pub const PLAN_FILE: &str = "plan_file";

#[derive(Debug, Serialize, Deserialize)]
pub struct PlanInFile {
    pub path: WirePath,
    /// Missing paths that the plan asks for.
    pub to_create: Vec<PlaceToCreate>,
}

#[derive(Clone, Debug)]
pub struct Planning {
    /// Access that flags and settings of the session allow: the limit of an execution.
    pub ceiling: StandingRights,
    /// The decision on a plan, if no person is asked.
    pub approver: Approver,
    /// The default handling of failed steps.
    pub on_failure: OnFailure,
    pub retries: u32,
    pub acceptance_timeout: Duration,
    /// The steps that earlier executions have finished, from the first.
    pub finished: Vec<PlanStep>,
    /// Hexadecimal SHA-256 of a plan that the user approved before the session: it is executed as far as the flags of
    /// this run allow.
    pub approved: Option<String>,
    /// The servers of the session, whose tools a plan may list.
    pub servers: Arc<[OfferedServer]>,
}

/// Approver of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approver {
    /// The front end's person; nobody without a front end.
    #[default]
    Person,
    /// The flags of this run, within their limits, for a number of plans.
    Flags {
        /// Number of plans that they still approve.
        rounds: u32,
    },
}
