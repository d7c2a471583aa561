//! Calls that somebody has to approve: the question, the answer, and what is carried out for it.
//!
//! Whatever is no explicit approval of exactly what was asked is a denial; each request is decided once, by one event that
//! says by whom and why.

use std::sync::Arc;

use gate::approval::{
    AgentSpawn, JudgedAnswer, Proposal, Question, Ruling, Scope, SessionApprovals, Subject,
    SubjectChange as FileChange,
};
use gate::tools::ServedCall;
use gate::{Ask, Change, Verdict};
use ipc::id::{ApprovalId, CallId, GrantId};
use ipc::message::CallOutcome;
use ipc::rights::RightsChange;
use ipc::tool::{ShellExec, ToolCall};
use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::{ApprovalAnswered, DecidedBy, EventKind, NoticeCode, ToolCallStatus};

use super::call::CallResult;
use super::calls::{Asking, Committing, Open, Stage};
use super::end::Ending;
use super::results::Observation;
use super::{Agent, Effect, EndReason};

/// The reason for the end of a turn.
pub(super) const ABORTED: &str = "the user answered a request by ending the turn";

/// What the model is told of an answer.
const USER_DENIED: &str = "The user denied this call.";

/// What the model and the user are told where nobody can be asked.
const NOBODY: &str = "nobody can be asked in this run";

/// A call that has to be approved, and what it would do.
pub(super) struct Case {
    pub(super) call: CallId,
    pub(super) ask: Ask,
    pub(super) subject: Subject,
}

impl Agent {
    /// A command needs no preparation: what the model wrote is what is executed.
    pub(super) fn ask_for_command(&mut self, call: CallId, tool: ToolCall, ask: Ask) {
        let proposal = match &tool {
            _ if self.replacement.has_failed() => {
                Err("there is no worker under the present rights".to_owned())
            }
            ToolCall::ShellExec(command) => self.command(command),
            other => Err(format!("{} is no command", other.name())),
        };
        match proposal {
            Ok(proposal) => {
                self.ask(Case { call, ask, subject: Subject::Effect { tool, proposal, denied: None } });
            }
            Err(cause) => self.deny(call, None, DecidedBy::BadAnswer, &cause),
        }
    }

    fn command(&self, command: &ShellExec) -> Result<Proposal, String> {
        Proposal::of_command(&self.seen, command).map_err(|error| error.to_string())
    }

    pub(super) fn on_prepared(&mut self, call: CallId, proposal: Proposal) {
        if let Some(Open::Preparing(tool)) = self.calls.open(call).cloned() {
            match self.seen.judge_change(&proposal.places) {
                // The mode may have changed meanwhile: where nothing is asked, the kernel has the word.
                Verdict::Ask(_) if !self.asks() => self.dispatch(call, tool),
                Verdict::Run => self.dispatch(call, tool),
                Verdict::Ask(Ask { grant, .. }) if self.calls.is_gathering() => {
                    self.calls.put(call, FileChange { tool, proposal, grant }, Stage::Gathered);
                }
                Verdict::Ask(ask) => {
                    self.ask(Case { call, ask, subject: Subject::Effect { tool, proposal, denied: None } });
                }
                Verdict::Deny(denial) => {
                    let result = self.not_carried_out(denial);
                    self.close_at_once(call, result);
                }
                Verdict::Prepare => {}
            }
        }
        self.go_on();
    }

    pub(super) fn on_not_prepared(&mut self, call: CallId, reason: String) {
        if matches!(self.calls.open(call), Some(Open::Preparing(_))) {
            self.deny(call, None, DecidedBy::BadAnswer, &reason);
        }
        self.go_on();
    }

    /// Carries out what was approved before, and asks for the rest.
    pub(super) fn ask(&mut self, case: Case) {
        let Case { call, ask, subject } = &case;
        let call = *call;
        let preapproved = &self.config.approvals.preapproved;
        // The person sees each denial, whatever was approved before it.
        if ask.kind != AskKind::Denied
            && let Some(by) = self.grants.approve(subject, ask, &self.seen, preapproved)
        {
            self.log_answer(call, None, ReviewDecision::Approved, by, None);
            return self.carry_out(case, None);
        }
        if !self.config.approvals.answerer {
            // No mode allows a call of an external tool without asking.
            let flags = match subject {
                Subject::External(_) => None,
                Subject::Effect { .. }
                | Subject::Changes(_)
                | Subject::Fetch(_)
                | Subject::Agent(_)
                | Subject::Plan(_) => self.seen.flags_for(&ask.grant),
            };
            let flags =
                flags.map(|flags| format!("{flags} allows it without asking, and ")).unwrap_or_default();
            let nobody = format!("{NOBODY}; {flags}--approval-socket PATH lets another program answer");
            return self.deny(call, None, DecidedBy::NoFrontEnd, &nobody);
        }
        let reason = self.calls.tool_use(call).and_then(|tool_use| tool_use.said.clone());
        let question = Question {
            conversation: &self.config.conversation,
            agent: &self.config.id,
            call,
            standing: &self.seen,
            timeout: self.config.approvals.timeout,
            reason,
            more: self.changes_after(call).len(),
        };
        match question.request(ask, subject) {
            Ok(request) => {
                self.last_approval = self.last_approval.next();
                let id = self.last_approval;
                self.out.push(Effect::RequestApproval { id, request: Box::new(request) });
                let Case { ask, subject, .. } = case;
                self.calls.ask(call, Asking { approval: id, ask, subject });
            }
            Err(why) => self.deny(call, None, DecidedBy::BadAnswer, &why.to_string()),
        }
    }

