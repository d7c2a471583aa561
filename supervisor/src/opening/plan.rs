//! Plans in a session: what the settings say of them, what a planner may do itself, and where plans are written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ipc::cost::Usd;
use ipc::id::{AgentId, ConversationId};
use ipc::path::WirePath;
use ipc::plan::OnFailure;
use ipc::rights::{Network, Reach, Rights};

use crate::core::{Approver, PLAN_FILE, Planning, RunLimits};
use crate::driver::ToolServer;
use crate::gate::{ApprovalMode, Standing};
use crate::place::Setup;
use crate::plans::{PlanId, Store};
use crate::prompt::Part;
use crate::tools::ServedCall;

/// What a session does with plans.
#[derive(Clone, Debug)]
pub(crate) struct PlanOptions {
    /// Who decides on a plan.
    pub approver: Approver,
    /// What becomes of the rest after a failed step, where the plan does not say.
    pub on_failure: OnFailure,
    /// How often a failed step may be tried again.
    pub retries: u32,
    /// The longest that an acceptance command may take.
    pub acceptance_timeout: Duration,
    /// The model of a planner, and that of an executor, where they are others than the session's.
    pub models: (Option<String>, Option<String>),
    /// What a planner, and what an executor, may cost in all.
    pub max_usd: (Option<Usd>, Option<Usd>),
}

impl PlanOptions {
    /// What a planner has to know, whose session may do this.
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
    store: Arc<Store>,
    project: WirePath,
    conversation: ConversationId,
    /// The plan that each planner has written last.
    written: Arc<Mutex<HashMap<AgentId, PlanId>>>,
}

impl PlanFiles {
    /// The plans of a session in a project.
    pub(super) fn new(setup: &Setup, conversation: &ConversationId) -> Self {
        Self {
            store: Arc::new(Store::at(&setup.directories)),
            project: setup.policy.project.clone(),
            conversation: conversation.clone(),
            written: Arc::default(),
        }
    }
}

impl ToolServer for PlanFiles {
    fn serve(&self, agent: &AgentId, call: ServedCall) -> BoxFuture<'static, Result<String, String>> {
        let ServedCall::Supervisor(call) = call else {
            return std::future::ready(Err("this session has no such server".to_owned())).boxed();
        };
        if call.tool != PLAN_FILE {
            return std::future::ready(Err(format!("nothing serves {} here", call.tool))).boxed();
        }
        let (store, written, agent) = (Arc::clone(&self.store), Arc::clone(&self.written), agent.clone());
        let (project, conversation) = (self.project.clone(), self.conversation.clone());
        let write = move || {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            let stored = match written.get(&agent) {
                Some(id) => store.write(id, &call.json),
                None => store.create(project.as_path(), Some(conversation), &call.json),
            };
            let stored = stored.map_err(|error| error.to_string())?;
            written.insert(agent, stored.id);
            Ok(stored.path.display().to_string())
        };
        async move { tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(error.to_string())) }
            .boxed()
    }
}
