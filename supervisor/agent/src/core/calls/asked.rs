//! Calls that need an approval: the request, the answer, and the approved action.
//!
//! Everything except an explicit approval of exactly the shown action is a denial. Each request is decided once, by one
//! event with the decider and the cause. Changes of files of one reply can share a request: all are prepared and shown,
//! and one answer decides. Exactly the shown bytes are written, call by call.

use std::sync::Arc;
use std::time::Duration;

use gate::activity::Activity;
use gate::approval::{
    AgentSpawn, FormSubject, HostSubject, JudgedAnswer, Proposal, Question, Ruling, Subject, SubjectChange,
    SubjectPart,
};
use gate::judgement::{fetch, flags, judge, offer};
use gate::tools::{ExternalCall, Invocation, Rendered, ServedCall};
use gate::{Ask, Offer, Verdict};
use ipc::id::{ApprovalId, CallId};
use ipc::mcp::McpAnswer;
use ipc::path::WirePath;
use ipc::rights::{Grant, RightsChange};
use ipc::tool::ToolCall;
use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::{DecidedBy, NoticeCode, ObservedBy, ToolCallStatus};

use super::answered::Answered;
use super::changes::{LEFT_OUT, NOT_THIS, by_user, in_parts, named};
use super::forms::{HeldForm, askable};
use super::hosts::{HeldHost, offered_host};
use super::machine::{After, Bounds, Calls};
use super::outcome::explained;
use super::slots::{Asking, Committing, Open, Stage};
use crate::core::call::CallResult;
use crate::core::outbox::Outbox;
use crate::core::rights::RightsState;
use crate::core::{Effect, FormAsked, HostAsked};

/// Maximum wait for an answer about a host: most clients give up after 10 to 30 seconds.
const LONGEST_FOR_HOST: Duration = Duration::from_secs(20);

/// Maximum number of characters that a notice quotes from an MCP server.
const MOST_WORDS: usize = 200;

/// The result for the model after the user's denial.
const USER_DENIED: &str = "The user denied this call.";

/// The text for model and person if nobody can be asked.
const NOBODY: &str = "nobody can be asked in this run";

/// A call that needs an approval, with the action to approve.
pub(in crate::core) struct Case {
    pub(in crate::core) call: CallId,
    pub(in crate::core) ask: Ask,
    pub(in crate::core) subject: Subject,
}

/// Maximum number of changes of files in one request.
const MOST: usize = 64;

impl Calls {
    /// Asks about a command. No worker has to prepare it, because the command is executed as the model wrote it.
    pub(super) fn ask_for_command(
        &mut self,
        call: CallId,
        tool: ToolCall,
        ask: Ask,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let proposal = match &tool {
            _ if bounds.rights.has_failed() => {
                Err("no worker could be started with the current access".to_owned())
            }
            ToolCall::ShellExec(command) => {
                Proposal::of_command(bounds.rights.seen(), command).map_err(|error| error.to_string())
            }
            other => Err(format!("{} is not a command", other.name())),
        };
        match proposal {
            Ok(proposal) => {
                self.ask(
                    Case { call, ask, subject: Subject::Effect { tool, proposal, denied: None } },
                    bounds,
                    out,
                );
            }
            Err(cause) => self.deny(call, None, DecidedBy::BadAnswer, &cause, bounds, out),
        }
    }

