//! The planner's side of a plan: the access that the plan can get, its finished steps, and the end of its execution.

use std::collections::BTreeMap;

use gate::judgement::plan;
use gate::plan::Document;
use gate::tools::PlannedServer;
use gate::{Change, ChildRights, PlanRefusal};
use ipc::id::CallId;
use ipc::rights::{Rights, RightsChange};
use protocol::event::{PlanAuthor, SubAgentResult, SubAgentStatus};
use protocol::plan::{OnFailure, PlaceToCreate, Plan, PlanStep, StepStatus};

use crate::core::change::ends_approvals;
use crate::core::plan::{Approver, Planning};

/// A plan that is being written to its file.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) author: PlanAuthor,
    pub(super) markdown: String,
    pub(super) plan: Plan,
}

pub(super) enum DraftFault {
    /// The plan cannot be parsed, or changes a finished step that it must keep.
    Unreadable(String),
    /// The plan asks for access that no approval can give in this session.
    Beyond(String),
}

#[derive(Debug)]
pub(in crate::core) struct Planner {
    planning: Planning,
    /// For each call that executes a plan: the steps of the plan, and the handling of a failed step.
    executed: BTreeMap<CallId, (Vec<PlanStep>, OnFailure)>,
    /// True if the next plan of the run revises the last one and must keep its finished steps.
    must_keep: bool,
}

impl Planner {
    pub(super) const fn new(planning: Planning) -> Self {
        Self { planning, executed: BTreeMap::new(), must_keep: false }
    }

    pub(super) const fn planning(&self) -> &Planning {
        &self.planning
    }

    pub(super) const fn must_keep(&self) -> bool {
        self.must_keep
    }

    /// Records that the run has ended: the next plan need not keep finished steps.
    pub(super) const fn end_run(&mut self) {
        self.must_keep = false;
    }

    /// Parses a plan of `author`. `rights` is the access of the planner.
    pub(super) fn draft(
        &self,
        markdown: String,
        author: PlanAuthor,
        rights: &Rights,
    ) -> Result<Draft, DraftFault> {
        let document =
            Document::parse(&markdown).map_err(|error| DraftFault::Unreadable(error.to_string()))?;
        let plan = document.plan().clone();
        if self.must_keep {
            kept(&self.planning.finished, &plan).map_err(DraftFault::Unreadable)?;
        }
        self.rights_of(&plan, &[], rights).map_err(DraftFault::Beyond)?;
        self.servers_of(&plan).map_err(DraftFault::Beyond)?;
        Ok(Draft { author, markdown, plan })
    }

    /// Returns the access that a plan gets now. The `bool` is true if the plan does not get the network that it asks
    /// for.
    pub(super) fn rights_of(
        &self,
        plan: &Plan,
        to_create: &[PlaceToCreate],
        rights: &Rights,
    ) -> Result<(ChildRights, bool), String> {
        let child = plan::judge(&self.planning.ceiling, plan.rights.as_ref(), to_create, rights);
        child.map_err(|PlanRefusal(why)| format!("Rights: {why}"))
    }

    /// Returns the MCP servers that a plan lists, with their current access.
    pub(super) fn servers_of(&self, plan: &Plan) -> Result<Vec<PlannedServer>, String> {
        let servers = PlannedServer::of(plan.rights.as_ref(), &self.planning.servers);
        servers.map_err(|why| format!("Rights: {why}"))
    }

    /// Returns how many steps at the beginning of a plan are finished and unchanged.
    pub(super) fn finished_of(&self, plan: &Plan) -> usize {
        let finished = self.planning.finished.iter();
        finished.zip(&plan.steps).take_while(|(finished, step)| finished == step).count()
    }

    /// Records that this run's flags approved a plan. `rest` is the number of further plans that they can approve.
    pub(super) const fn count_round(&mut self, rest: u32) {
        self.planning.approver = Approver::Flags { rounds: rest };
    }

    /// Records that a call executes a plan. Returns the planning data for the executor.
    pub(super) fn execute(&mut self, call: CallId, plan: &Plan) -> Planning {
        let mut planning = self.planning.clone();
        planning.finished.truncate(self.finished_of(plan));
        let on_failure = plan.on_failure.unwrap_or(planning.on_failure);
        self.executed.insert(call, (plan.steps.clone(), on_failure));
        planning
    }

