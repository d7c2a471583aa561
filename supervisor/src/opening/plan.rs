//! Plans in a session: what the settings say of them, what a planner may do itself, and where plans are written.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ipc::cost::Usd;
use ipc::id::AgentId;
use ipc::plan::OnFailure;
use ipc::rights::{Network, Reach, Rights};

use crate::core::{Approver, PLAN_FILE, Planning, RunLimits};
use crate::directories::Directories;
use crate::driver::ToolServer;
use crate::gate::{ApprovalMode, Standing};
use crate::plans::Store;
use crate::prompt::Part;
use crate::tools::ServedCall;

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
    /// The price that a planner, and that an executor, may come to in all.
    pub max_usd: (Option<Usd>, Option<Usd>),
}

impl PlanOptions {
    /// The planning of a planner whose session may do this.
    pub(super) fn planning(&self, ceiling: Standing) -> Planning {
        Planning {
            ceiling,
            approver: self.approver,
            on_failure: self.on_failure,
            retries: self.retries,
            acceptance_timeout: self.acceptance_timeout,
            finished: Vec::new(),
        }
    }

    /// The model of an agent with this part in a plan, where it is said.
    pub(super) fn model(&self, part: Option<Part>) -> Option<&String> {
        let (planner, executor) = &self.models;
        match part? {
            Part::Planner => planner.as_ref(),
            Part::Executor => executor.as_ref(),
        }
    }

    /// The bounds on an agent with this part in a plan.
    pub(super) fn limits(&self, part: Option<Part>) -> RunLimits {
        let max_usd = match part {
            Some(Part::Planner) => self.max_usd.0,
            Some(Part::Executor) => self.max_usd.1,
            None => None,
        };
        RunLimits { max_usd, ..RunLimits::default() }
    }
}

/// The rights of a session's first agent that makes a plan: it reads what the session may read, and writes its private temp.
pub(super) fn planner_standing(ceiling: &Standing) -> Standing {
    let rights = Rights {
        write: ceiling.temp.iter().cloned().collect(),
        net: Network::Off,
        reach: Reach::default(),
        ..ceiling.rights.clone()
    };
    Standing { rights: rights.normalised(), mode: ApprovalMode::Deny, modes: None, ..ceiling.clone() }
}

/// Writes the plans of a session's planners, each into a file of its own.
pub(super) struct PlanFiles {
    store: Store,
    /// The file that each planner has written to.
    files: Arc<Mutex<HashMap<AgentId, PathBuf>>>,
}

impl PlanFiles {
    /// Writes below our own directories.
    pub(super) fn new(directories: &Directories) -> Self {
        Self { store: Store::at(directories), files: Arc::default() }
    }
}

impl ToolServer for PlanFiles {
    fn serve(&self, agent: &AgentId, call: ServedCall) -> BoxFuture<'static, Result<String, String>> {
        let text = match call {
            ServedCall::Supervisor(call) if call.tool == PLAN_FILE => call.json,
            ServedCall::Supervisor(_) | ServedCall::External(_) => {
                return std::future::ready(Err("nothing serves this tool here".to_owned())).boxed();
            }
        };
        let (store, files, agent) = (self.store.clone(), Arc::clone(&self.files), agent.clone());
        let write = move || {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            let path = match files.get(&agent) {
                Some(path) => store.replace(path, &text).map(|()| path.clone()),
                None => store.create(&text),
            };
            let path = path.map_err(|error| error.to_string())?;
            files.insert(agent, path.clone());
            Ok(path.display().to_string())
        };
        async move { tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(error.to_string())) }
            .boxed()
    }
}