    pub(super) fn on_prepared(
        &mut self,
        call: CallId,
        proposal: Proposal,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        if let Some(Open::Preparing(tool)) = self.slots.open(call).cloned() {
            match judge::change(bounds.rights.seen(), &proposal.places) {
                // The mode may have changed meanwhile. In a mode without questions the kernel alone enforces the
                // access.
                Verdict::Ask(_) if !bounds.rights.asks() => self.dispatch(call, tool, out),
                Verdict::Run => self.dispatch(call, tool, out),
                Verdict::Ask(Ask { grant, .. }) if self.slots.is_gathering() => {
                    self.slots.put(call, SubjectChange { tool, proposal, grant }, Stage::Gathered);
                }
                Verdict::Ask(ask) => {
                    self.ask(
                        Case { call, ask, subject: Subject::Effect { tool, proposal, denied: None } },
                        bounds,
                        out,
                    );
                }
                Verdict::Deny(denial) => {
                    let said = Rendered::failure("the call was not carried out");
                    let result = explained(vec![denial], said, bounds.rights.seen(), ObservedBy::Supervisor);
                    self.close_at_once(call, result, bounds, out);
                }
                Verdict::Prepare => {}
            }
        }
        After::GoOn
    }

    pub(super) fn on_not_prepared(
        &mut self,
        call: CallId,
        reason: &str,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        if matches!(self.slots.open(call), Some(Open::Preparing(_))) {
            self.deny(call, None, DecidedBy::BadAnswer, reason, bounds, out);
        }
        After::GoOn
    }

    /// Carries out an action that an earlier approval covers. Asks the person about any other action.
    pub(super) fn ask(&mut self, case: Case, bounds: Bounds<'_>, out: &mut Outbox) {
        let Case { call, ask, subject } = &case;
        let call = *call;
        let preapproved = &self.charter.approvals.preapproved;
        // The person sees each denial, whatever was approved before it.
        if ask.kind != AskKind::Denied
            && let Some(by) = bounds.rights.approved_before(subject, ask, preapproved)
        {
            out.log_answer(call, None, ReviewDecision::Approved, by, None);
            return self.carry_out(case, None, bounds, out);
        }
        if !self.charter.approvals.answerer {
            // No mode allows a call of an external tool without asking.
            let flags = match subject {
                Subject::External(_) => None,
                Subject::Effect { .. }
                | Subject::Changes(_)
                | Subject::Fetch(_)
                | Subject::Agent(_)
                | Subject::Plan(_) => flags::for_grant(bounds.rights.seen(), &ask.grant),
            };
            let flags = flags
                .map(|flags| format!("{flags} allows the call without asking, and "))
                .unwrap_or_default();
            let nobody = format!("{NOBODY}; {flags}--approval-socket PATH lets another program answer");
            return self.deny(call, None, DecidedBy::NoFrontEnd, &nobody, bounds, out);
        }
        let reason = self.slots.tool_use(call).and_then(|tool_use| tool_use.said.clone());
        let more = self.changes_after(call, bounds).len();
        let turn = self.slots.is_whole(call).then(|| bounds.rights.offered_turn(ask, subject)).flatten();
        let question = Question { reason, more, turn, ..self.question(call, bounds.rights) };
        match question.request(ask, subject) {
            Ok(request) => {
                let id = self.next_approval();
                out.push(Effect::RequestApproval { id, request: Box::new(request) });
                let Case { ask, subject, .. } = case;
                self.slots.ask(call, Asking { approval: id, ask, subject });
            }
            Err(why) => self.deny(call, None, DecidedBy::BadAnswer, &why.to_string(), bounds, out),
        }
    }

    pub(in crate::core) fn carry_out(
        &mut self,
        case: Case,
        after: Option<RightsChange>,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        let Case { call, ask: Ask { kind: ask_kind, grant }, subject } = case;
        let (tool, proposal) = match subject {
            Subject::Effect { tool, proposal, .. } => (tool, proposal),
            Subject::Changes(all) => match self.approve_together(call, all, out) {
                Some(SubjectChange { tool, proposal, grant }) => {
                    let subject = Subject::Effect { tool, proposal, denied: None };
                    return self.carry_out(
                        Case { call, ask: Ask { kind: ask_kind, grant }, subject },
                        after,
                        bounds,
                        out,
                    );
                }
                None => return,
            },
            Subject::Agent(approved) => {
                let AgentSpawn { spawn, child, .. } = *approved;
                return self.delegate(call, spawn, child, bounds, out);
            }
            Subject::Plan(plan) => {
                let ask = Ask { kind: ask_kind, grant };
                return self.execute_plan(call, *plan, ask, DecidedBy::User, out);
            }
            Subject::Fetch(fetch) => {
                let permitted = fetch::permit(bounds.rights.seen(), fetch, Some(&grant));
                return self.serve(call, ServedCall::Fetch(permitted), bounds, out);
            }
            Subject::External(external) => {
                return self.serve(call, ServedCall::External(external), bounds, out);
            }
        };
        let effect = proposal.effect;
        let committing = Committing { tool, effect: Arc::clone(&effect), grant: grant.clone(), after };
        out.push(Effect::CarryOut { call, effect, grant });
        self.slots.open_as(call, Open::Committing(Box::new(committing)));
    }