    pub(super) fn carry_out(&mut self, case: Case, after: Option<RightsChange>) {
        let Case { call, ask: Ask { kind: ask_kind, grant }, subject } = case;
        let (tool, proposal) = match subject {
            Subject::Effect { tool, proposal, .. } => (tool, proposal),
            Subject::Changes(all) => match self.approve_together(call, all) {
                Some(FileChange { tool, proposal, grant }) => {
                    let subject = Subject::Effect { tool, proposal, denied: None };
                    return self.carry_out(Case { call, ask: Ask { kind: ask_kind, grant }, subject }, after);
                }
                None => return,
            },
            Subject::Agent(approved) => {
                let AgentSpawn { spawn, child, .. } = *approved;
                return self.delegate(call, spawn, child);
            }
            Subject::Plan(plan) => {
                let ask = Ask { kind: ask_kind, grant };
                return self.execute_plan(call, *plan, ask, DecidedBy::User);
            }
            Subject::Fetch(fetch) => {
                let permitted = self.seen.permit(fetch, Some(&grant));
                return self.serve(call, ServedCall::Fetch(permitted));
            }
            Subject::External(external) => return self.serve(call, ServedCall::External(external)),
        };
        let effect = proposal.effect;
        let committing = Committing { tool, effect: Arc::clone(&effect), grant: grant.clone(), after };
        self.out.push(Effect::CarryOut { call, effect, grant });
        self.calls.open_as(call, Open::Committing(Box::new(committing)));
    }

    /// An answer of the user. What is not waited for counts for nothing.
    pub(super) fn on_answer(&mut self, id: ApprovalId, answer: JudgedAnswer) {
        if self.on_host_answer(id, &answer) || self.on_form_answer(id, &answer) {
            return self.go_on();
        }
        let Some((call, asking)) = self.calls.asking(id) else {
            return self.ignore(id, &answer.decision);
        };
        let Asking { ask, subject, .. } = asking.clone();
        let decision = answer.decision.clone();
        match answer.judge(&ask, &subject, &self.seen) {
            Ok(ruling) => {
                self.log_answer(call, Some(id), decision, DecidedBy::User, None);
                self.settle(Case { call, ask, subject }, ruling);
            }
            Err(why) => self.deny(call, Some(id), DecidedBy::BadAnswer, &why),
        }
        self.go_on();
    }

    fn settle(&mut self, case: Case, ruling: Ruling) {
        if !matches!(ruling, Ruling::Approved(_)) {
            self.decline(&case.subject, &case.ask.grant);
        }
        match ruling {
            Ruling::Approved(scope) => {
                let after = scope.and_then(|scope| self.remember(scope, &case.ask));
                self.carry_out(case, after);
            }
            Ruling::Denied(message) => {
                let text = match &message {
                    Some(message) => format!("{USER_DENIED} They say: {message}"),
                    None => USER_DENIED.to_owned(),
                };
                let result = CallResult::denied(text);
                self.close_together(DecidedBy::User, None, &result);
                self.close_denied(case.call, message.as_deref(), result);
            }
            Ruling::Aborted => {
                let result = CallResult::denied("The user denied this call and ended the turn.");
                self.close_together(DecidedBy::User, None, &result);
                self.close_denied(case.call, None, result);
                self.stop(Ending::because(EndReason::Aborted, ABORTED));
            }
        }
    }

    /// Keeps an approval for the session. A change of the standing rights waits until the call was carried out under the old
    /// ones: its own approval must not interrupt it.
    fn remember(&mut self, scope: Scope, ask: &Ask) -> Option<RightsChange> {
        match scope {
            Scope::Remembered(covered) => {
                for covered in covered {
                    let listed = self.grants.add(SessionApprovals { covered, grant: ask.grant.clone() });
                    self.out.log(EventKind::GrantAdded(listed));
                }
                None
            }
            Scope::Kept { call, covered } => {
                self.out.push(Effect::KeepTool(call));
                self.remember(Scope::Remembered(vec![*covered]), ask)
            }
            Scope::Standing(change) => Some(change),
        }
    }

