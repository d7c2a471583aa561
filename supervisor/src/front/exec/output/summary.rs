use std::collections::BTreeMap;

use ipc::denial::Denial;
use ipc::id::{AgentCall, AgentId, CallId};
use ipc::path::WirePath;
use protocol::cost::Usd;
use protocol::event::{Account, ChangedFile, EventKind, RunResult, SessionEvent, StepAccount};
use serde::Serialize;

#[derive(Debug, Default)]
pub(super) struct OutputTally {
    denials: Vec<OneDenial>,
    files: Option<Vec<OneFile>>,
    by: BTreeMap<WirePath, Vec<AgentCall>>,
    project: WirePath,
    plan: Option<LastPlan>,
    spent: Account,
}

/// A changed file, with the calls that may have changed it.
#[derive(Debug, Serialize)]
struct OneFile {
    #[serde(flatten)]
    file: ChangedFile,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by: Vec<AgentCall>,
}

#[derive(Debug, Serialize)]
struct LastPlan {
    path: WirePath,
    digest: String,
    steps: Vec<StepAccount>,
}

#[derive(Debug, Serialize)]
struct OneDenial {
    /// The call that was denied; `None` if the denied operation was not a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    #[serde(skip)]
    agent: AgentId,
    #[serde(flatten)]
    denial: Denial,
}

/// The JSON object of `--output json`. `docs/headless.md` describes its fields.
#[derive(Debug, Serialize)]
pub(super) struct ExecSummary<'a> {
    #[serde(flatten)]
    event: &'a SessionEvent,
    answer: &'a str,
    /// `None` if it is unknown which files changed.
    files_changed: Option<&'a [OneFile]>,
    denials: &'a [OneDenial],
    log: &'a WirePath,
    /// `None` if the prices of the model are unknown.
    cost: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a LastPlan>,
}

impl OutputTally {
    pub(super) fn add(&mut self, event: &SessionEvent) {
        self.spent += event.kind.spent().unwrap_or_default();
        match &event.kind {
            EventKind::Denied { call, denial, .. } => {
                let (agent, denial) = (event.agent.clone(), denial.clone());
                self.denials.push(OneDenial { call: *call, agent, denial });
            }
            EventKind::PlanCreated(plan) => {
                let (path, digest) = (plan.path.clone(), plan.digest.clone());
                self.plan = Some(LastPlan { path, digest, steps: Vec::new() });
            }
            EventKind::SubAgentResult(result) if !result.plan.is_empty() => {
                if let Some(plan) = &mut self.plan {
                    plan.steps.clone_from(&result.plan);
                }
            }
            EventKind::SessionStarted(started) => self.project = started.project.clone(),
            EventKind::ToolCallFinished { call, diffs, .. } => {
                for diff in diffs {
                    let path = diff.path.as_path().strip_prefix(self.project.as_path());
                    let path = path.map_or_else(|_| diff.path.clone(), WirePath::from);
                    self.made(path, &[AgentCall { agent: event.agent.clone(), call: *call }]);
                }
            }
            EventKind::FilesChanged(changed) => {
                changed.files.iter().for_each(|file| self.made(file.path.clone(), &file.by));
            }
            EventKind::ChangeSet { files, .. } => {
                let by = |file: &ChangedFile| self.by.get(&file.path).cloned().unwrap_or_default();
                let files = files.iter().map(|file| OneFile { by: by(file), file: file.clone() });
                self.files = Some(files.collect());
            }
            _ => {}
        }
    }

    /// Adds calls to those that may have changed the file `path`.
    fn made(&mut self, path: WirePath, calls: &[AgentCall]) {
        let by = self.by.entry(path).or_default();
        by.extend(calls.iter().cloned());
        by.sort();
        by.dedup();
    }

    /// Returns the account of a run. The known cost includes all agents, even if the total cost is unknown.
    pub(super) fn account(&self, result: &RunResult) -> Account {
        let account = Account::of(result.usage, result.cost_usd);
        Account { known: account.known.max(self.spent.known), ..account }
    }

    pub(super) fn plan(&self) -> Option<&WirePath> {
        self.plan.as_ref().map(|plan| &plan.path)
    }

    pub(super) fn waits(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.steps.is_empty())
    }

    pub(super) fn last_denial(&self, agent: &AgentId) -> Option<&Denial> {
        let of_calls = || self.denials.iter().filter(|one| one.agent == *agent && one.call.is_some());
        let call = of_calls().next_back()?.call;
        of_calls().find(|one| one.call == call).map(|one| &one.denial)
    }

    /// Returns the JSON object that is printed for the event `result`; `None` for any other event.
    pub(super) fn summary<'a>(
        &'a self,
        event: &'a SessionEvent,
        log: &'a WirePath,
    ) -> Option<ExecSummary<'a>> {
        let EventKind::Result(result) = &event.kind else { return None };
        Some(ExecSummary {
            event,
            answer: &result.text,
            files_changed: self.files.as_deref(),
            denials: &self.denials,
            log,
            cost: result.cost_usd,
            plan: self.plan.as_ref(),
        })
    }
}
