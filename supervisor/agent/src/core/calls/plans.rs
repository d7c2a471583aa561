//! Calls about plans: a planner's plan is written to its file, a person or the run's flags decide on it, and another
//! agent executes it. The executor reports its steps, whose acceptance commands are separate calls.
//!
//! Only the plan's bytes go from the planner to the executor, and only the approval of these bytes gives it access.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gate::approval::{PlanProposal, Subject};
use gate::judgement::{guest, judge, plan};
use gate::modes::{Position, permits};
use gate::plan::Document;
use gate::tools::{ExternalCall, Invocation, ServedCall, SpawnAgent, StepUpdate, SupervisorCall};
use gate::{Ask, Change, Verdict};
use ipc::id::{ApprovalId, CallId};
use ipc::path::WirePath;
use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::{
    DecidedBy, EventKind, NoticeCode, PlanApproved, PlanAuthor, PlanCreated, ToolCallStatus,
};
use protocol::plan::{PlaceToCreate, Plan, StepStatus};

use super::asked::Case;
use super::interruption::SERVER_TAKEN_BACK;
use super::machine::{After, Bounds, Calls};
use super::planning::{Draft, DraftFault, Planner};
use super::slots::{MadeUp, Open};
use crate::core::call::CallResult;
use crate::core::outbox::Outbox;
use crate::core::plan::{
    Approver, Execution, PLAN_FILE, PlanInFile, Planning, STEP_BEGINS, STEP_CHANGES, STEP_ENDS, outcome,
};
use crate::core::{Effect, NewAgent, Purpose, ServedOutcome};
use crate::prompt::task_of_plan;

/// The result for a plan on which nobody can decide.
const UNDECIDED: &str = "The plan is written to its file. Nobody can approve it in this run; the user executes it later. End \
    your turn with a short summary of the plan.";

/// The time limit for writing a plan.
const WRITING: Duration = Duration::from_secs(30);

/// The time limit for the search for changed files in the project.
const LOOKING: Duration = Duration::from_secs(30);

impl Calls {
    pub(in crate::core) fn planning(&self) -> Option<&Planning> {
        self.planner.as_ref().map(Planner::planning)
    }

    pub(in crate::core) const fn execution(&self) -> Option<&Execution> {
        self.execution.as_ref()
    }

    pub(in crate::core) fn must_keep_steps(&self) -> bool {
        self.planner.as_ref().is_some_and(Planner::must_keep)
    }

    /// Records that the run has ended: the planner's next plan need not keep finished steps.
    pub(in crate::core) fn end_run(&mut self) {
        if let Some(planner) = &mut self.planner {
            planner.end_run();
        }
    }

