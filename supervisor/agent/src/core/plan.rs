//! The planner's side of a plan: it is written to its file, somebody decides on it, and another agent executes it.
//!
//! The plan's bytes are all that passes from planning to execution, and their approval is all that gives execution its rights.

use std::sync::Arc;
use std::time::Duration;

use gate::approval::{PlanProposal, Subject};
use gate::modes::{Position, permits};
use gate::plan::Document;
use gate::tools::{OfferedServer, PlannedServer, ServedCall, SpawnAgent, SupervisorCall};
use gate::{Ask, Change, ChildRights, PlanRefusal, StandingRights};
use ipc::id::{ApprovalId, CallId};
use ipc::path::WirePath;
use ipc::rights::{Rights, RightsChange};
use protocol::approval::AskKind;
use protocol::event::{
    DecidedBy, EventKind, NoticeCode, PlanApproved, PlanAuthor, PlanCreated, SubAgentResult, SubAgentStatus,
    ToolCallStatus,
};
use protocol::plan::{OnFailure, PlaceToCreate, Plan, PlanStep, StepStatus};
use serde::{Deserialize, Serialize};

use super::approvals::Case;
use super::call::CallResult;
use super::calls::Open;
use super::rights::ends_approvals;
use super::{Agent, Effect, Execution, NewAgent, Purpose, ServedOutcome};
use crate::prompt::task_of_plan;

/// The name under which the session's server writes a plan to its file, and answers with a [`PlanInFile`] as JSON.
pub const PLAN_FILE: &str = "plan_file";

/// The answer to a plan that is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlanInFile {
    /// The file that the plan was written to.
    pub path: WirePath,
    /// The places that it asks for and where nothing stands.
    pub to_create: Vec<PlaceToCreate>,
}

/// The result of a plan on which nobody decides.
const UNDECIDED: &str = "The plan is written to its file. Nobody can approve it in this run; the user executes it later. End \
    your turn with a short summary of the plan.";

/// The longest that this may take.
const WRITING: Duration = Duration::from_secs(30);

/// The session as far as its planner has to know it.
#[derive(Clone, Debug)]
pub struct Planning {
    /// The rights that the flags and settings of the session allow: execution has no more.
    pub ceiling: StandingRights,
    /// The decision on a plan, where no person is asked.
    pub approver: Approver,
    /// The fate of the rest after a failed step, where the plan does not say.
    pub on_failure: OnFailure,
    /// The number of times that a failed step may be tried again.
    pub retries: u32,
    /// The longest that an acceptance command may take.
    pub acceptance_timeout: Duration,
    /// The steps that executions so far have finished, from the first.
    pub finished: Vec<PlanStep>,
    /// SHA-256 of a plan, in hexadecimal, that the user approved before the session began: it is executed as far as the flags of
    /// this run allow.
    pub approved: Option<String>,
    /// The servers of the session, whose tools a plan may list.
    pub servers: Arc<[OfferedServer]>,
}

/// The one that decides on a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approver {
    /// A person, by the front end that answers approvals; nobody if there is none.
    #[default]
    Person,
    /// The flags of this run, so many times: whatever lies within them is approved.
    Flags {
        /// The number of plans that they still approve.
        rounds: u32,
    },
}

/// A plan on its way to its file.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    author: PlanAuthor,
    markdown: String,
    plan: Plan,
}

/// A plan that goes to no file.
enum DraftFault {
    /// It cannot be read, or is not what was asked for.
    Unreadable(String),
    /// It asks for access that no approval gives in this session.
    Beyond(String),
}

