//! Plans in a session: what the settings say of them, and what a planner may do itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipc::rights::{Network, Reach, Rights};
use protocol::cost::Usd;
use protocol::plan::{OnFailure, PlaceToCreate, PlanStep};

use agent::core::{Approver, Planning, RunLimits};
use agent::prompt::Part;
use gate::{ApprovalMode, StandingRights};

/// The options of a session's plans.
#[derive(Clone, Debug)]
pub(crate) struct PlanOptions {
    /// The one that decides on a plan.
    pub approver: Approver,
    /// The fate of the rest after a failed step, where the plan does not say.
    pub on_failure: OnFailure,
    /// The number of times that a failed step may be tried again.
    pub retries: u32,
    /// The longest that an acceptance command may take.
    pub acceptance_timeout: Duration,
    /// The model of a planner, and that of an executor, where they are others than the session's.
    pub models: (Option<String>, Option<String>),
    /// The plan that the session executes, where it was made before.
    pub earlier: Option<EarlierPlan>,
    /// The price that a planner, and that an executor, may come to in all.
    pub max_usd: (Option<Usd>, Option<Usd>),
}

/// A plan that was made and approved before the session.
#[derive(Clone, Debug)]
pub(crate) struct EarlierPlan {
    /// SHA-256 of its bytes, in hexadecimal.
    pub digest: String,
    /// Its file, which a revision of it is written to.
    pub path: PathBuf,
    /// The places that it asks for and that were to be created when it was approved.
    pub to_create: Vec<PlaceToCreate>,
    /// The first of its steps that an execution before has finished: they are not done again.
    pub finished: Vec<PlanStep>,
}

impl PlanOptions {
    /// The planning of a planner whose session may do this.
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

    /// Returns the model that the settings choose for the planner or the executor, if they do.
    pub(super) fn model(&self, part: Option<Part>) -> Option<&String> {
        let (planner, executor) = &self.models;
        match part? {
            Part::Planner => planner.as_ref(),
            Part::Executor => executor.as_ref(),
        }
    }

    /// Returns the limits of the planner or the executor.
    pub(super) fn limits(&self, part: Option<Part>) -> RunLimits {
        let max_usd = match part {
            Some(Part::Planner) => self.max_usd.0,
            Some(Part::Executor) => self.max_usd.1,
            None => None,
        };
        RunLimits { max_usd, ..RunLimits::default() }
    }
}

/// The rights of a session's first agent that makes a plan: it reads what the session may read, and writes its
/// private temp.
pub(super) fn planner_standing(ceiling: &StandingRights) -> StandingRights {
    let rights = Rights {
        write: ceiling.temp.iter().cloned().collect(),
        net: Network::Off,
        reach: Reach::default(),
        sockets: Vec::new(),
        ..ceiling.rights.clone()
    };
    StandingRights {
        rights: rights.normalised(),
        mode: ApprovalMode::Deny,
        modes: None,
        is_fixed: true,
        ..ceiling.clone()
    }
}