    /// Handles the person's answer to a request. It has no effect if the request is not open.
    pub(in crate::core) fn on_answer(
        &mut self,
        id: ApprovalId,
        answer: JudgedAnswer,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let beside = self.hosts.on_answer(id, &answer, out);
        match beside.or_else(|| self.forms.on_answer(id, &answer, out)) {
            Some(Answered::Settled) => return After::GoOn,
            Some(Answered::Remark(call, text)) => {
                self.slots.remark(call, text);
                return After::GoOn;
            }
            Some(Answered::Aborted) => return After::Abort,
            None => {}
        }
        let Some((call, asking)) = self.slots.asking(id) else {
            let decision = answer.decision.as_str();
            let message = format!("request {id} is no longer open: ignored the answer ({decision})");
            out.notice(NoticeCode::ApprovalIgnored, &message);
            return After::Rest;
        };
        let Asking { ask, subject, .. } = asking.clone();
        let decision = answer.decision.clone();
        let turn = self.slots.is_whole(call).then(|| bounds.rights.offered_turn(&ask, &subject)).flatten();
        match answer.judge(&ask, &subject, bounds.rights.seen(), turn) {
            Ok(ruling) => {
                let in_part = match &ruling {
                    Ruling::InPart(part) => Some(part.applied.clone()),
                    _ => None,
                };
                out.log_answered(by_user(Some(id), call, decision.clone(), in_part));
                self.settle(Case { call, ask, subject }, &decision, ruling, bounds, out)
            }
            Err(why) => {
                self.deny(call, Some(id), DecidedBy::BadAnswer, &why, bounds, out);
                After::GoOn
            }
        }
    }

    fn settle(
        &mut self,
        case: Case,
        decision: &ReviewDecision,
        ruling: Ruling,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        if !matches!(ruling, Ruling::Approved(_) | Ruling::ForTurn(_) | Ruling::InPart(_)) {
            self.decline(&case.subject, &case.ask.grant);
        }
        match ruling {
            Ruling::Approved(scope) => After::Approved(Box::new(case), scope),
            Ruling::ForTurn(access) => {
                // The calls begin again on the next worker, with the access of the turn.
                self.slots.put_back(case.call);
                if let Subject::Changes(all) = case.subject {
                    for (other, _) in all {
                        self.slots.put_back(other);
                    }
                }
                After::AllowTurn(case.call, access)
            }
            Ruling::InPart(part) => self.take_part(case, decision, *part, bounds, out),
            Ruling::Denied(message) => {
                let text = match &message {
                    Some(message) => format!("{USER_DENIED} They say: {message}"),
                    None => USER_DENIED.to_owned(),
                };
                let result = CallResult::denied(text);
                self.close_together(DecidedBy::User, None, &result, bounds, out);
                self.close_denied(case.call, message.as_deref(), result, bounds, out);
                After::GoOn
            }
            Ruling::Aborted => {
                let result = CallResult::denied("The user denied this call and ended the turn.");
                self.close_together(DecidedBy::User, None, &result, bounds, out);
                self.close_denied(case.call, None, result, bounds, out);
                After::Abort
            }
        }
    }

