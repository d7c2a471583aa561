//! The files of a session's plans, and their records.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ipc::approval::ReviewDecision;
use ipc::event::{
    ApprovalAnswered, DecidedBy, EventKind, NoticeCode, PlanAuthor, PlanCreated, SessionEvent, StepAccount,
    SubAgentResult, SubAgentStatus,
};
use ipc::id::{AgentCall, AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use ipc::plan::StepStatus;

use super::cut_off_plan::CutOffPlan;
use super::plan::EarlierPlan;
use crate::core::PLAN_FILE;
use crate::driver::{PlanRecords, ToolServer};
use crate::messages::say;
use crate::place::ProjectSandbox;
use crate::plans::{PlanFate, PlanRecord, Store, record_of};
use crate::tools::ServedCall;

/// Writes the plans of a session's planners, each into a file of its own, and keeps their records.
pub(super) struct PlanFiles {
    store: Store,
    project: WirePath,
    session: ConversationId,
    known: Arc<Mutex<KnownPlan>>,
}

#[derive(Default)]
struct KnownPlan {
    /// The file that each planner has written to.
    files: HashMap<AgentId, PathBuf>,
    /// The plan that each call is about: its file, and the digest of its bytes.
    plans: HashMap<AgentCall, (PathBuf, String)>,
}

impl PlanFiles {
    /// Those of a session: the server that writes them, and their records.
    pub(super) fn shared(
        setup: &ProjectSandbox,
        session: &ConversationId,
        earlier: Option<&EarlierPlan>,
    ) -> (Arc<dyn ToolServer>, Arc<dyn PlanRecords>) {
        let files = earlier.map(|plan| (AgentId::root(), plan.path.clone())).into_iter().collect();
        let shared = Arc::new(Self {
            store: Store::at(&setup.directories),
            project: setup.policy.project.clone(),
            session: session.clone(),
            known: Arc::new(Mutex::new(KnownPlan { files, ..KnownPlan::default() })),
        });
        (Arc::clone(&shared) as _, shared)
    }

    fn created(&self, agent: &AgentId, plan: &PlanCreated) {
        let path = plan.path.as_path().to_owned();
        let about = AgentCall { agent: agent.clone(), call: plan.call };
        lock(&self.known).plans.insert(about, (path.clone(), plan.digest.clone()));
        // One from before keeps its record until it is executed.
        if plan.author != PlanAuthor::Earlier {
            let record = PlanRecord::new(self.project.clone(), self.session.clone(), plan.digest.clone());
            self.write(&path, &record);
        }
    }

    fn becomes(&self, (agent, call): (&AgentId, CallId), fate: PlanFate, done: Option<u32>) {
        let about = AgentCall { agent: agent.clone(), call };
        let Some((path, digest)) = lock(&self.known).plans.get(&about).cloned() else { return };
        let before = record_of(&path);
        let before = before
            .unwrap_or_else(|| PlanRecord::new(self.project.clone(), self.session.clone(), digest.clone()));
        self.write(&path, &PlanRecord { done, ..before.now(fate, digest) });
    }

    /// The plan stays what it is without its record.
    fn write(&self, path: &std::path::Path, record: &PlanRecord) {
        if let Err(error) = self.store.write_record(path, record) {
            say(&format!("note: {error}"));
        }
    }
}

/// A notice for each plan whose execution these events cut off, but for the one that goes on by itself.
pub(super) fn cut_off(
    setup: &ProjectSandbox,
    events: &[SessionEvent],
    goes_on: Option<&CutOffPlan>,
) -> Vec<EventKind> {
    let plans = CutOffPlan::all(events);
    let notice = |plan: &CutOffPlan| {
        let message = plan.told(note_cut_off(setup, plan).as_deref());
        EventKind::Notice { code: NoticeCode::Resumed, message }
    };
    plans.iter().filter(|plan| Some(*plan) != goes_on).map(notice).collect()
}

/// Notes how far an execution came that was cut off; the name of its plan, if that is kept and still the same. The log's word for the file
/// is not believed: the log may come from elsewhere.
fn note_cut_off(setup: &ProjectSandbox, plan: &CutOffPlan) -> Option<String> {
    let store = Store::at(&setup.directories);
    let kept = store.all().ok()?.into_iter().find(|kept| kept.path == plan.path.as_path())?;
    let record = kept.record.filter(|record| kept.digest == plan.digest && record.digest == plan.digest)?;
    let done = u32::try_from(plan.finished.len()).ok();
    if record.fate == PlanFate::Approved {
        let record = PlanRecord { done, ..record.now(PlanFate::Unfinished, plan.digest.clone()) };
        if let Err(error) = store.write_record(&kept.path, &record) {
            say(&format!("note: {error}"));
        }
    }
    Some(kept.id)
}

impl PlanRecords for PlanFiles {
    fn note(&self, agent: &AgentId, kind: &EventKind) {
        match kind {
            EventKind::PlanCreated(plan) => self.created(agent, plan),
            EventKind::PlanApproved(approved) => {
                if let Some(call) = approved.call {
                    self.becomes((agent, call), PlanFate::Approved, None);
                }
            }
            EventKind::ApprovalAnswered(ApprovalAnswered { call, decision, by: DecidedBy::User, .. }) => {
                if matches!(decision, ReviewDecision::Denied { .. } | ReviewDecision::Abort) {
                    self.becomes((agent, *call), PlanFate::Rejected, None);
                }
            }
            EventKind::SubAgentResult(SubAgentResult { call: Some(call), status, plan, .. })
                if !plan.is_empty() =>
            {
                let is_done =
                    |step: &&StepAccount| matches!(step.status, StepStatus::Completed | StepStatus::Skipped);
                let done = plan.iter().filter(is_done).count();
                let whole = done == plan.len() && *status == SubAgentStatus::Done;
                let fate = if whole { PlanFate::Executed } else { PlanFate::Unfinished };
                self.becomes((agent, *call), fate, u32::try_from(done).ok());
            }
            _ => {}
        }
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
        let (store, known, agent) = (self.store.clone(), Arc::clone(&self.known), agent.clone());
        let write = move || {
            let mut known = lock(&known);
            let path = match known.files.get(&agent) {
                Some(path) => store.replace(path, &text).map(|()| path.clone()),
                None => store.create(&text),
            };
            let path = path.map_err(|error| error.to_string())?;
            known.files.insert(agent, path.clone());
            Ok(path.display().to_string())
        };
        async move { tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(error.to_string())) }
            .boxed()
    }
}

fn lock(known: &Mutex<KnownPlan>) -> MutexGuard<'_, KnownPlan> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
