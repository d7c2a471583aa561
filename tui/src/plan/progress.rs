//! Plans of a session and their progress, computed from the session's events.

use std::collections::BTreeMap;
use std::rc::Rc;

use ipc::id::AgentId;
use protocol::approval::PlanApprovalParams;
use protocol::event::{PlanApproved, PlanCreated, PlanStepStatus, SubAgentResult, SubAgentSpawned};
use protocol::plan::{Plan, StepStatus};

use super::{Step, StepLine, Version};
use crate::moment::UiTime;

/// Maximum number of plans that are kept, and maximum number of versions of each plan.
const MOST: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Plans {
    known: Vec<Progress>,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    planner: Option<AgentId>,
    executor: Option<AgentId>,
    /// SHA-256 of the plan's Markdown.
    digest: String,
    pub title: String,
    pub markdown: String,
    pub path: String,
    /// Versions by the planning agent and by the person, from the first plan that this plan revises on.
    versions: Vec<Rc<Version>>,
    steps: BTreeMap<u32, Step>,
    state: StepState,
    past: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StepState {
    #[default]
    Proposed,
    Approved,
    Executing,
    Over,
}

impl Plans {
    pub(crate) fn created(&mut self, planner: &AgentId, created: &PlanCreated) {
        let mut versions = self.versions(planner);
        if versions.len() >= MOST {
            versions.remove(0);
        }
        versions.push(Rc::new(Version::of(created)));
        self.known.retain(|plan| !plan.is_proposed_by(planner));
        self.add(Progress {
            versions,
            planner: Some(planner.clone()),
            digest: created.digest.clone(),
            markdown: created.markdown.clone(),
            path: created.path.to_string(),
            ..Progress::of(&created.plan)
        });
    }

    pub(crate) fn versions(&self, planner: &AgentId) -> Vec<Rc<Version>> {
        let last = self.known.iter().rfind(|plan| plan.planner.as_ref() == Some(planner));
        last.map(|plan| plan.versions.clone()).unwrap_or_default()
    }

    /// Records an approval request for a plan. Some of its steps may be finished already.
    pub(crate) fn asked(&mut self, params: &PlanApprovalParams) {
        if !self.known.iter().any(|plan| plan.is_proposed_by(&params.agent)) {
            self.add(Progress {
                planner: Some(params.agent.clone()),
                markdown: params.markdown.clone(),
                path: params.path.to_string(),
                ..Progress::of(&params.plan)
            });
        }
        let plan = self.known.iter_mut().rfind(|plan| plan.is_proposed_by(&params.agent));
        let Some(plan) = plan else { return };
        for (_, step) in plan.steps.iter_mut().filter(|(number, _)| params.finished.contains(number)) {
            step.status = StepStatus::Completed;
        }
    }

    pub(crate) fn approved(&mut self, approved: &PlanApproved) {
        let digest = &approved.digest;
        if let Some(plan) = self.known.iter_mut().rfind(|plan| plan.digest == *digest) {
            plan.state = StepState::Approved;
            return;
        }
        self.add(Progress {
            digest: digest.clone(),
            markdown: approved.markdown.clone().unwrap_or_default(),
            path: approved.path.to_string(),
            state: StepState::Approved,
            ..Progress::default()
        });
    }

    pub(crate) fn spawned(&mut self, spawned: &SubAgentSpawned) {
        let Some(digest) = &spawned.plan else { return };
        if let Some(plan) = self.known.iter_mut().rfind(|plan| plan.digest == *digest) {
            plan.executor = Some(spawned.agent.clone());
            plan.state = StepState::Executing;
        }
    }

    pub(crate) fn step(&mut self, now: UiTime, executor: &AgentId, change: &PlanStepStatus) {
        if let Some(plan) = self.of(executor) {
            plan.steps.entry(change.step).or_default().changed(now, change);
        }
    }

    pub(crate) fn ended(&mut self, now: UiTime, result: &SubAgentResult) {
        let Some(plan) = self.of(&result.agent) else { return };
        plan.state = StepState::Over;
        for account in &result.plan {
            plan.steps.entry(account.step).or_default().accounted(now, account);
        }
    }

    /// Removes ended plans from the pane beside the transcript. Called when the user's next turn begins.
    pub(crate) fn forget_ended(&mut self) {
        for plan in self.known.iter_mut().filter(|plan| plan.state != StepState::Executing) {
            plan.past = true;
        }
    }

    pub(crate) fn current(&self) -> Option<&Progress> {
        let executing = self.known.iter().rfind(|plan| plan.state == StepState::Executing);
        executing.or_else(|| self.known.last())
    }

    /// Returns the plan for the pane beside the transcript; `None` if the pane shows no plan.
    pub(crate) fn beside(&self) -> Option<&Progress> {
        self.current().filter(|plan| !plan.past && !plan.steps.is_empty())
    }

    fn of(&mut self, executor: &AgentId) -> Option<&mut Progress> {
        self.known.iter_mut().rfind(|plan| plan.executor.as_ref() == Some(executor))
    }

    fn add(&mut self, plan: Progress) {
        if self.known.len() >= MOST {
            self.known.remove(0);
        }
        self.known.push(plan);
    }
}

impl Progress {
    fn of(plan: &Plan) -> Self {
        let steps = plan.steps.iter().map(|step| Step::new(&step.title, step.commands().count()));
        Self { title: plan.title.clone(), steps: (1..).zip(steps).collect(), ..Self::default() }
    }

    fn is_proposed_by(&self, planner: &AgentId) -> bool {
        self.state == StepState::Proposed && self.planner.as_ref() == Some(planner)
    }

    pub(crate) fn runs(&self) -> bool {
        self.steps.values().any(Step::runs)
    }

    pub(crate) fn state(&self) -> String {
        let done = self.steps.values().filter(|step| step.status == StepStatus::Completed).count();
        let count = format!("{done} of {} done", self.steps.len());
        match self.state {
            StepState::Proposed => "not approved".to_owned(),
            StepState::Approved => "approved".to_owned(),
            StepState::Over if self.steps.values().any(Step::is_open) => format!("stopped, {count}"),
            StepState::Executing => count,
            StepState::Over => format!("ended, {count}"),
        }
    }

    pub(crate) fn lines(&self, now: UiTime) -> Vec<StepLine> {
        self.steps.iter().map(|(number, step)| step.line(*number, now)).collect()
    }

    pub(crate) fn at(&self) -> usize {
        let place = |wanted| self.steps.values().position(|step| step.status == wanted);
        place(StepStatus::InProgress).or_else(|| place(StepStatus::Pending)).unwrap_or(0)
    }

    pub(crate) fn versions(&self) -> &[Rc<Version>] {
        &self.versions
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.values()
    }
}
