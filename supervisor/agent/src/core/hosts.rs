//! Hosts beyond the list that a running command connects to, and that somebody is asked about while the connections wait.
//!
//! This is the one question that comes from a confined process. It widens nothing by itself: a yes holds for one name and port,
//! for the worker that asked, until the command has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use gate::Change;
use gate::activity::Activity;
use gate::approval::{HostRuling, HostSubject, JudgedAnswer, Question};
use ipc::id::{ApprovalId, CallId};
use ipc::refusal::{Act, Refusal, Target};
use ipc::rights::{Grant, HostRule, Hosts, Network, RightsChange};
use ipc::tool::ToolCall;
use protocol::approval::ReviewDecision;
use protocol::event::DecidedBy;

use super::approvals::ABORTED;
use super::calls::Open;
use super::end::Ending;
use super::{Agent, Effect, EndReason, HostAsked, HostQuestionId};

/// The longest wait for an answer. Most clients give up between 10 and 30 seconds.
const LONGEST: Duration = Duration::from_secs(20);

/// What is asked about hosts, and what of it joins the list later.
#[derive(Debug, Default)]
pub(super) struct HeldHosts {
    open: BTreeMap<ApprovalId, HeldHost>,
    /// Hosts that were allowed for the session. They join the list when no command runs: a change of rights ends what runs.
    allowed: Vec<HostRule>,
}

#[derive(Debug)]
struct HeldHost {
    id: HostQuestionId,
    /// The call that the request names.
    call: CallId,
    /// The process below which the connections are made, where the worker serves other calls as well.
    process: Option<u32>,
    host: HostRule,
    digest: String,
}

impl Agent {
    /// True if somebody is asked about hosts beyond the list.
    pub fn asks_hosts(&self) -> bool {
        let approvals = &self.config.approvals;
        let is_root = self.config.id.is_top_level() && self.config.activity == Activity::Execute;
        is_root && self.asks() && approvals.answerer && approvals.offers
    }

    pub(super) fn on_host_asked(&mut self, asked: HostAsked) {
        let HostAsked { id, call, process, host, program } = asked;
        let running = call.or_else(|| self.running_command());
        let command = running.and_then(|call| Some((call, self.command_of(call)?)));
        let may_ask = self.asks_hosts() && !self.replacement.is_awaited();
        let Some(((call_id, command), grant)) = command.zip(self.offered_host(&host, &program)) else {
            return self.answer_host(id, false);
        };
        if !may_ask {
            return self.answer_host(id, false);
        }
        // Another command of the turn may connect to a host that joins the list soon.
        if self.held_hosts.allowed.contains(&host) {
            return self.answer_host(id, true);
        }
        let (generation, question) = (id.generation, id.number);
        let subject = HostSubject { host: host.clone(), program, command, generation, question };
        let asks = Question {
            conversation: &self.config.conversation,
            agent: &self.config.id,
            call: call_id,
            standing: &self.seen,
            timeout: self.config.approvals.timeout.min(LONGEST),
            reason: None,
            more: 0,
        };
        let request = asks.about_host(&subject, grant);
        let held = HeldHost {
            id,
            call: call_id,
            process: call.is_none().then_some(process),
            host,
            digest: request.digest().to_owned(),
        };
        self.last_approval = self.last_approval.next();
        let id = self.last_approval;
        self.held_hosts.open.insert(id, held);
        self.out.push(Effect::RequestApproval { id, request: Box::new(request) });
    }

    /// The first command that a worker runs.
    fn running_command(&self) -> Option<CallId> {
        let runs = |call: &CallId| self.calls.open(*call).is_some_and(Open::prints);
        self.calls.all_open().into_iter().find(runs)
    }

    fn command_of(&self, call: CallId) -> Option<String> {
        let tool = match self.calls.open(call)? {
            Open::Serving(tool) => tool,
            Open::Committing(committing) => &committing.tool,
            _ => return None,
        };
        match tool {
            ToolCall::ShellExec(command) => Some(command.command.clone()),
            _ => None,
        }
    }