impl Agent {
    /// A plan of the planner's: what cannot be read, or cannot be given, goes back at once.
    pub(super) fn write_plan(&mut self, call: CallId, markdown: String) {
        match self.draft(markdown, self.author_of(call)) {
            Ok(draft) => self.put_into_file(call, draft),
            Err(DraftFault::Unreadable(why)) => {
                let text = format!("the plan was not written: {why}");
                self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text));
            }
            Err(DraftFault::Beyond(why)) => {
                let cause =
                    format!("the plan was not written, since no approval gives it what it asks for: {why}");
                self.deny(call, None, DecidedBy::Configuration, &cause);
            }
        }
    }

    /// A person put other bytes into the place of a plan that waits: the question about the old ones is over.
    pub(super) fn on_edit_plan(&mut self, id: ApprovalId, markdown: String) {
        self.edit_plan(id, |_| Ok(markdown));
    }

    /// The same, by fields: the printer writes those that differ, and all other bytes stay.
    pub(super) fn on_revise_plan(&mut self, id: ApprovalId, plan: &Plan) {
        self.edit_plan(id, |before| {
            let document = Document::parse(before).map_err(|error| error.to_string())?;
            let revised = document.with_plan(plan).map_err(|error| error.to_string())?;
            Ok(revised.source().to_owned())
        });
    }

    fn edit_plan(&mut self, id: ApprovalId, edit: impl FnOnce(&str) -> Result<String, String>) {
        let waits = self.calls.asking(id).and_then(|(call, asking)| match &asking.subject {
            Subject::Plan(proposal) => Some((call, edit(&proposal.markdown))),
            _ => None,
        });
        let Some((call, edited)) = waits else {
            let message = format!("request {id} is about no plan that waits: nothing was changed");
            return self.out.notice(NoticeCode::ApprovalIgnored, &message);
        };
        let draft = edited.map_err(DraftFault::Unreadable);
        match draft.and_then(|markdown| self.draft(markdown, PlanAuthor::Person)) {
            Ok(draft) => {
                self.supersede(call, id);
                self.put_into_file(call, draft);
            }
            Err(DraftFault::Unreadable(why) | DraftFault::Beyond(why)) => {
                self.out.notice(NoticeCode::PlanNotRead, &format!("the plan was not changed: {why}"));
            }
        }
    }

    fn draft(&self, markdown: String, author: PlanAuthor) -> Result<Draft, DraftFault> {
        let unreadable = |why: &str| DraftFault::Unreadable(why.to_owned());
        let planning =
            self.config.planning.as_ref().ok_or_else(|| unreadable("this agent makes no plans"))?;
        let document = Document::parse(&markdown).map_err(|error| unreadable(&error.to_string()))?;
        let plan = document.plan().clone();
        if self.turn.must_keep_steps() {
            kept(&planning.finished, &plan).map_err(DraftFault::Unreadable)?;
        }
        self.rights_of_plan(&plan, &[]).map_err(DraftFault::Beyond)?;
        self.servers_of_plan(&plan).map_err(DraftFault::Beyond)?;
        Ok(Draft { author, markdown, plan })
    }

    /// The rights of a plan's execution as things stand, and whether a network that it asks for is not among them.
    fn rights_of_plan(
        &self,
        plan: &Plan,
        to_create: &[PlaceToCreate],
    ) -> Result<(ChildRights, bool), String> {
        let planning = self.config.planning.as_ref().ok_or("this agent makes no plans")?;
        let child =
            planning.ceiling.judge_plan(plan.rights.as_ref(), to_create, &self.config.standing.rights);
        child.map_err(|PlanRefusal(why)| format!("Rights: {why}"))
    }

    /// The servers that a plan lists, with their rights as they are in this session.
    fn servers_of_plan(&self, plan: &Plan) -> Result<Vec<PlannedServer>, String> {
        let offered = self.config.planning.iter().flat_map(|planning| planning.servers.iter().cloned());
        let servers = PlannedServer::of(plan.rights.as_ref(), &offered.collect::<Vec<_>>());
        servers.map_err(|why| format!("Rights: {why}"))
    }

    fn put_into_file(&mut self, call: CallId, draft: Draft) {
        let served =
            ServedCall::Supervisor(SupervisorCall { tool: PLAN_FILE.into(), json: draft.markdown.clone() });
        self.out.push(Effect::Serve { call, served, timeout: WRITING });
        self.calls.open_as(call, Open::WritingPlan(Box::new(draft)));
    }

    /// The plan is in its file, or not: whoever decides is asked.
    pub(super) fn on_plan_in_file(&mut self, call: CallId, draft: Draft, outcome: ServedOutcome) {
        let answer = match outcome {
            ServedOutcome::Answered(json) | ServedOutcome::Pictured(json, _) => serde_json::from_str(&json),
            ServedOutcome::Failed(why) | ServedOutcome::Unserved(why) => return self.not_in_file(call, &why),
            ServedOutcome::Late(after) => return self.not_in_file(call, &format!("it took over {after:?}")),
        };
        let PlanInFile { path, to_create } = match answer {
            Ok(written) => written,
            Err(error) => return self.not_in_file(call, &error.to_string()),
        };
        let Draft { author, markdown, plan } = draft;
        // The user may have taken rights back meanwhile.
        let (child, network_refused) = match self.rights_of_plan(&plan, &to_create) {
            Ok(child) => child,
            Err(why) => return self.not_in_file(call, &why),
        };
        let servers = match self.servers_of_plan(&plan) {
            Ok(servers) => servers,
            Err(why) => return self.not_in_file(call, &why),
        };
        let finished = (1..).take(self.finished_of(&plan)).collect();
        let proposal = PlanProposal::new(path, markdown, plan, child, servers, finished);
        let mut proposal = match proposal {
            Ok(proposal) => proposal,
            Err(error) => return self.not_in_file(call, &format!("its rights cannot be shown: {error}")),
        };
        proposal.network_refused = network_refused;
        if let Some(remark) = remark_on(&to_create) {
            self.calls.remark(call, remark);
        }
        proposal.to_create = to_create;
        let caches = self.config.planning.as_ref().and_then(|planning| planning.ceiling.caches.clone());
        proposal.caches = caches.filter(|caches| proposal.child.rights.write.contains(caches));
        proposal.confirms_commands = self.config.approvals.confirm_shell;
        self.out.log(EventKind::PlanCreated(Box::new(PlanCreated {
            call,
            path: proposal.path.clone(),
            digest: proposal.plan_digest.clone(),
            author,
            markdown: proposal.markdown.clone(),
            plan: proposal.plan.clone(),
        })));
        self.decide_on_plan(call, proposal);
        self.go_on();
    }

    fn not_in_file(&mut self, call: CallId, why: &str) {
        let text = format!("the plan was not written: {why}");
        self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text));
        self.go_on();
    }

    fn decide_on_plan(&mut self, call: CallId, proposal: PlanProposal) {
        let ask = Ask { kind: AskKind::Plan, grant: proposal.child.grant.clone() };
        let planning = self.config.planning.as_ref();
        let approver = planning.map(|planning| planning.approver).unwrap_or_default();
        let earlier = planning.and_then(|planning| planning.approved.as_ref());
        if earlier == Some(&proposal.plan_digest) {
            self.execute_within_flags(call, proposal, ask);
            return;
        }
        let keeps = |mode| permits(Position::FIRST, mode).keeps_approvals();
        let is_denied = planning.is_some_and(|planning| !keeps(planning.ceiling.mode));
        match approver {
            Approver::Flags { rounds } => self.decide_by_flags(call, proposal, ask, rounds),
            Approver::Person if self.config.approvals.answerer && !is_denied => {
                self.ask(Case { call, ask, subject: Subject::Plan(Box::new(proposal)) });
            }
            Approver::Person => {
                self.close_at_once(call, CallResult::answered(UNDECIDED.to_owned()));
            }
        }
    }

    /// Without a person only what the flags of this run allow is approved, and only so many times.
    fn decide_by_flags(&mut self, call: CallId, proposal: PlanProposal, ask: Ask, rounds: u32) {
        let Some(rest) = rounds.checked_sub(1) else {
            let cause = "--approve-plan has approved as many plans as it was told to";
            return self.deny(call, None, DecidedBy::Configuration, cause);
        };
        if self.execute_within_flags(call, proposal, ask)
            && let Some(planning) = &mut self.config.planning
        {
            planning.approver = Approver::Flags { rounds: rest };
        }
    }

    /// Executes a plan if it needs no more than the flags of this run allow; whether it does.
    fn execute_within_flags(&mut self, call: CallId, proposal: PlanProposal, ask: Ask) -> bool {
        let by = DecidedBy::Configuration;
        if let Some(difference) = self.beyond_flags(&proposal) {
            let cause = format!("the plan needs more than the flags of this run allow: {difference}");
            self.deny(call, None, by, &cause);
            return false;
        }
        self.log_answer(call, None, protocol::approval::ReviewDecision::Approved, by, None);
        self.execute_plan(call, proposal, ask, by);
        true
    }

    fn beyond_flags(&self, proposal: &PlanProposal) -> Option<String> {
        let ceiling = &self.config.planning.as_ref()?.ceiling;
        let network = proposal.network_refused.then(|| "the network (--net on allows it)".to_owned());
        let rights = ceiling.beyond_flags(&proposal.child.rights).or(network);
        rights.or_else(|| ceiling.server_beyond_flags(&proposal.servers))
    }

    /// An approved plan: another agent executes it, with the rights that were shown and no others.
    pub(super) fn execute_plan(&mut self, call: CallId, proposal: PlanProposal, ask: Ask, by: DecidedBy) {
        let Some(mut planning) = self.config.planning.clone() else { return };
        let PlanProposal { path, markdown, plan, child, servers, plan_digest, .. } = proposal;
        let shown: Vec<_> = servers.iter().map(|server| server.shown.clone()).collect();
        planning.finished.truncate(self.finished_of(&plan));
        let execution = Execution::new(&plan, &planning);
        self.plans.insert(call, (plan.steps.clone(), plan.on_failure.unwrap_or(planning.on_failure)));
        self.out.log(EventKind::PlanApproved(PlanApproved {
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
        self.out.push(Effect::SpawnAgent { call, agent: Box::new(agent) });
        self.calls.open_as(call, Open::Delegated);
    }

    /// The end of the planner's result, behind the account of an execution: it says whether to go on planning.
    pub(super) fn after_execution(&mut self, call: CallId, report: &SubAgentResult) -> String {
        let (Some(planning), Some((steps, on_failure))) =
            (&mut self.config.planning, self.plans.remove(&call))
        else {
            return String::new();
        };
        let is_done = |status: StepStatus| matches!(status, StepStatus::Completed | StepStatus::Skipped);
        let finished = report.plan.iter().zip(steps).take_while(|(account, _)| is_done(account.status));
        // An execution that did not begin has finished nothing, and what was finished before stays so.
        if !report.plan.is_empty() {
            planning.finished = finished.map(|(_, step)| step).collect();
        }
        let open = report.plan.iter().find(|step| !is_done(step.status));
        let whole = open.is_none() && !report.plan.is_empty() && report.status == SubAgentStatus::Done;
        let interrupted = report.status == SubAgentStatus::Interrupted;
        let revises = !whole && on_failure == OnFailure::Replan && !interrupted;
        if whole {
            // Another plan has nothing to do with this one.
            planning.finished.clear();
        }
        let kept = planning.finished.len();
        let began = !report.plan.is_empty();
        if let (false, false, Approver::Flags { rounds }) = (began, interrupted, &mut planning.approver) {
            // Nothing was executed by this approval.
            *rounds = rounds.saturating_add(1);
        }
        let unexecuted = (!whole).then(|| match (open, &report.message) {
            (Some(step), _) => {
                format!(
                    "the plan was not executed to its end: step {} is {}: {}",
                    step.step, step.status, step.title
                )
            }
            (None, Some(why)) => format!("the plan's execution ended as {}: {why}", report.status),
            (None, None) => format!("the plan's execution ended as {}", report.status),
        });
        self.turn.note_plan(unexecuted, revises);
        if whole {
            "\n[the plan is executed: end your turn with a short summary for the user]".to_owned()
        } else if revises || !interrupted && (!began || report.status == SubAgentStatus::Crashed) {
            let event = if began { "was not executed to its end" } else { "was not begun" };
            format!(
                "\n[the plan {event}: look what went wrong, then call write_plan with a revised plan. Keep \
                 the first {kept} steps exactly as they are: they are finished, and are not done again]"
            )
        } else {
            "\n[the plan was not executed to its end, and is not gone on with: tell the user what went wrong, and write no other \
             plan unless they ask for one]"
                .to_owned()
        }
    }

    /// The user took rights back from the session, or from every approval: no plan gives them any more, and a question that shows them
    /// is over.
    pub(super) fn on_taken_back(&mut self, change: &Change) {
        self.take_back_servers(change);
        let Some(planning) = &mut self.config.planning else { return };
        let ceiling = &mut planning.ceiling;
        match change {
            Change::Rights(change @ RightsChange::Network { .. }) => {
                let Some(bound) = change.network_bound() else { return };
                ceiling.rights.net = ceiling.rights.net.meet(bound);
                ceiling.rights = std::mem::take(&mut ceiling.rights).normalised();
            }
            Change::Rights(RightsChange::RemoveWrite { path }) => {
                ceiling.rights.write.retain(|root| !root.is_within(path));
            }
            Change::Mode(mode) if ends_approvals(change) => ceiling.mode = *mode,
            Change::Rights(_) | Change::Mode(_) => return,
        }
        let shown = |id: ApprovalId| match &self.calls.asking(id)?.1.subject {
            Subject::Plan(plan) => self.still_allows_plan(&plan.child.rights).err(),
            Subject::Effect { .. }
            | Subject::Changes(_)
            | Subject::External(_)
            | Subject::Fetch(_)
            | Subject::Agent(_) => None,
        };
        if let Some(why) = self.calls.all_asking().into_iter().find_map(shown) {
            self.withdraw("the rights were changed", &format!("interrupted: {why}"));
            self.go_on();
        }
    }

    /// Judges whether rights of a plan's execution are still within what the session may do; the reason if they are not.
    pub fn still_allows_plan(&self, rights: &Rights) -> Result<(), String> {
        let planning = self.config.planning.as_ref();
        planning.map_or(Ok(()), |planning| planning.ceiling.still_allows_plan(rights))
    }

    /// The number of a plan's first steps that are finished: those that are what they were.
    fn finished_of(&self, plan: &Plan) -> usize {
        let finished = self.config.planning.iter().flat_map(|planning| &planning.finished);
        finished.zip(&plan.steps).take_while(|(finished, step)| finished == step).count()
    }
}

/// The words of a result on places that are to be created, if there are any.
fn remark_on(to_create: &[PlaceToCreate]) -> Option<String> {
    let instead = |PlaceToCreate { path, directory }: &PlaceToCreate| {
        format!("{path} does not exist yet: execution may write {directory}, in which it is to be created")
    };
    let lines: Vec<_> = to_create.iter().map(instead).collect();
    (!lines.is_empty()).then(|| format!("[Rights: {}]", lines.join("; ")))
}

/// Finished steps stay as they were.
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
