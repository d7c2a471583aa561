//! Plans in a session: their options from the settings, and the access of a planner.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipc::rights::{Network, Reach, Rights};
use protocol::cost::Usd;
use protocol::plan::{OnFailure, PlaceToCreate, PlanStep};

use agent::core::{Approver, Planning, RunLimits};
use agent::prompt::Part;
use gate::{ApprovalMode, StandingRights};

#[derive(Clone, Debug)]
pub(crate) struct PlanOptions {
    pub approver: Approver,
    /// Reaction to a failed step if the plan states none.
    pub on_failure: OnFailure,
    pub retries: u32,
    pub acceptance_timeout: Duration,
    /// Models of planner and executor; `None` for the session's model.
    pub models: (Option<String>, Option<String>),
    /// Plan that was approved before the session, to be executed; `None` if there is none.
    pub earlier: Option<EarlierPlan>,
    /// Cost limits of planner and executor.
    pub max_usd: (Option<Usd>, Option<Usd>),
}

#[derive(Clone, Debug)]
pub(crate) struct EarlierPlan {
    /// SHA-256 of the plan's bytes, in hexadecimal.
    pub digest: String,
    /// File of the plan and of its later revisions.
    pub path: PathBuf,
    /// Missing directories that the plan writes to. The user saw them with the approval.
    pub to_create: Vec<PlaceToCreate>,
    /// Steps that an earlier execution finished, counted from the first step. They are not executed again.
    pub finished: Vec<PlanStep>,
}

impl PlanOptions {
    /// Returns what a planner needs. `ceiling` is the access of the session, which executors cannot exceed.
    pub(super) fn planning(&self, ceiling: StandingRights) -> Planning {
        Planning {
            ceiling,
            approver: self.approver,
            on_failure: self.on_failure,
            retries: self.retries,
            acceptance_timeout: self.acceptance_timeout,
            finished: self.earlier.as_ref().map(|plan| plan.finished.clone()).unwrap_or_default(),
            approved: self.earlier.as_ref().map(|plan| plan.digest.clone()),
            servers: Arc::default(),
        }
    }

    /// Returns the model that the settings name for this part in a plan; `None` for the session's model.
    pub(super) fn model(&self, part: Option<Part>) -> Option<&String> {
        let (planner, executor) = &self.models;
        match part? {
            Part::Planner => planner.as_ref(),
            Part::Executor => executor.as_ref(),
        }
    }

    pub(super) fn limits(&self, part: Option<Part>) -> RunLimits {
        let max_usd = match part {
            Some(Part::Planner) => self.max_usd.0,
            Some(Part::Executor) => self.max_usd.1,
            None => None,
        };
        RunLimits { max_usd, ..RunLimits::default() }
    }
}

/// Returns a planner's access: to read all that the session may read, and to write only the private temp directory.
pub(super) fn planner_standing(ceiling: &StandingRights) -> StandingRights {
    let rights = Rights {
        write: ceiling.temp().into_iter().cloned().collect(),
        net: Network::Off,
        reach: Reach::default(),
        sockets: Vec::new(),
        ..ceiling.rights().clone()
    };
    ceiling.clone().with_rights(rights.normalised()).with_mode(ApprovalMode::Deny).fixed()
}