    /// A request is over without an answer that counts.
    pub(super) fn on_lapsed(&mut self, id: ApprovalId, by: DecidedBy, cause: String) {
        if self.on_host_lapsed(id, by, &cause) || self.on_form_lapsed(id, by, &cause) {
            return self.go_on();
        }
        if let Some((call, asking)) = self.calls.asking(id) {
            // Nobody was there: each run of the same would wait as long again.
            let Asking { ask, subject, .. } = asking.clone();
            self.decline(&subject, &ask.grant);
            self.deny(call, Some(id), by, &cause);
        }
        self.go_on();
    }

    /// Takes back every request that is waited for, since the turn ends or the rights change.
    pub(super) fn withdraw(&mut self, cause: &str, text: &str) {
        let text = format!("{text}; nobody had approved it, and nothing of it was carried out");
        self.close_asking(DecidedBy::Interrupted, cause, &text);
    }

    fn close_asking(&mut self, by: DecidedBy, cause: &str, text: &str) {
        self.withdraw_hosts(by, cause);
        self.withdraw_forms(by, cause);
        for id in self.calls.all_asking() {
            if let Some((call, _)) = self.calls.asking(id) {
                let result = CallResult::not_done(ToolCallStatus::Interrupted, text);
                self.log_answer(call, Some(id), ReviewDecision::DENIED, by, Some(cause.to_owned()));
                self.close_together(by, Some(cause), &result);
                self.close_undecided(call, result);
            }
        }
        self.close_all_together(&CallResult::not_done(ToolCallStatus::Interrupted, text));
        self.leave_held();
    }

    /// Without a front end there is nobody to ask, and nothing to go on for.
    pub(super) fn on_front_end_gone(&mut self) {
        let cause = "the front end is gone";
        self.close_asking(DecidedBy::NoFrontEnd, cause, "denied: nobody is there any more");
        self.close(Ending::of(EndReason::Terminated));
    }

    /// Denies a call that nobody decided on.
    pub(super) fn deny(&mut self, call: CallId, id: Option<ApprovalId>, by: DecidedBy, cause: &str) {
        self.log_answer(call, id, ReviewDecision::DENIED, by, Some(cause.to_owned()));
        let text = format!("The call was not approved, and was not carried out: {cause}.");
        let result = CallResult::denied(text);
        self.close_together(by, Some(cause), &result);
        self.close_undecided(call, result);
    }

    fn ignore(&mut self, id: ApprovalId, decision: &ReviewDecision) {
        let decision = decision.as_str();
        let message = format!("request {id} is not waited for: the answer counts for nothing ({decision})");
        self.out.notice(NoticeCode::ApprovalIgnored, &message);
    }

    /// A request is over, since a person edited what it was about.
    pub(super) fn supersede(&mut self, call: CallId, id: ApprovalId) {
        let cause = "the plan was edited, and is asked about anew".to_owned();
        self.log_answer(call, Some(id), ReviewDecision::DENIED, DecidedBy::Edited, Some(cause));
    }

    pub(super) fn log_answer(
        &mut self,
        call: CallId,
        id: Option<ApprovalId>,
        decision: ReviewDecision,
        by: DecidedBy,
        cause: Option<String>,
    ) {
        self.out.log(EventKind::ApprovalAnswered(ApprovalAnswered { id, call, decision, by, cause }));
        if let Some(id) = id {
            self.out.push(Effect::CloseApproval(id));
        }
    }

    pub(super) fn on_revoke(&mut self, id: GrantId) {
        if self.grants.revoke(id) {
            self.out.log(EventKind::GrantRevoked { id });
        } else {
            self.out.notice(NoticeCode::NoSuchGrant, &format!("nothing is approved for the session as {id}"));
        }
    }

    pub(super) fn on_one_shot_finished(
        &mut self,
        call: CallId,
        outcome: Result<CallOutcome, String>,
        duration_ms: u64,
    ) {
        let Some(Open::Committing(committing)) = self.calls.open(call).cloned() else {
            return;
        };
        let Committing { tool, grant, after, .. } = *committing;
        match outcome {
            Ok(outcome) => {
                let is_whole = matches!(outcome, CallOutcome::Done(_));
                let had = self.config.standing.with_grant(&grant).seen_in(self.seen.tier);
                let mut result = self.result_of(call, &tool, outcome, &had);
                if self.calls.is_of_user(call) {
                    // Whoever typed the command can change the access and type it again.
                    result.offer = None;
                }
                let result = self.with_partial_output(call, result, is_whole);
                self.close_or_hold(call, result, Observation::by_worker(duration_ms));
            }
            // The place may be another one now: it becomes no standing right either.
            Err(reason) if self.calls.had_run(call) => {
                return self.leave_not_run_again(call, &reason, after.is_some());
            }
            Err(reason) => {
                let result = CallResult::not_done(ToolCallStatus::Failed, reason);
                let result = self.with_partial_output(call, result, false);
                self.finish_call(call, result, Observation::by_supervisor(duration_ms));
            }
        }
        let Some(change) = after else { return self.go_on() };
        // The new rights come before the calls that follow: those are judged by them, and wait for their worker.
        self.on_change(Change::Rights(change));
        self.go_on();
    }
}