    /// Returns the right to a host, if an approval can give it.
    fn offered_host(&self, host: &HostRule, program: &str) -> Option<Grant> {
        let refusal = Refusal {
            process: 0,
            program: program.to_owned(),
            act: Act::Connect,
            object: Target::Host { name: host.name().clone(), port: host.port() },
            errno: 0,
            count: 1,
            untold: 0,
        };
        self.seen.refused_by_rules(&refusal)?.grant?;
        Some(Grant { net: Network::Hosts(Hosts::new([host.clone()])?), ..Grant::default() })
    }

    /// Takes an answer about a host, and returns true; false if the request is about something else.
    pub(super) fn on_host_answer(&mut self, id: ApprovalId, answer: &JudgedAnswer) -> bool {
        let Some(held) = self.held_hosts.open.remove(&id) else { return false };
        let decision = answer.decision.clone();
        match answer.clone().judge_host(&held.digest) {
            Ok(ruling) => {
                self.log_answer(held.call, Some(id), decision, DecidedBy::User, None);
                self.settle_host(held, ruling);
            }
            Err(why) => self.refuse_host(id, &held, DecidedBy::BadAnswer, why),
        }
        true
    }

    fn settle_host(&mut self, held: HeldHost, ruling: HostRuling) {
        let allowed = matches!(ruling, HostRuling::Once | HostRuling::Session);
        self.answer_host(held.id, allowed);
        match ruling {
            HostRuling::Once | HostRuling::Denied(None) => {}
            HostRuling::Session => self.held_hosts.allowed.push(held.host),
            HostRuling::Denied(Some(message)) => {
                let text =
                    format!("The user did not allow connections to {}. They say: {message}", held.host);
                self.on_remark(held.call, text);
            }
            HostRuling::Aborted => {
                self.stop(Ending::because(EndReason::Aborted, ABORTED));
            }
        }
    }

    /// A request about a host is over without an answer that counts; false if the request is about something else.
    pub(super) fn on_host_lapsed(&mut self, id: ApprovalId, by: DecidedBy, cause: &str) -> bool {
        let Some(held) = self.held_hosts.open.remove(&id) else { return false };
        self.refuse_host(id, &held, by, cause.to_owned());
        true
    }

    /// Takes every request about a host back.
    pub(super) fn withdraw_hosts(&mut self, by: DecidedBy, cause: &str) {
        self.end_hosts(by, cause, |_| true);
    }

    /// Forgets what was allowed for the session, since the user narrows the network.
    pub(super) fn forget_allowed_hosts(&mut self) {
        self.held_hosts.allowed.clear();
    }

    /// Takes the requests about hosts back that a command made which has ended, by its process.
    pub(super) fn end_hosts_of_process(&mut self, process: u32) {
        self.end_hosts(DecidedBy::Interrupted, ENDED, |held| held.process == Some(process));
    }

    /// Takes the requests about hosts back whose command has ended.
    pub(super) fn end_hosts_of(&mut self, call: CallId) {
        let none_runs = self.running_command().is_none();
        let is_over = |held: &HeldHost| none_runs || held.process.is_none() && held.call == call;
        self.end_hosts(DecidedBy::Interrupted, ENDED, is_over);
    }

    fn end_hosts(&mut self, by: DecidedBy, cause: &str, is_over: impl Fn(&HeldHost) -> bool) {
        let over: Vec<_> = self.held_hosts.open.extract_if(.., |_, held| is_over(held)).collect();
        for (id, held) in over {
            self.refuse_host(id, &held, by, cause.to_owned());
        }
    }

    fn refuse_host(&mut self, id: ApprovalId, held: &HeldHost, by: DecidedBy, cause: String) {
        self.answer_host(held.id, false);
        self.log_answer(held.call, Some(id), ReviewDecision::DENIED, by, Some(cause));
    }

    fn answer_host(&mut self, id: HostQuestionId, allowed: bool) {
        self.out.push(Effect::AnswerHost { id, allowed });
    }

    /// Adds the hosts that were allowed for the session, if no call is under way that the change would end.
    pub(super) fn add_allowed_hosts(&mut self) {
        if self.calls.any_begun() || self.calls.next_held().is_some() {
            return;
        }
        if let Some(hosts) = Hosts::new(std::mem::take(&mut self.held_hosts.allowed)) {
            self.on_change(Change::Rights(RightsChange::AddHosts { hosts, reach: None }));
        }
    }
}

const ENDED: &str = "the command has ended";
