//! The facts about the session that a planner needs.

use std::sync::Arc;
use std::time::Duration;

use gate::StandingRights;
use gate::tools::OfferedServer;
use ipc::path::WirePath;
use protocol::plan::{OnFailure, PlaceToCreate, PlanStep};
use serde::{Deserialize, Serialize};

/// Name of the tool of a planner's server that writes a plan to its file. Its answer is a [`PlanInFile`] as JSON.
pub const PLAN_FILE: &str = "plan_file";

#[derive(Debug, Serialize, Deserialize)]
pub struct PlanInFile {
    pub path: WirePath,
    /// Paths in the plan's access that do not exist yet.
    pub to_create: Vec<PlaceToCreate>,
}

#[derive(Clone, Debug)]
pub struct Planning {
    /// Access that flags and settings of the session allow: the limit for a plan's execution.
    pub ceiling: StandingRights,
    pub approver: Approver,
    /// Default handling of failed steps.
    pub on_failure: OnFailure,
    pub retries: u32,
    pub acceptance_timeout: Duration,
    /// The steps that earlier executions have finished, from the first.
    pub finished: Vec<PlanStep>,
    /// Hexadecimal SHA-256 of a plan that the user approved before the session. The plan is executed if its access is
    /// within the flags of this run. `None` if there is no such plan.
    pub approved: Option<String>,
    /// The MCP servers of the session, whose tools a plan may list.
    pub servers: Arc<[OfferedServer]>,
}

/// Source of the approvals of plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approver {
    /// The person at the front end. Without a front end, nobody approves a plan.
    #[default]
    Person,
    /// The flags of this run: they approve plans within their limits.
    Flags {
        /// Number of further plans that the flags approve.
        rounds: u32,
    },
}
