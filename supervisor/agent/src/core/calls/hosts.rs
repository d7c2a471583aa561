//! Questions about hosts that are not on the list of allowed hosts. While the person is asked, the running command's
//! connections to the host wait.
//!
//! A confined process can ask no other question. An approval is valid for one name and port, and only for the command's
//! worker until the command has ended.

use std::collections::BTreeMap;

use gate::approval::{HostRuling, JudgedAnswer};
use gate::judgement::denied;
use ipc::id::{ApprovalId, CallId};
use ipc::refusal::{Act, Refusal, Target};
use ipc::rights::{Grant, HostRule, Hosts, Network};
use protocol::approval::ReviewDecision;
use protocol::event::DecidedBy;

use super::answered::Answered;
use crate::core::outbox::Outbox;
use crate::core::rights::RightsState;
use crate::core::{Effect, HostQuestionId};

/// The cause that the log has for a request that ended with its command.
const ENDED: &str = "the command has ended";

#[derive(Debug, Default)]
pub(super) struct HeldHosts {
    open: BTreeMap<ApprovalId, HeldHost>,
    /// Hosts that were allowed for the session. They join the list of allowed hosts when no command runs, because a
    /// change of that list ends open calls.
    allowed: Vec<HostRule>,
}

#[derive(Debug)]
pub(super) struct HeldHost {
    pub(super) id: HostQuestionId,
    /// The call that the request to the person names.
    pub(super) call: CallId,
    /// Id of the process from which the connecting processes descend; `None` if the worker serves no other call.
    pub(super) process: Option<u32>,
    pub(super) host: HostRule,
    pub(super) digest: String,
}

impl HeldHosts {
    /// True if the host was allowed for the session, so that another command of the turn may connect to it.
    pub(super) fn allows(&self, host: &HostRule) -> bool {
        self.allowed.contains(host)
    }

    pub(super) fn hold(&mut self, id: ApprovalId, held: HeldHost) {
        self.open.insert(id, held);
    }

    /// Handles an answer about a host. Returns `None` if no open request has this id.
    pub(super) fn on_answer(
        &mut self,
        id: ApprovalId,
        answer: &JudgedAnswer,
        out: &mut Outbox,
    ) -> Option<Answered> {
        let held = self.open.remove(&id)?;
        let decision = answer.decision.clone();
        Some(match answer.clone().judge_host(&held.digest) {
            Ok(ruling) => {
                out.log_answer(held.call, Some(id), decision, DecidedBy::User, None);
                self.settle(held, ruling, out)
            }
            Err(why) => {
                refuse(id, &held, DecidedBy::BadAnswer, why, out);
                Answered::Settled
            }
        })
    }

    fn settle(&mut self, held: HeldHost, ruling: HostRuling, out: &mut Outbox) -> Answered {
        let allowed = matches!(ruling, HostRuling::Once | HostRuling::Session);
        out.push(Effect::AnswerHost { id: held.id, allowed });
        match ruling {
            HostRuling::Once | HostRuling::Denied(None) => Answered::Settled,
            HostRuling::Session => {
                self.allowed.push(held.host);
                Answered::Settled
            }
            HostRuling::Denied(Some(message)) => {
                let text =
                    format!("The user did not allow connections to {}. They say: {message}", held.host);
                Answered::Remark(held.call, text)
            }
            HostRuling::Aborted => Answered::Aborted,
        }
    }

    /// Handles the end of a request without a valid answer. Returns false if no open request has this id.
    pub(super) fn on_lapsed(&mut self, id: ApprovalId, by: DecidedBy, cause: &str, out: &mut Outbox) -> bool {
        let Some(held) = self.open.remove(&id) else { return false };
        refuse(id, &held, by, cause.to_owned(), out);
        true
    }

    pub(super) fn withdraw(&mut self, by: DecidedBy, cause: &str, out: &mut Outbox) {
        self.end(by, cause, |_| true, out);
    }

    /// Withdraws the requests of a command that has ended, found by the id of its process.
    pub(super) fn end_process(&mut self, process: u32, out: &mut Outbox) {
        self.end(DecidedBy::Interrupted, ENDED, |held| held.process == Some(process), out);
    }

    /// Withdraws the requests of a call that has ended; all requests if no command runs any more (`none_runs`).
    pub(super) fn end_call(&mut self, call: CallId, none_runs: bool, out: &mut Outbox) {
        let is_over = |held: &HeldHost| none_runs || held.process.is_none() && held.call == call;
        self.end(DecidedBy::Interrupted, ENDED, is_over, out);
    }

    fn end(&mut self, by: DecidedBy, cause: &str, is_over: impl Fn(&HeldHost) -> bool, out: &mut Outbox) {
        let over: Vec<_> = self.open.extract_if(.., |_, held| is_over(held)).collect();
        for (id, held) in over {
            refuse(id, &held, by, cause.to_owned(), out);
        }
    }

    /// Forgets the hosts that were allowed for the session, because the person restricts the network.
    pub(super) fn forget_allowed(&mut self) {
        self.allowed.clear();
    }

    /// Removes and returns the hosts that were allowed for the session; `None` if there are none.
    pub(super) fn take_allowed(&mut self) -> Option<Hosts> {
        Hosts::new(std::mem::take(&mut self.allowed))
    }
}

fn refuse(id: ApprovalId, held: &HeldHost, by: DecidedBy, cause: String, out: &mut Outbox) {
    out.push(Effect::AnswerHost { id: held.id, allowed: false });
    out.log_answer(held.call, Some(id), ReviewDecision::DENIED, by, Some(cause));
}

/// Returns the right to connect to a host; `None` if no approval can give it.
pub(super) fn offered_host(host: &HostRule, program: &str, rights: &RightsState) -> Option<Grant> {
    let refusal = Refusal {
        process: 0,
        program: program.to_owned(),
        act: Act::Connect,
        object: Target::Host { name: host.name().clone(), port: host.port() },
        errno: 0,
        count: 1,
        untold: 0,
    };
    denied::refused_by_rules(rights.seen(), &refusal)?.grant?;
    Some(Grant { net: Network::Hosts(Hosts::new([host.clone()])?), ..Grant::default() })
}