    /// Carries out the approved parts, call by call, and tells the model which changes were not approved.
    fn take_part(
        &mut self,
        case: Case,
        decision: &ReviewDecision,
        part: SubjectPart,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let (call, kind) = (case.call, case.ask.kind);
        let mut first = None;
        for (each, change, part) in in_parts(case, part.calls) {
            let is_first = each == call;
            let Some(part) = part else {
                if !is_first {
                    let why = Some(LEFT_OUT.to_owned());
                    out.log_answer(each, None, ReviewDecision::DENIED, DecidedBy::User, why);
                }
                self.close_at_once(each, CallResult::denied(NOT_THIS), bounds, out);
                continue;
            };
            let SubjectChange { tool, proposal, grant } = change;
            let change = SubjectChange { tool, proposal: proposal.with_part(&part), grant };
            let (in_part, decision) = match &part.told {
                Some(_) => (Some(part.applied), decision.clone()),
                None => (None, ReviewDecision::Approved),
            };
            if let Some(told) = part.told {
                self.slots.remark(each, told);
            }
            if is_first {
                first = Some(change);
            } else {
                out.log_answered(by_user(None, each, decision, in_part));
                self.slots.put(each, change, Stage::Approved);
            }
        }
        let Some(SubjectChange { tool, proposal, grant }) = first else { return After::GoOn };
        let subject = Subject::Effect { tool, proposal, denied: None };
        After::Approved(Box::new(Case { call, ask: Ask { kind, grant }, subject }), None)
    }

    /// Handles the end of a request without a valid answer.
    pub(super) fn on_lapsed(
        &mut self,
        id: ApprovalId,
        by: DecidedBy,
        cause: &str,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        if self.hosts.on_lapsed(id, by, cause, out) || self.forms.on_lapsed(id, by, cause, out) {
            return After::GoOn;
        }
        if let Some((call, asking)) = self.slots.asking(id) {
            // Nobody answered. The next run of the command with this denial does not wait again.
            let Asking { ask, subject, .. } = asking.clone();
            self.decline(&subject, &ask.grant);
            self.deny(call, Some(id), by, cause, bounds, out);
        }
        After::GoOn
    }

    /// Withdraws all open requests, because the turn ends or the access changes.
    pub(super) fn withdraw(&mut self, cause: &str, text: &str, bounds: Bounds<'_>, out: &mut Outbox) {
        let text = format!("{text}; the call had not been approved, and no part of it was carried out");
        self.close_asking(DecidedBy::Interrupted, cause, &text, bounds, out);
    }

    fn close_asking(&mut self, by: DecidedBy, cause: &str, text: &str, bounds: Bounds<'_>, out: &mut Outbox) {
        self.hosts.withdraw(by, cause, out);
        self.forms.withdraw(by, cause, out);
        for id in self.slots.all_asking() {
            if let Some((call, _)) = self.slots.asking(id) {
                let result = CallResult::not_done(ToolCallStatus::Interrupted, text);
                out.log_answer(call, Some(id), ReviewDecision::DENIED, by, Some(cause.to_owned()));
                self.close_together(by, Some(cause), &result, bounds, out);
                self.close_undecided(call, result, bounds, out);
            }
        }
        self.close_all_together(&CallResult::not_done(ToolCallStatus::Interrupted, text), bounds, out);
        self.leave_held(bounds, out);
    }

    /// Denies a call without a person's decision, for the given cause.
    pub(super) fn deny(
        &mut self,
        call: CallId,
        id: Option<ApprovalId>,
        by: DecidedBy,
        cause: &str,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        out.log_answer(call, id, ReviewDecision::DENIED, by, Some(cause.to_owned()));
        let text = format!("The call was not approved, and was not carried out: {cause}.");
        let result = CallResult::denied(text);
        self.close_together(by, Some(cause), &result, bounds, out);
        self.close_undecided(call, result, bounds, out);
    }

