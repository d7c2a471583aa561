//! Files of a session's plans, and records of their approvals and executions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::core::{PLAN_FILE, PlanInFile};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gate::plan::{self, Document};
use gate::tools::ServedCall;
use ipc::id::{AgentCall, AgentId, CallId, ConversationId};
use ipc::path::WirePath;
use protocol::approval::ReviewDecision;
use protocol::event::{
    ApprovalAnswered, DecidedBy, EventKind, NoticeCode, PlanAuthor, PlanCreated, SessionEvent, StepAccount,
    SubAgentResult, SubAgentSpawned, SubAgentStatus,
};
use protocol::plan::{PlaceToCreate, StepStatus};

use super::cut_off_plan::CutOffPlan;
use super::options::SessionOptions;
use super::plan::EarlierPlan;
use super::root_fault::{RootFault, places_as_approved, places_to_create};
use crate::engine::driver::{Caller, PlanRecords, ServedAnswer, ToolServer};
use crate::engine::place::ProjectSandbox;
use crate::journal::plans::{KeptPlan, PlanFate, PlanRecord, Store, record_of};
use crate::process::messages::{one_line, say};

/// Reason to refuse every plan because the settings allow no sub-agents.
const NO_EXECUTOR: &str =
    "plans are executed by a sub-agent, but agents.depth is 0 in the settings: plans need agents.depth = 1";

/// Writes the plans of each planner to a file, and keeps a record of each plan.
pub(super) struct PlanFiles {
    store: Store,
    project: WirePath,
    session: ConversationId,
    /// Maximum depth of sub-agents in the settings.
    depth: u32,
    known: Arc<Mutex<KnownPlan>>,
}

#[derive(Default)]
struct KnownPlan {
    /// The file of each planner.
    files: HashMap<AgentId, PathBuf>,
    /// File and digest of the plan that a call is about.
    plans: HashMap<AgentCall, (PathBuf, String)>,
    /// Missing directories that a plan writes to, as shown with its approval request, by the digest of the plan.
    to_create: HashMap<String, Vec<PlaceToCreate>>,
    /// Digest of the plan that was approved before the session; `None` without such a plan.
    approved: Option<String>,
}

impl PlanFiles {
    /// Returns one value twice, once as each of the traits that it implements.
    pub(super) fn shared(
        setup: &ProjectSandbox,
        session: &ConversationId,
        options: &SessionOptions,
        goes_on: Option<&CutOffPlan>,
    ) -> (Arc<dyn ToolServer>, Arc<dyn PlanRecords>) {
        let store = Store::at(&setup.directories);
        let kept = goes_on.and_then(|plan| kept(&store, plan));
        let goes_on = kept.map(|kept| EarlierPlan {
            digest: kept.digest,
            path: kept.path,
            to_create: kept.record.map(|record| record.to_create).unwrap_or_default(),
            finished: Vec::new(),
        });
        let plan = goes_on.or_else(|| options.plan.earlier.clone());
        let mut known =
            KnownPlan { approved: plan.as_ref().map(|plan| plan.digest.clone()), ..KnownPlan::default() };
        if let Some(EarlierPlan { digest, path, to_create, .. }) = plan {
            known.files.insert(AgentId::root(), path);
            known.to_create.insert(digest, to_create);
        }
        let shared = Arc::new(Self {
            store,
            project: setup.policy.project.clone(),
            session: session.clone(),
            depth: options.agents.depth,
            known: Arc::new(Mutex::new(known)),
        });
        (Arc::clone(&shared) as _, shared)
    }

    fn created(&self, agent: &AgentId, plan: &PlanCreated) {
        let path = plan.path.as_path().to_owned();
        let about = AgentCall { agent: agent.clone(), call: plan.call };
        lock(&self.known).plans.insert(about, (path.clone(), plan.digest.clone()));
        // A plan from before the session keeps its record until it is executed.
        if plan.author != PlanAuthor::Earlier {
            self.write(&path, &self.new_record(plan.digest.clone()));
        }
    }

    fn new_record(&self, digest: String) -> PlanRecord {
        let to_create = lock(&self.known).to_create.get(&digest).cloned().unwrap_or_default();
        PlanRecord::new(self.project.clone(), self.session.clone(), digest).creating(to_create)
    }

    /// Changes the record of the plan that a call is about. Has no effect if that call is about no plan.
    fn becomes(&self, agent: &AgentId, call: CallId, change: impl FnOnce(PlanRecord) -> PlanRecord) {
        let about = AgentCall { agent: agent.clone(), call };
        let Some((path, digest)) = lock(&self.known).plans.get(&about).cloned() else { return };
        // The record of other bytes does not apply.
        let before = record_of(&path).filter(|record| record.digest == digest);
        let before = before.unwrap_or_else(|| self.new_record(digest));
        self.write(&path, &change(before));
    }

    /// Writes a record. A failure is only logged, because the plan can be used without its record.
    fn write(&self, path: &std::path::Path, record: &PlanRecord) {
        if let Err(error) = self.store.write_record(path, record) {
            say(&format!("note: {error}"));
        }
    }
}

/// Returns a notice for each cut-off execution of a plan except `goes_on`.
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

