//! The plans of a session, by its events.

use std::collections::BTreeMap;
use std::rc::Rc;

use ipc::id::AgentId;
use protocol::approval::PlanApprovalParams;
use protocol::event::{PlanApproved, PlanCreated, PlanStepStatus, SubAgentResult, SubAgentSpawned};
use protocol::plan::{Plan, StepStatus};

use super::{Step, StepLine, Version};
use crate::moment::UiTime;

/// The most plans that are remembered, and the most versions of each.
const MOST: usize = 16;

/// The plans of a session, in the order in which they were written.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    known: Vec<Progress>,
}

/// A plan, and how far it has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    planner: Option<AgentId>,
    executor: Option<AgentId>,
    /// SHA-256 of its bytes.
    digest: String,
    pub title: String,
    pub markdown: String,
    pub path: String,
    /// Texts by its agent and the person, and those of the plans before it that the agent revised.
    versions: Vec<Rc<Version>>,
    steps: BTreeMap<u32, Step>,
    state: StepState,
    /// True once the agent that the person talks to has begun another turn after its end.
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
    /// A plan was written: it replaces an unapproved one of the same agent.
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

    /// The versions of an agent's last plan, the first one first.
    pub(crate) fn versions(&self, planner: &AgentId) -> Vec<Rc<Version>> {
        let last = self.known.iter().rfind(|plan| plan.planner.as_ref() == Some(planner));
        last.map(|plan| plan.versions.clone()).unwrap_or_default()
    }

    /// Its approval is asked for: some steps may be finished already.
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

    /// A plan may be executed; one that was written before the session began is known from here on.
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

    /// An agent begins to execute a plan.
    pub(crate) fn spawned(&mut self, spawned: &SubAgentSpawned) {
        let Some(digest) = &spawned.plan else { return };
        if let Some(plan) = self.known.iter_mut().rfind(|plan| plan.digest == *digest) {
            plan.executor = Some(spawned.agent.clone());
            plan.state = StepState::Executing;
        }
    }

    /// A step of the plan that an agent executes has come further.
    pub(crate) fn step(&mut self, now: UiTime, executor: &AgentId, change: &PlanStepStatus) {
        if let Some(plan) = self.of(executor) {
            plan.steps.entry(change.step).or_default().changed(now, change);
        }
    }

    /// The agent that executes a plan is over.
    pub(crate) fn ended(&mut self, now: UiTime, result: &SubAgentResult) {
        let Some(plan) = self.of(&result.agent) else { return };
        plan.state = StepState::Over;
        for account in &result.plan {
            plan.steps.entry(account.step).or_default().accounted(now, account);
        }
    }

    /// Another turn begins: a plan whose execution is over is no longer shown.
    pub(crate) fn forget_ended(&mut self) {
        for plan in self.known.iter_mut().filter(|plan| plan.state != StepState::Executing) {
            plan.past = true;
        }
    }

    /// The plan that is executed, else the one that was written last.
    pub(crate) fn current(&self) -> Option<&Progress> {
        let executing = self.known.iter().rfind(|plan| plan.state == StepState::Executing);
        executing.or_else(|| self.known.last())
    }

    /// Returns the plan next to the transcript.
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

    /// True while a step runs: its clock is ticking.
    pub(crate) fn runs(&self) -> bool {
        self.steps.values().any(Step::runs)
    }

    /// Its state in words: `2 of 5 done`.
    pub(crate) fn state(&self) -> String {
        let done = self.steps.values().filter(|step| step.status == StepStatus::Completed).count();
        let count = format!("{done} of {} done", self.steps.len());
        match self.state {
            StepState::Proposed => "not approved".to_owned(),
            StepState::Approved => "approved".to_owned(),
            StepState::Executing => count,
            StepState::Over => format!("over, {count}"),
        }
    }

    pub(crate) fn lines(&self, now: UiTime) -> Vec<StepLine> {
        self.steps.iter().map(|(number, step)| step.line(*number, now)).collect()
    }

    /// The place of the step that runs among the lines, else of the first that is not over.
    pub(crate) fn at(&self) -> usize {
        let place = |wanted| self.steps.values().position(|step| step.status == wanted);
        place(StepStatus::InProgress).or_else(|| place(StepStatus::Pending)).unwrap_or(0)
    }

    /// Its versions, the first one first.
    pub(crate) fn versions(&self) -> &[Rc<Version>] {
        &self.versions
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.values()
    }
}