    /// Withdraws all open requests, because the front end has disconnected.
    pub(in crate::core) fn on_front_end_gone(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        let cause = "the front end has disconnected";
        self.close_asking(DecidedBy::NoFrontEnd, cause, "denied: nobody can answer any more", bounds, out);
    }

    /// Handles a command's connection to a host that is not allowed yet: asks the person, or denies the connection.
    pub(super) fn on_host_asked(&mut self, asked: HostAsked, bounds: Bounds<'_>, out: &mut Outbox) {
        let HostAsked { id, call, process, host, program } = asked;
        let running = call.or_else(|| self.slots.running_command());
        let command = running.and_then(|call| Some((call, self.slots.command(call)?)));
        let may_ask = self.asks_hosts(bounds.rights) && !bounds.rights.is_awaited();
        let offered = offered_host(&host, &program, bounds.rights).filter(|_| may_ask);
        let Some(((call_id, command), grant)) = command.zip(offered) else {
            return out.push(Effect::AnswerHost { id, allowed: false });
        };
        if self.hosts.allows(&host) {
            return out.push(Effect::AnswerHost { id, allowed: true });
        }
        let (generation, question) = (id.generation, id.number);
        let subject = HostSubject { host: host.clone(), program, command, generation, question };
        let timeout = self.charter.approvals.timeout.min(LONGEST_FOR_HOST);
        let asks = Question { timeout, ..self.question(call_id, bounds.rights) };
        let request = asks.about_host(&subject, grant);
        let process = call.is_none().then_some(process);
        let held = HeldHost { id, call: call_id, process, host, digest: request.digest().to_owned() };
        let id = self.next_approval();
        self.hosts.hold(id, held);
        out.push(Effect::RequestApproval { id, request: Box::new(request) });
    }

    /// True if the person can be asked about hosts that are not on the list of allowed hosts.
    pub(in crate::core) fn asks_hosts(&self, rights: &RightsState) -> bool {
        let approvals = &self.charter.approvals;
        let is_root = rights.is_top_level() && rights.activity() == Activity::Execute;
        is_root && rights.asks() && approvals.answerer && approvals.offers
    }

    /// Handles an MCP server's question to the person during a call.
    pub(super) fn on_form_asked(&mut self, asked: FormAsked, bounds: Bounds<'_>, out: &mut Outbox) {
        let FormAsked { id: question, call, message, form } = asked;
        let Some(Open::Served(ServedCall::External(external))) = self.slots.open(call) else {
            return out.push(Effect::AnswerForm { id: question, answer: McpAnswer::Cancelled });
        };
        let ExternalCall { server, tool, guest, .. } = external.clone();
        let fields = match askable(&message, form, self.charter.approvals.answerer, bounds.rights) {
            Ok(fields) => fields,
            Err(why) => {
                let words: String =
                    message.lines().next().unwrap_or_default().chars().take(MOST_WORDS).collect();
                let notice = format!(
                    "a question of the MCP server {server} was declined: {why} (the server asked: {words})"
                );
                out.notice(NoticeCode::FormDeclined, &notice);
                return out.push(Effect::AnswerForm { id: question, answer: McpAnswer::Declined });
            }
        };
        let access = guest.map(|guest| guest.access.clone());
        let subject =
            FormSubject { server: server.clone(), tool, access, message, fields: fields.clone(), question };
        let request = self.question(call, bounds.rights).about_form(subject);
        let held = HeldForm { question, call, server, fields, digest: request.digest().to_owned() };
        let id = self.next_approval();
        self.forms.hold(id, held);
        out.push(Effect::RequestApproval { id, request: Box::new(request) });
    }

    fn question<'a>(&'a self, call: CallId, rights: &'a RightsState) -> Question<'a> {
        Question {
            conversation: &self.charter.conversation,
            agent: &self.charter.agent,
            call,
            standing: rights.seen(),
            timeout: self.charter.approvals.timeout,
            reason: None,
            more: 0,
            turn: None,
            kept_in: self.charter.approvals.kept_in.as_ref(),
        }
    }