    /// Handles the result of a plan's execution. Returns text for the end of the planner's result, and the reason why
    /// the plan is incomplete (`None` if it is complete). The outer `None` means that the call does not execute a plan.
    pub(super) fn after_execution(
        &mut self,
        call: CallId,
        report: &SubAgentResult,
    ) -> Option<(String, Option<String>)> {
        let (steps, on_failure) = self.executed.remove(&call)?;
        let is_done = |status: StepStatus| matches!(status, StepStatus::Completed | StepStatus::Skipped);
        let finished = report.plan.iter().zip(steps).take_while(|(account, _)| is_done(account.status));
        // An execution that did not begin leaves the finished steps as they were.
        if !report.plan.is_empty() {
            self.planning.finished = finished.map(|(_, step)| step).collect();
        }
        let open = report.plan.iter().find(|step| !is_done(step.status));
        let whole = open.is_none() && !report.plan.is_empty() && report.status == SubAgentStatus::Done;
        let interrupted = report.status == SubAgentStatus::Interrupted;
        let revises = !whole && on_failure == OnFailure::Replan && !interrupted;
        if whole {
            // The next plan does not revise this one.
            self.planning.finished.clear();
        }
        let kept = self.planning.finished.len();
        let began = !report.plan.is_empty();
        if let (false, false, Approver::Flags { rounds }) = (began, interrupted, &mut self.planning.approver)
        {
            // The approval led to no execution, so it does not count.
            *rounds = rounds.saturating_add(1);
        }
        let unexecuted = (!whole).then(|| match (open, &report.message) {
            (Some(step), _) => {
                format!(
                    "the plan was not executed to its end: step {} is {}: {}",
                    step.step, step.status, step.title
                )
            }
            (None, Some(why)) => {
                format!("the plan's execution ended with the status {}: {why}", report.status)
            }
            (None, None) => format!("the plan's execution ended with the status {}", report.status),
        });
        self.must_keep = revises;
        let told = if whole {
            "\n[the plan is executed: end your turn with a short summary for the user]".to_owned()
        } else if revises || !interrupted && (!began || report.status == SubAgentStatus::Crashed) {
            let event = if began { "was not executed to its end" } else { "was not started" };
            format!(
                "\n[the plan {event}: look what went wrong, then call write_plan with a revised plan. Keep \
                 the first {kept} steps exactly as they are: they are finished, and are not done again]"
            )
        } else {
            "\n[the plan was not executed to its end, and is not continued: tell the user what went wrong, and write no other \
             plan unless they ask for one]"
                .to_owned()
        };
        Some((told, unexecuted))
    }

    /// Lowers the maximum access of plans after a reduction of the session's access. Returns true if `change` reduces
    /// that maximum.
    pub(super) fn take_back(&mut self, change: &Change) -> bool {
        let ceiling = &mut self.planning.ceiling;
        match change {
            Change::Rights(change @ RightsChange::Network { .. }) => {
                let Some(bound) = change.network_bound() else { return false };
                let rights = ceiling.rights().clone();
                ceiling.set_rights(Rights { net: rights.net.meet(bound), ..rights }.normalised());
            }
            Change::Rights(RightsChange::RemoveWrite { path }) => {
                let mut rights = ceiling.rights().clone();
                rights.write.retain(|root| !root.is_within(path));
                ceiling.set_rights(rights);
            }
            Change::Mode(mode) if ends_approvals(change) => ceiling.set_mode(*mode),
            Change::Rights(_) | Change::Mode(_) => return false,
        }
        true
    }

    /// Checks that the session still allows the access of a plan's execution. An `Err` names the access that is too
    /// much.
    pub(super) fn still_allows(&self, rights: &Rights) -> Result<(), String> {
        plan::still_allowed(&self.planning.ceiling, rights)
    }
}

/// Checks that a plan keeps its finished steps. An `Err` names the first step that differs.
fn kept(finished: &[PlanStep], plan: &Plan) -> Result<(), String> {
    let changed = finished.iter().enumerate().find(|(at, step)| plan.steps.get(*at) != Some(step));
    changed.map_or(Ok(()), |(at, step)| {
        let number = at + 1;
        Err(format!(
            "step {number} ({}) is finished: keep it exactly as it was, as step {number}",
            step.title
        ))
    })
}
