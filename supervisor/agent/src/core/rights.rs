//! A change of rights or of the mode while the agent lives: rights never change in place, so the worker is replaced.
//!
//! What ran is interrupted at once, and so is what a person was asked about: the rights that the request showed are no
//! longer true. The reply that comes in is untouched. Results are held back until the next worker is ready, so that the
//! model reads them together with its new rights; calls that it makes meanwhile wait for that worker.

use std::collections::VecDeque;

use gate::modes::{Position, permits};
use gate::tools::{ExternalCall, Invocation, ServedCall};
use gate::{Change, Unchanged, Verdict};
use ipc::rights::{Network, Rights, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::event::{EventKind, NoticeCode, RightsChanged};

use super::calls::Open;
use super::interrupt::Interruption;
use super::turn::Phase;
use super::{Agent, Effect, ReadyWorker};
use crate::prompt::{mode_context, narrowed_context, rights_context};

/// What a call is told that ran when the rights changed.
const INTERRUPTED: Interruption =
    Interruption::because(": policy changed; the call was ended with everything that it had started");

/// What a call is told that somebody was asked about when the mode changed.
const MODE_CHANGED: &str = "interrupted: the approval mode changed";

/// What a call is told that was approved, and ran when nothing was to be approved any more.
const NOTHING_APPROVED: Interruption =
    Interruption::because(": the approval mode is deny now; the call was ended");

/// What a call is told that was approved with the network, when the user turned that off.
const NETWORK_OFF: Interruption =
    Interruption::because(": the user turned the network off; the call was ended");

/// What a call is told that was approved with more of the network than the user permits now.
const NETWORK_NARROWED: Interruption =
    Interruption::because(": the user narrowed the network; the call was ended");

/// Told to a call of a server that a plan's approval allowed.
const SERVER_TAKEN_BACK: Interruption =
    Interruption::because(": the user took back what the plan's approval allowed; the call was ended");

/// True if nothing stays approved after a change.
pub(super) fn ends_approvals(change: &Change) -> bool {
    match change {
        Change::Mode(mode) => !permits(Position::FIRST, *mode).keeps_approvals(),
        Change::Rights(_) => false,
    }
}

/// What goes on with the worker.
#[derive(Debug, Default)]
pub(super) struct Replacement {
    /// A worker with new rights is on its way.
    awaited: bool,
    /// The last one did not come to be: there is no worker.
    failed: bool,
    /// The mode that the worker on its way is for, where that is another.
    mode: Option<ApprovalMode>,
    /// Changes that came meanwhile, in order.
    next: VecDeque<Change>,
}

impl Replacement {
    pub(super) const fn is_awaited(&self) -> bool {
        self.awaited
    }

    pub(super) const fn has_failed(&self) -> bool {
        self.failed
    }
}

impl Agent {
    /// Changes the rights, or the mode and with it the rights.
    pub(super) fn on_change(&mut self, change: Change) {
        if self.turn.phase() == Phase::Closed {
            return;
        }
        let Some(change) = self.during_reading(change) else { return };
        if self.replacement.awaited {
            self.replacement.next.push_back(change);
            return;
        }
        let decided = self.decide(&change);
        let withdrawn = !matches!(decided, Err(Unchanged::Refused(_))) && self.withdraw_approved(&change);
        match decided {
            Ok(rights) => self.apply(change, rights),
            Err(Unchanged::Same(_)) if withdrawn && !self.replacement.failed => {
                self.out.notice(
                    NoticeCode::ApprovalsWithdrawn,
                    "what was approved with the network was ended, and is asked for again",
                );
            }
            // The rights are those already, but nobody has them.
            Err(Unchanged::Same(_)) if self.replacement.failed => {
                self.replace_worker(self.config.standing.rights.clone());
            }
            Err(unchanged) => self.out.notice(unchanged.code(), &unchanged.to_string()),
        }
        if withdrawn && !self.replacement.awaited {
            self.go_on();
        }
    }

    /// Ends what an approval gave beyond the standing rights, where the user takes that back: a worker of one effect is
    /// replaced by no other. Whether there was anything.
    fn withdraw_approved(&mut self, change: &Change) -> bool {
        let nothing = ends_approvals(change);
        let bound = match change {
            Change::Rights(change) => change.network_bound(),
            Change::Mode(_) => nothing.then_some(&Network::Off),
        };
        let Some(bound) = bound else { return false };
        self.forget_allowed_hosts();
        let revoked = self.grants.revoke_network(bound);
        let mut withdrawn = !revoked.is_empty();
        for id in revoked {
            self.out.log(EventKind::GrantRevoked { id });
        }
        let why = match bound {
            _ if nothing => NOTHING_APPROVED,
            Network::Off => NETWORK_OFF,
            Network::Hosts(_) | Network::On => NETWORK_NARROWED,
        };
        withdrawn |= self.end_open(why, |open| match open {
            Open::Committing(committing) => nothing || !bound.covers(&committing.grant.net),
            Open::Served(ServedCall::External(call)) => {
                nothing || call.guest.as_ref().is_some_and(|guest| !bound.covers(&guest.rights.net))
            }
            Open::Served(ServedCall::Fetch(fetch)) => !bound.covers(&Network::Hosts(fetch.hosts.clone())),
            Open::Serving(_)
            | Open::Preparing(_)
            | Open::Served(ServedCall::Supervisor(_))
            | Open::Delegated
            | Open::WritingPlan(_)
            | Open::Accepting(_)
            | Open::Looking(_) => false,
        });
        withdrawn
    }

    /// Ends what a plan's approval allowed of servers that may do what the user takes back.
    pub(super) fn take_back_servers(&mut self, change: &Change) {
        let Some(execution) = &mut self.config.execution else { return };
        if !execution.take_back(change) {
            return;
        }
        let (execution, seen) = (execution.clone(), self.seen.clone());
        let is_allowed = |call: &ExternalCall| {
            let judged = seen.judge(&Invocation::External(call.clone()), Position::SUB);
            execution.lists(call) || judged == Verdict::Run
        };
        let ended = self.end_open(SERVER_TAKEN_BACK, |open| match open {
            Open::Served(ServedCall::External(call)) => !is_allowed(call),
            _ => false,
        });
        if ended {
            self.go_on();
        }
    }

    pub(super) fn decide(&self, change: &Change) -> Result<Rights, Unchanged> {
        if !self.config.id.is_top_level() {
            return Err(Unchanged::Refused("those of a sub-agent are fixed for its life".to_owned()));
        }
        let (standing, activity) = (&self.config.standing, self.config.activity);
        match change {
            Change::Rights(change) => standing.change(change, activity),
            Change::Mode(mode) => standing.in_mode(*mode, activity),
        }
    }

    fn apply(&mut self, change: Change, rights: Rights) {
        self.keep_change(&change);
        match change {
            Change::Rights(_) => self.replace_worker(rights),
            Change::Mode(mode) => {
                let standing = &self.config.standing;
                let same_rights = rights == standing.rights.clone().normalised() && !self.replacement.failed;
                self.seen.mode = mode;
                if same_rights {
                    self.mode_changed_alone(mode);
                } else {
                    self.replace_worker_in(rights, Some(mode));
                }
            }
        }
    }

    /// Notes what of a change is no part of the worker's rights.
    pub(super) fn keep_change(&mut self, change: &Change) {
        let standing = &mut self.config.standing;
        match change {
            // What the user took back does not come back with a mode.
            Change::Rights(RightsChange::RemoveWrite { path }) => {
                if let Some(modes) = &mut standing.modes {
                    modes.always.retain(|root| root != path);
                }
            }
            Change::Rights(_) => {}
            Change::Mode(mode) => standing.mode = *mode,
        }
    }

    /// Replaces the worker. With a mode, the replacement is told as a change of the mode too.
    pub(super) fn replace_worker_in(&mut self, rights: Rights, mode: Option<ApprovalMode>) {
        self.replacement.mode = mode.or_else(|| self.replacement.mode.take());
        self.replace_worker(rights);
    }

    /// The same rights, and another answer to what is beyond them: whoever is asked now is not asked any more.
    fn mode_changed_alone(&mut self, mode: ApprovalMode) {
        self.out.log(EventKind::ModeChanged { mode });
        self.conversation.tell_of_rights(mode_context(&self.seen));
        self.withdraw("the approval mode was changed", MODE_CHANGED);
        self.go_on();
    }

    /// From here on calls are judged by the new rights: they will run on the new worker.
    pub(super) fn replace_worker(&mut self, rights: Rights) {
        self.config.standing.rights.clone_from(&rights);
        self.seen = self.config.standing.seen_in(self.seen.tier);
        self.replacement.awaited = true;
        self.withdraw("the rights were changed", &INTERRUPTED.sentence(None));
        // A sub-agent has a worker of its own, and loses of its rights what its parent loses: it goes on.
        self.end_open(INTERRUPTED, |open| !matches!(open, Open::Delegated));
        self.out.push(Effect::ReplaceWorker { rights });
    }

    pub(super) fn on_worker_ready(&mut self, worker: ReadyWorker) {
        self.seen = self.config.standing.seen_in(worker.tier);
        self.beside.begin();
        if !std::mem::take(&mut self.replacement.awaited) {
            return;
        }
        self.replacement.failed = false;
        let mode = self.replacement.mode.take();
        if let Some(mode) = mode {
            self.out.log(EventKind::ModeChanged { mode });
        }
        self.out.log(EventKind::RightsChanged(RightsChanged {
            generation: worker.generation,
            pid: worker.pid,
            rights: self.seen.summary().into(),
            rights_digest: worker.rights_digest,
            ruleset_digest: worker.ruleset_digest,
        }));
        let told = match mode {
            Some(_) => mode_context(&self.seen),
            None if self.config.id.is_top_level() => rights_context(&self.seen),
            None => narrowed_context(&self.seen),
        };
        self.tell_of_rights(told);
    }

    pub(super) fn on_not_replaced(&mut self, reason: &str) {
        if !std::mem::take(&mut self.replacement.awaited) {
            return;
        }
        self.replacement.failed = true;
        let message = format!(
            "the rights were changed, but no worker could be started under them: {reason}; calls fail until they are \
             changed again"
        );
        self.out.notice(NoticeCode::NoWorker, &message);
        self.tell_of_rights(format!("<rights>\nThe user changed your rights, and {message}.\n</rights>"));
    }

    /// The model learns of its rights with the next message, which may be the results that were held back.
    fn tell_of_rights(&mut self, text: String) {
        self.conversation.tell_of_rights(text);
        while let Some(change) = self.replacement.next.pop_front() {
            self.on_change(change);
            if self.replacement.awaited {
                return;
            }
        }
        self.go_on();
    }
}