    /// Continues a denied call after the search for the directory to grant (`found`, `None` if there is none).
    pub(super) fn on_located(
        &mut self,
        call: CallId,
        found: Option<WirePath>,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        if let Some(offer) = self.slots.held(call).filter(|offer| offer.place.is_some()).cloned() {
            match offer::placed(bounds.rights.seen(), offer, found) {
                Some(offer) => self.slots.set_offer(call, offer),
                None => self.leave(call, None, bounds, out),
            }
        }
        After::GoOn
    }

    /// If no other call is open, asks whether the next denied command may run again with more access.
    pub(super) fn ask_again(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        while !self.slots.any_begun()
            && let Some((call, offer)) = self.slots.next_held()
            && offer.place.is_none()
        {
            let Offer { denial, command, grant, .. } = offer;
            match Proposal::of_command(bounds.rights.seen(), &command) {
                Ok(proposal) => {
                    let (tool, denied) = (ToolCall::ShellExec(command), Some(Box::new(denial)));
                    let ask = Ask { kind: AskKind::Denied, grant };
                    self.ask(
                        Case { call, ask, subject: Subject::Effect { tool, proposal, denied } },
                        bounds,
                        out,
                    );
                }
                Err(_) => self.leave(call, None, bounds, out),
            }
        }
    }

    /// Returns the changes of other files whose calls directly follow `call` and need an approval as well.
    fn changes_after(&self, call: CallId, bounds: Bounds<'_>) -> Vec<(CallId, ToolCall)> {
        let mut names: Vec<_> =
            self.change(call, bounds).and_then(|tool| named(&tool, bounds.rights)).into_iter().collect();
        let mut after = Vec::new();
        for next in self.slots.waiting_after(call).take(MOST) {
            let change = self.change(next, bounds);
            let name = change.as_ref().and_then(|tool| named(tool, bounds.rights));
            match (change, name) {
                // A second change of a file depends on the first.
                (Some(tool), Some(name)) if !names.contains(&name) => {
                    names.push(name);
                    after.push((next, tool));
                }
                _ => break,
            }
        }
        after
    }

    /// Returns the call's tool if it is a change of files that a worker must prepare, else `None`.
    fn change(&self, call: CallId, bounds: Bounds<'_>) -> Option<ToolCall> {
        let invocation = self.slots.tool_use(call)?.read(&self.charter.tools).ok()?;
        let is_prepared =
            judge::call(bounds.rights.seen(), &invocation, bounds.rights.position()) == Verdict::Prepare;
        match invocation {
            Invocation::Worker(tool) if is_prepared => Some(tool),
            _ => None,
        }
    }

    /// Handles the person's wish to see all changes of the reply before the decision on the first.
    pub(in crate::core) fn on_ask_together(
        &mut self,
        id: ApprovalId,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) -> After {
        let first = self.slots.asking(id).and_then(|(call, asking)| match &asking.subject {
            Subject::Effect { tool, proposal, denied: None } if asking.ask.kind == AskKind::Patch => {
                let (tool, proposal, grant) = (tool.clone(), proposal.clone(), asking.ask.grant.clone());
                Some((call, SubjectChange { tool, proposal, grant }))
            }
            _ => None,
        });
        let more = first.as_ref().map(|(call, _)| self.changes_after(*call, bounds)).unwrap_or_default();
        let Some((call, change)) = first.filter(|_| !more.is_empty()) else {
            let message =
                format!("no other changes of the reply can be shown together with that of request {id}");
            out.notice(NoticeCode::ApprovalIgnored, &message);
            return After::Rest;
        };
        let cause =
            "the user wants to see this change together with the other changes of the reply".to_owned();
        out.log_answer(call, Some(id), ReviewDecision::DENIED, DecidedBy::Together, Some(cause));
        self.slots.put(call, change, Stage::Gathered);
        for (call, tool) in more {
            if let Some(tool_use) = self.slots.tool_use(call).cloned() {
                self.log_started(call, &tool_use, bounds, out);
            }
            out.push(Effect::Prepare { call, tool: tool.clone() });
            self.slots.open_as(call, Open::Preparing(tool));
        }
        After::Rest
    }