    /// Writes a plan to its file. Rejects an invalid plan at once.
    pub(super) fn write_plan(
        &mut self,
        call: CallId,
        markdown: String,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let author = if self.slots.is_of_user(call) { PlanAuthor::Earlier } else { PlanAuthor::Planner };
        match self.draft(markdown, author, bounds) {
            Ok(draft) => self.put_into_file(call, draft, out),
            Err(DraftFault::Unreadable(why)) => {
                let text = format!("the plan was not written: {why}");
                self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text), bounds, out);
            }
            Err(DraftFault::Beyond(why)) => {
                let cause = format!(
                    "the plan was not written, since it asks for access that cannot be approved: {why}"
                );
                self.deny(call, None, DecidedBy::Configuration, &cause, bounds, out);
            }
        }
    }

    fn draft(&self, markdown: String, author: PlanAuthor, bounds: Bounds<'_>) -> Result<Draft, DraftFault> {
        let none = || DraftFault::Unreadable("this agent cannot make plans".to_owned());
        let planner = self.planner.as_ref().ok_or_else(none)?;
        planner.draft(markdown, author, bounds.rights.standing().rights())
    }

    /// Handles a person's new text for a waiting plan. The request about the old text ends.
    pub(in crate::core) fn on_edit_plan(
        &mut self,
        id: ApprovalId,
        markdown: String,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        self.edit_plan(id, |_| Ok(markdown), bounds, out);
        After::Rest
    }

    /// Changes fields of a plan that waits for approval, as the person asked. The plan's other bytes stay unchanged.
    pub(in crate::core) fn on_revise_plan(
        &mut self,
        id: ApprovalId,
        plan: &Plan,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let revise = |before: &str| {
            let document = Document::parse(before).map_err(|error| error.to_string())?;
            let revised = document.with_plan(plan).map_err(|error| error.to_string())?;
            Ok(revised.source().to_owned())
        };
        self.edit_plan(id, revise, bounds, out);
        After::Rest
    }

    fn edit_plan(
        &mut self,
        id: ApprovalId,
        edit: impl FnOnce(&str) -> Result<String, String>,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let waits = self.slots.asking(id).and_then(|(call, asking)| match &asking.subject {
            Subject::Plan(proposal) => Some((call, edit(&proposal.markdown))),
            _ => None,
        });
        let Some((call, edited)) = waits else {
            let message =
                format!("request {id} is not about a plan that waits for approval: nothing was changed");
            return out.notice(NoticeCode::ApprovalIgnored, &message);
        };
        let draft = edited.map_err(DraftFault::Unreadable);
        match draft.and_then(|markdown| self.draft(markdown, PlanAuthor::Person, bounds)) {
            Ok(draft) => {
                let cause = "the plan was edited, and needs a new approval".to_owned();
                let by = DecidedBy::Edited;
                out.log_answer(call, Some(id), ReviewDecision::DENIED, by, Some(cause));
                self.put_into_file(call, draft, out);
            }
            Err(DraftFault::Unreadable(why) | DraftFault::Beyond(why)) => {
                out.notice(NoticeCode::PlanNotRead, &format!("the plan was not changed: {why}"));
            }
        }
    }

    fn put_into_file(&mut self, call: CallId, draft: Draft, out: &mut Outbox) {
        let served =
            ServedCall::Supervisor(SupervisorCall { tool: PLAN_FILE.into(), json: draft.markdown.clone() });
        out.push(Effect::Serve { call, served, timeout: WRITING });
        self.slots.open_as(call, Open::WritingPlan(Box::new(draft)));
    }

    /// Handles the outcome of writing a plan, and asks for its approval.
    pub(super) fn on_plan_in_file(
        &mut self,
        call: CallId,
        draft: Draft,
        outcome: ServedOutcome,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        match self.proposal(call, draft, outcome, bounds, out) {
            Ok(proposal) => self.decide_on_plan(call, proposal, bounds, out),
            Err(why) => {
                let text = format!("the plan was not written: {why}");
                self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text), bounds, out);
            }
        }
        After::GoOn
    }

    /// Returns the proposal of a plan that was written to its file. An `Err` says why there is none.
    fn proposal(
        &mut self,
        call: CallId,
        draft: Draft,
        outcome: ServedOutcome,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> Result<PlanProposal, String> {
        let json = match outcome {
            ServedOutcome::Answered(json) | ServedOutcome::Pictured(json, _) => json,
            ServedOutcome::Failed(why) | ServedOutcome::Unserved(why) => return Err(why),
            ServedOutcome::Late(after) => return Err(format!("writing the file took more than {after:?}")),
        };
        let PlanInFile { path, to_create } =
            serde_json::from_str(&json).map_err(|error| error.to_string())?;
        let planner = self.planner.as_ref().ok_or("this agent cannot make plans")?;
        let Draft { author, markdown, plan } = draft;
        // The user may have withdrawn access meanwhile.
        let (child, network_refused) =
            planner.rights_of(&plan, &to_create, bounds.rights.standing().rights())?;
        let servers = planner.servers_of(&plan)?;
        let finished = (1..).take(planner.finished_of(&plan)).collect();
        let proposal = PlanProposal::new(path, markdown, plan, child, servers, finished);
        let mut proposal =
            proposal.map_err(|error| format!("the access of the plan cannot be shown: {error}"))?;
        proposal.network_refused = network_refused;
        let caches = planner.planning().ceiling.caches().cloned();
        proposal.caches = caches.filter(|caches| proposal.child.rights.write.contains(caches));
        proposal.confirms_commands = self.charter.approvals.confirm_shell;
        if let Some(remark) = remark_on(&to_create) {
            self.slots.remark(call, remark);
        }
        proposal.to_create = to_create;
        out.log(EventKind::PlanCreated(Box::new(PlanCreated {
            call,
            path: proposal.path.clone(),
            digest: proposal.plan_digest.clone(),
            author,
            markdown: proposal.markdown.clone(),
            plan: proposal.plan.clone(),
        })));
        Ok(proposal)
    }

    fn decide_on_plan(&mut self, call: CallId, proposal: PlanProposal, bounds: Bounds<'_>, out: &mut Outbox) {
        let ask = Ask { kind: AskKind::Plan, grant: proposal.child.grant.clone() };
        let planning = self.planning();
        let approver = planning.map(|planning| planning.approver).unwrap_or_default();
        let earlier = planning.and_then(|planning| planning.approved.as_ref());
        if earlier == Some(&proposal.plan_digest) {
            self.execute_within_flags(call, proposal, ask, bounds, out);
            return;
        }
        let keeps = |mode| permits(Position::FIRST, mode).keeps_approvals();
        let is_denied = planning.is_some_and(|planning| !keeps(planning.ceiling.mode()));
        match approver {
            Approver::Flags { rounds } => self.decide_by_flags(call, proposal, ask, rounds, bounds, out),
            Approver::Person if self.charter.approvals.answerer && !is_denied => {
                self.ask(Case { call, ask, subject: Subject::Plan(Box::new(proposal)) }, bounds, out);
            }
            Approver::Person => {
                self.close_at_once(call, CallResult::answered(UNDECIDED.to_owned()), bounds, out);
            }
        }
    }

    /// Decides on a plan without a person: the run's flags approve some plans, if their access is within the flags.
    fn decide_by_flags(
        &mut self,
        call: CallId,
        proposal: PlanProposal,
        ask: Ask,
        rounds: u32,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let Some(rest) = rounds.checked_sub(1) else {
            let cause = "--approve-plan has already approved as many plans as its number allows";
            return self.deny(call, None, DecidedBy::Configuration, cause, bounds, out);
        };
        if self.execute_within_flags(call, proposal, ask, bounds, out)
            && let Some(planner) = &mut self.planner
        {
            planner.count_round(rest);
        }
    }

    /// Executes a plan if its access is within this run's flags, else denies it. Returns true if the plan is executed.
    fn execute_within_flags(
        &mut self,
        call: CallId,
        proposal: PlanProposal,
        ask: Ask,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> bool {
        let by = DecidedBy::Configuration;
        if let Some(difference) = self.planning().and_then(|planning| beyond_flags(planning, &proposal)) {
            let cause = format!("the plan needs more than the flags of this run allow: {difference}");
            self.deny(call, None, by, &cause, bounds, out);
            return false;
        }
        out.log_answer(call, None, ReviewDecision::Approved, by, None);
        self.execute_plan(call, proposal, ask, by, out);
        true
    }

    /// Starts another agent for an approved plan, with exactly the shown access.
    pub(super) fn execute_plan(
        &mut self,
        call: CallId,
        proposal: PlanProposal,
        ask: Ask,
        by: DecidedBy,
        out: &mut Outbox,
    ) {
        let Some(planner) = &mut self.planner else { return };
        let PlanProposal { path, markdown, plan, child, servers, plan_digest, .. } = proposal;
        let shown: Vec<_> = servers.iter().map(|server| server.shown.clone()).collect();
        let planning = planner.execute(call, &plan);
        let execution = Execution::new(&plan, &planning);
        out.log(EventKind::PlanApproved(PlanApproved {
            call: Some(call),
            path,
            digest: plan_digest.clone(),
            write: child.rights.write.clone(),
            net: child.rights.net.clone(),
            reach: child.rights.reach,
            servers: shown.clone(),
            by,
            markdown: None,
        }));
        let spawn = SpawnAgent {
            task: task_of_plan(&markdown, planning.finished.len()),
            writes: !child.rights.write.is_empty(),
            write: child.rights.write.clone(),
            network: child.rights.net.reaches_out(),
            role: None,
            servers: shown,
            model: None,
            max_steps: None,
        };
        let purpose = Purpose::Executor(Arc::new(execution.of(plan_digest).calling(servers)));
        let agent = NewAgent { spawn, rights: child.rights, grant: ask.grant, purpose };
        out.push(Effect::SpawnAgent { call, agent: Box::new(agent) });
        self.slots.open_as(call, Open::Delegated);
    }

    /// Handles a withdrawal of access: no later plan gets that access, and an open request that shows it ends.
    pub(in crate::core) fn on_taken_back(
        &mut self,
        change: &Change,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let Some(planner) = &mut self.planner else { return After::Rest };
        if !planner.take_back(change) {
            return After::Rest;
        }
        let planner = &*planner;
        let shown = |id: ApprovalId| match &self.slots.asking(id)?.1.subject {
            Subject::Plan(plan) => planner.still_allows(&plan.child.rights).err(),
            Subject::Effect { .. }
            | Subject::Changes(_)
            | Subject::External(_)
            | Subject::Fetch(_)
            | Subject::Agent(_) => None,
        };
        let Some(why) = self.slots.all_asking().into_iter().find_map(shown) else { return After::Rest };
        self.withdraw("the access was changed", &format!("interrupted: {why}"), bounds, out);
        After::GoOn
    }

    /// Ends calls of MCP servers that a plan's approval allowed, if they may use the withdrawn access.
    pub(in crate::core) fn take_back_servers(
        &mut self,
        change: &Change,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let Some(execution) = &mut self.execution else { return After::Rest };
        if !execution.take_back(change) {
            return After::Rest;
        }
        let execution = execution.clone();
        let is_allowed = |call: &ExternalCall| {
            let invocation = Invocation::External(call.clone());
            execution.lists(call)
                || judge::call(bounds.rights.seen(), &invocation, Position::SUB) == Verdict::Run
        };
        let is_taken = |open: &Open| match open {
            Open::Served(ServedCall::External(call)) => !is_allowed(call),
            _ => false,
        };
        let ended = self.end_open(SERVER_TAKEN_BACK, is_taken, bounds, out);
        if ended { After::GoOn } else { After::Rest }
    }

    /// Handles the executor's report on a step.
    pub(super) fn update_step(
        &mut self,
        call: CallId,
        update: StepUpdate,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let misfit = match &self.execution {
            Some(execution) => execution.misfit(&update),
            None => Some("this agent does not execute a plan".to_owned()),
        };
        if let Some(why) = misfit {
            let result = CallResult::not_done(ToolCallStatus::Failed, why);
            return self.close_at_once(call, result, bounds, out);
        }
        match update.status {
            StepStatus::Completed => self.accept(call, update, bounds, out),
            StepStatus::Pending | StepStatus::InProgress | StepStatus::Failed | StepStatus::Skipped => {
                self.look(MadeUp { call, update, results: Vec::new() }, out);
            }
        }
    }

    /// Requests the list of files that changed in the project since the last report, to record them for the step.
    fn look(&mut self, claim: MadeUp, out: &mut Outbox) {
        let when = if claim.update.status == StepStatus::InProgress { STEP_BEGINS } else { STEP_ENDS };
        let served = SupervisorCall { tool: STEP_CHANGES.into(), json: when.to_owned() };
        let (call, served) = (claim.call, ServedCall::Supervisor(served));
        out.push(Effect::Serve { call, served, timeout: LOOKING });
        self.slots.open_as(call, Open::Looking(Box::new(claim)));
    }

    /// Handles the list of changed files, then judges the executor's report.
    pub(super) fn on_looked(
        &mut self,
        claim: MadeUp,
        outcome: ServedOutcome,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let seen = match outcome {
            ServedOutcome::Answered(json) | ServedOutcome::Pictured(json, _) => {
                serde_json::from_str(&json).ok()
            }
            ServedOutcome::Failed(_) | ServedOutcome::Unserved(_) | ServedOutcome::Late(_) => None,
        };
        let call = claim.call;
        let (result, event) = self.judged(claim, seen);
        if let Some(event) = event {
            out.log(event);
        }
        self.close_at_once(call, result, bounds, out);
        After::GoOn
    }

    /// Judges a report on a step. A step counts as done if its acceptance commands succeed. Returns the result of the
    /// report's call, and the event of the step; `None` if there is no such step.
    fn judged(&mut self, claim: MadeUp, seen: Option<BTreeSet<WirePath>>) -> (CallResult, Option<EventKind>) {
        let MadeUp { update, results, .. } = claim;
        let failed = |text: String| CallResult::not_done(ToolCallStatus::Failed, text);
        let Some(execution) = &mut self.execution else {
            return (failed("this agent does not execute a plan".to_owned()), None);
        };
        if let Some(files) = seen {
            execution.see(files);
        }
        match update.status {
            StepStatus::Failed => {
                let (text, event) = execution.fail(&update, Vec::new());
                return (failed(text), event);
            }
            StepStatus::Pending | StepStatus::InProgress | StepStatus::Skipped => {
                let event = execution.set(&update, Vec::new());
                return (CallResult::answered(execution.next()), event);
            }
            StepStatus::Completed => {}
        }
        let commands = execution.commands(update.step);
        let of_each = commands.iter().zip(&results);
        let of_each = of_each
            .map(|(command, (part, result))| outcome(*part, command, result, self.slots.duration(*part)));
        let outcomes: Vec<_> = of_each.collect();
        let Some(first_failed) = outcomes.iter().find(|one| !one.passed) else {
            let (text, event) = execution.complete(&update, outcomes);
            return (CallResult::answered(text), event);
        };
        let command = first_failed.command.lines().next().unwrap_or_default();
        let reason = format!("acceptance command failed: {command} ({})", first_failed.ended);
        let note = match &update.note {
            Some(claim) => format!("{reason}; the agent says: {claim}"),
            None => reason,
        };
        let update = StepUpdate { status: StepStatus::Failed, note: Some(note), ..update };
        let outputs = results.into_iter().map(|(_, result)| result);
        let (text, event) = execution.fail(&update, outcomes.into_iter().zip(outputs).collect());
        (failed(text), event)
    }

    /// Runs the acceptance commands of a step one after another, each as a separate call.
    fn accept(&mut self, call: CallId, update: StepUpdate, bounds: Bounds<'_>, out: &mut Outbox) {
        let claim = self.slots.tool_use(call).map(|tool_use| &tool_use.id);
        let calls = claim
            .zip(self.execution.as_ref())
            .and_then(|(claim, execution)| execution.acceptance_calls(claim, update.step));
        let Some(calls) = calls else {
            let text = "the acceptance commands could not be run, and the status of the step is unchanged";
            let result = CallResult::not_done(ToolCallStatus::Failed, text);
            return self.close_at_once(call, result, bounds, out);
        };
        self.slots.open_as(call, Open::Accepting(update));
        for part in calls {
            let id = self.next_call();
            self.slots.push_within(call, id, part);
        }
    }

    /// Requests the changed files when all acceptance commands of a step have a result.
    pub(in crate::core) fn conclude_step(&mut self, out: &mut Outbox) {
        if let Some(claim) = self.slots.made_up() {
            self.look(claim, out);
        }
    }
}

/// Returns the part of a plan's access that exceeds this run's flags, as text; `None` if there is none.
fn beyond_flags(planning: &Planning, proposal: &PlanProposal) -> Option<String> {
    let ceiling = &planning.ceiling;
    let network = proposal.network_refused.then(|| "the network (--net on allows it)".to_owned());
    let rights = plan::beyond_flags(ceiling, &proposal.child.rights).or(network);
    rights.or_else(|| guest::beyond_flags(ceiling, &proposal.servers))
}

/// Returns the text about paths of the plan that do not exist yet; `None` if there are none.
fn remark_on(to_create: &[PlaceToCreate]) -> Option<String> {
    let instead = |PlaceToCreate { path, directory }: &PlaceToCreate| {
        format!("{path} does not exist yet: to create it, execution can write the directory {directory}")
    };
    let lines: Vec<_> = to_create.iter().map(instead).collect();
    (!lines.is_empty()).then(|| format!("[Rights: {}]", lines.join("; ")))
}