/// Returns the stored plan; `None` if the plan's bytes or its record have changed.
fn kept(store: &Store, plan: &CutOffPlan) -> Option<KeptPlan> {
    let kept = store.all().ok()?.into_iter().find(|kept| kept.path == plan.path.as_path())?;
    let record = kept.record.as_ref()?;
    (kept.digest == plan.digest && record.digest == plan.digest).then_some(kept)
}

/// Records the progress of a cut-off execution. Returns the plan's name; `None` if the stored plan has changed. Does
/// not use the path in the log, which may come from another machine.
fn note_cut_off(setup: &ProjectSandbox, plan: &CutOffPlan) -> Option<String> {
    let store = Store::at(&setup.directories);
    let kept = kept(&store, plan)?;
    let record = kept.record?;
    let done = u32::try_from(plan.finished.len()).unwrap_or(u32::MAX);
    if matches!(record.fate, PlanFate::Approved | PlanFate::Unfinished) {
        let record = record.came(PlanFate::Unfinished, done);
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
                    self.becomes(agent, call, PlanRecord::approved);
                }
            }
            EventKind::ApprovalAnswered(ApprovalAnswered { call, decision, by: DecidedBy::User, .. }) => {
                if matches!(decision, ReviewDecision::Denied { .. } | ReviewDecision::Abort) {
                    self.becomes(agent, *call, |record| {
                        let digest = record.digest.clone();
                        record.now(PlanFate::Rejected, digest)
                    });
                }
            }
            EventKind::SubAgentSpawned(SubAgentSpawned {
                call: Some(call), plan: Some(_), finished, ..
            }) => {
                self.becomes(agent, *call, |record| record.begun(self.session.clone(), *finished));
            }
            EventKind::SubAgentResult(result @ SubAgentResult { call: Some(call), .. }) => {
                self.becomes(agent, *call, |record| ended(record, result));
            }
            _ => {}
        }
    }
}

impl ToolServer for PlanFiles {
    fn serve(&self, caller: &Caller, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>> {
        let text = match call {
            ServedCall::Supervisor(call) if call.tool == PLAN_FILE => call.json,
            ServedCall::Supervisor(_) | ServedCall::External(_) | ServedCall::Fetch(_) => {
                return std::future::ready(Err("this tool is not available here".to_owned())).boxed();
            }
        };
        // The user is not asked about a plan that could not be executed.
        if self.depth == 0 {
            return std::future::ready(Err(NO_EXECUTOR.to_owned())).boxed();
        }
        let (store, known, project) = (self.store.clone(), Arc::clone(&self.known), self.project.clone());
        let agent = caller.agent.clone();
        let write = move || {
            let mut known = lock(&known);
            let to_create = known.places_of(&text, &project).map_err(|fault| format!("Rights: {fault}"))?;
            let path = match known.files.get(&agent) {
                Some(path) => store.replace(path, &text).map(|()| path.clone()),
                None => store.create(&text),
            };
            let path = path.map_err(|error| error.to_string())?;
            known.files.insert(agent, path.clone());
            known.to_create.insert(plan::digest(&text), to_create.clone());
            serde_json::to_string(&PlanInFile { path: path.into(), to_create })
                .map_err(|error| error.to_string())
        };
        async move {
            let written = tokio::task::spawn_blocking(write).await;
            written.unwrap_or_else(|error| Err(error.to_string())).map(ServedAnswer::from)
        }
        .boxed()
    }
}

impl KnownPlan {
    /// Returns the missing directories that a plan writes to.
    fn places_of(&self, text: &str, project: &WirePath) -> Result<Vec<PlaceToCreate>, RootFault> {
        let Ok(document) = Document::parse(text) else { return Ok(Vec::new()) };
        let digest = plan::digest(text);
        match self.to_create.get(&digest).filter(|_| self.approved.as_ref() == Some(&digest)) {
            Some(approved) => places_as_approved(document.plan(), project.as_path(), approved),
            None => places_to_create(document.plan(), project.as_path()),
        }
    }
}

/// Returns the record of a plan after an execution with this result.
fn ended(record: PlanRecord, result: &SubAgentResult) -> PlanRecord {
    let SubAgentResult { status, message, plan, .. } = result;
    let record = match status {
        SubAgentStatus::Done => record,
        SubAgentStatus::Denied
        | SubAgentStatus::GaveUp
        | SubAgentStatus::Budget
        | SubAgentStatus::Interrupted
        | SubAgentStatus::Provider
        | SubAgentStatus::Crashed => {
            let cause = message.iter().fold(status.to_string(), |status, why| format!("{status}: {why}"));
            record.broke_off(one_line(&cause))
        }
    };
    // An executor that never started reports no steps.
    if plan.is_empty() {
        return record;
    }
    let is_done = |step: &&StepAccount| matches!(step.status, StepStatus::Completed | StepStatus::Skipped);
    let done = plan.iter().filter(is_done).count();
    let whole = done == plan.len() && *status == SubAgentStatus::Done;
    let fate = if whole { PlanFate::Executed } else { PlanFate::Unfinished };
    record.came(fate, u32::try_from(done).unwrap_or(u32::MAX))
}

fn lock(known: &Mutex<KnownPlan>) -> MutexGuard<'_, KnownPlan> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