    /// Asks about all changes of a shared request, once the last of them is prepared.
    pub(super) fn ask_gathered(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        if !self.slots.is_gathering() || self.slots.is_preparing() {
            return;
        }
        let mut all: Vec<(CallId, SubjectChange)> = Vec::new();
        for (call, change) in self.slots.changes(Stage::Gathered) {
            let is_new = |path| !all.iter().any(|(_, other)| other.proposal.changes.0.contains_key(path));
            // Two paths can name one file. The effect of the second change is known only after the first.
            if change.proposal.changes.0.keys().all(is_new) {
                all.push((call, change));
            } else {
                self.slots.put_back(call);
            }
        }
        let Some((call, first)) = all.first().cloned() else { return };
        if all.len() == 1 {
            let SubjectChange { tool, proposal, grant } = first;
            let subject = Subject::Effect { tool, proposal, denied: None };
            return self.ask(Case { call, ask: Ask { kind: AskKind::Patch, grant }, subject }, bounds, out);
        }
        for (other, change) in all.iter().skip(1) {
            self.slots.put(*other, change.clone(), Stage::Asked);
        }
        let grant = all.iter().fold(Grant::default(), |sum, (_, change)| sum.join(&change.grant));
        self.ask(
            Case { call, ask: Ask { kind: AskKind::Patch, grant }, subject: Subject::Changes(all) },
            bounds,
            out,
        );
    }

    /// Records the approval of all changes of a shared request. Returns the change of `call`; `None` if `all` lacks it.
    fn approve_together(
        &mut self,
        call: CallId,
        all: Vec<(CallId, SubjectChange)>,
        out: &mut Outbox,
    ) -> Option<SubjectChange> {
        let mut first = None;
        for (each, change) in all {
            if each == call {
                first = Some(change);
            } else {
                out.log_answer(each, None, ReviewDecision::Approved, DecidedBy::User, None);
                self.slots.put(each, change, Stage::Approved);
            }
        }
        first
    }

    /// Carries out the next approved change of a shared request. Does nothing while another call is open.
    pub(super) fn carry_out_next(&mut self, bounds: Bounds<'_>, out: &mut Outbox) {
        if self.slots.any_begun() {
            return;
        }
        if let Some((call, SubjectChange { tool, proposal, grant })) =
            self.slots.changes(Stage::Approved).into_iter().next()
        {
            let subject = Subject::Effect { tool, proposal, denied: None };
            self.carry_out(
                Case { call, ask: Ask { kind: AskKind::Patch, grant }, subject },
                None,
                bounds,
                out,
            );
        }
    }

    /// Denies the other changes of a shared request, and closes their calls with `result`.
    pub(super) fn close_together(
        &mut self,
        by: DecidedBy,
        cause: Option<&str>,
        result: &CallResult,
        bounds: Bounds<'_>,
        out: &mut Outbox,
    ) {
        for (call, _) in self.slots.changes(Stage::Asked) {
            let cause = cause.map(str::to_owned);
            out.log_answer(call, None, ReviewDecision::DENIED, by, cause);
            self.close_at_once(call, result.clone(), bounds, out);
        }
    }

    /// Closes every change that shares a request, whether it is being prepared, asked about, or approved and waiting.
    fn close_all_together(&mut self, result: &CallResult, bounds: Bounds<'_>, out: &mut Outbox) {
        for (call, _) in self.slots.changes(Stage::Approved) {
            let text = "interrupted: the call was approved together with other changes, and no part of it was carried out";
            self.close_at_once(call, CallResult::not_done(ToolCallStatus::Interrupted, text), bounds, out);
        }
        for call in self.slots.all_together() {
            self.close_at_once(call, result.clone(), bounds, out);
        }
    }
}
