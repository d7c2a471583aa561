//! The rights as they are and as they will be: changes, the worker that replaces another, and approvals for the
//! session.

use std::collections::VecDeque;

use gate::activity::Activity;
use gate::approval::{Scope, SessionApprovals, SessionGrants, Subject};
use gate::modes::{Position, Rank, permits};
use gate::{Ask, Change, StandingRights, Unchanged};
use ipc::id::GrantId;
use ipc::rights::{Grant, Network, Rights, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::event::{DecidedBy, EventKind, NoticeCode, RightsChanged};

use super::turn_access::AccessAfter;
use crate::core::change::ends_approvals;
use crate::core::outbox::Outbox;
use crate::core::{Effect, ReadyWorker};
use crate::prompt::{mode_context, narrowed_context, rights_context};

/// The rights of one agent.
pub(in crate::core) struct RightsState {
    /// The standing rights, with the host's own paths.
    pub(super) standing: StandingRights,
    /// The same as the worker sees them.
    pub(super) seen: StandingRights,
    pub(super) replacement: Replacement,
    grants: SessionGrants,
    /// The access after the present turn, if that turn has an access of its own.
    pub(super) access_after: Option<AccessAfter>,
    position: Position,
}

/// The worker that replaces another.
#[derive(Debug, Default)]
pub(super) struct Replacement {
    /// A worker with new rights is on its way.
    awaited: bool,
    /// True if the last one did not start: there is no worker.
    failed: bool,
    /// The mode that the worker on its way is for, where that is another.
    mode: Option<ApprovalMode>,
    /// Changes that came meanwhile, in order.
    next: VecDeque<Change>,
}

/// Approved access that the user takes back with a change.
pub(in crate::core) struct Withdrawal {
    /// The network access that may stay approved.
    pub(in crate::core) bound: Network,
    /// True if nothing stays approved.
    pub(in crate::core) nothing: bool,
    /// True if the session had such approvals.
    pub(in crate::core) revoked: bool,
}

/// The step after a change.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::core) enum Changed {
    /// The rights are what they were.
    Nothing,
    /// The mode alone is another: whoever is asked now is not asked any more. The model is told this.
    ModeAlone(String),
    /// Another worker has to have these rights.
    Worker(Rights),
}

impl RightsState {
    /// The state of an agent at this position with these rights.
    pub(in crate::core) fn new(standing: StandingRights, position: Position) -> Self {
        Self {
            seen: standing.clone(),
            standing,
            replacement: Replacement::default(),
            grants: SessionGrants::default(),
            access_after: None,
            position,
        }
    }

    /// The rights as the worker sees them.
    pub(in crate::core) const fn seen(&self) -> &StandingRights {
        &self.seen
    }

    /// The rights with the host's own paths.
    pub(in crate::core) const fn standing(&self) -> &StandingRights {
        &self.standing
    }

    pub(in crate::core) const fn grants(&self) -> &SessionGrants {
        &self.grants
    }

    pub(in crate::core) const fn position(&self) -> Position {
        self.position
    }

    pub(in crate::core) const fn activity(&self) -> Activity {
        self.position.activity
    }

    pub(in crate::core) fn is_top_level(&self) -> bool {
        self.position.rank == Rank::Top
    }

    /// True if somebody may be asked.
    pub(in crate::core) fn asks(&self) -> bool {
        permits(self.position, self.seen.mode).asks()
    }

    /// True while a worker with new rights is on its way.
    pub(in crate::core) const fn is_awaited(&self) -> bool {
        self.replacement.awaited
    }

    /// True if there is no worker under the present rights.
    pub(in crate::core) const fn has_failed(&self) -> bool {
        self.replacement.failed
    }

    /// Returns the source of an earlier approval that covers a call.
    pub(in crate::core) fn approved_before(
        &self,
        subject: &Subject,
        ask: &Ask,
        preapproved: &[Vec<String>],
    ) -> Option<DecidedBy> {
        if self.is_offline_turn(ask) {
            return None;
        }
        self.grants.approve(subject, ask, &self.seen, preapproved)
    }

    /// Returns the rights of a worker that carries out an approved effect, as it sees them.
    pub(in crate::core) fn with_grant(&self, grant: &Grant) -> StandingRights {
        self.standing.with_grant(grant).seen_in(self.seen.tier)
    }

    /// Begins with approvals of a session whose last one had this id.
    pub(in crate::core) fn restore(&mut self, last: GrantId) {
        self.grants = SessionGrants::after(last);
    }

    /// Keeps an approval for the session. A change of the standing rights is returned: it waits until the call was
    /// carried out under the old ones, since its own approval must not interrupt it.
    pub(in crate::core) fn remember(
        &mut self,
        scope: Scope,
        grant: &Grant,
        out: &mut Outbox,
    ) -> Option<RightsChange> {
        match scope {
            Scope::Remembered(covered) => {
                for covered in covered {
                    let listed = self.grants.add(SessionApprovals { covered, grant: grant.clone() });
                    out.log(EventKind::GrantAdded(listed));
                }
                None
            }
            Scope::Kept { setting, covered } => {
                out.push(Effect::Keep(setting));
                self.remember(Scope::Remembered(covered), grant, out)
            }
            Scope::Standing(change) => Some(change),
        }
    }

    /// Takes an approval for the session back.
    pub(in crate::core) fn revoke(&mut self, id: GrantId, out: &mut Outbox) {
        if self.grants.revoke(id) {
            out.log(EventKind::GrantRevoked { id });
        } else {
            out.notice(NoticeCode::NoSuchGrant, &format!("nothing is approved for the session as {id}"));
        }
    }

    /// Takes approvals for the session back that a change of the user bounds. Nothing if it bounds none.
    pub(in crate::core) fn withdraw(&mut self, change: &Change, out: &mut Outbox) -> Option<Withdrawal> {
        let nothing = ends_approvals(change);
        let bound = match change {
            Change::Rights(change) => change.network_bound(),
            Change::Mode(_) => nothing.then_some(&Network::Off),
        }?;
        let revoked = self.grants.revoke_network(bound);
        let withdrawal = Withdrawal { bound: bound.clone(), nothing, revoked: !revoked.is_empty() };
        for id in revoked {
            out.log(EventKind::GrantRevoked { id });
        }
        Some(withdrawal)
    }

    /// Keeps a change for later if a worker is on its way; else returns it.
    pub(super) fn defer(&mut self, change: Change) -> Option<Change> {
        if self.replacement.awaited {
            self.replacement.next.push_back(change);
            return None;
        }
        Some(change)
    }

    /// Returns the first change that was deferred.
    pub(in crate::core) fn take_deferred(&mut self) -> Option<Change> {
        self.replacement.next.pop_front()
    }

    /// Decides which rights follow from a change.
    pub(in crate::core) fn decide(&self, change: &Change) -> Result<Rights, Unchanged> {
        if !self.is_top_level() {
            return Err(Unchanged::Refused("those of a sub-agent are fixed for its life".to_owned()));
        }
        match change {
            Change::Rights(change) => self.standing.change(change, self.activity()),
            Change::Mode(mode) => self.standing.in_mode(*mode, self.activity()),
        }
    }

    /// Makes the change, whose result `decided` has. `withdrawn` is true if calls or approvals of the user ended for it: then
    /// they are told, even if the rights stay the same.
    pub(in crate::core) fn make(
        &mut self,
        change: &Change,
        decided: Result<Rights, Unchanged>,
        withdrawn: bool,
        out: &mut Outbox,
    ) -> Changed {
        match decided {
            Ok(rights) => self.apply(change, rights, out),
            Err(Unchanged::Same(_)) if withdrawn && !self.replacement.failed => {
                out.notice(
                    NoticeCode::ApprovalsWithdrawn,
                    "what was approved with the network was ended, and is asked for again",
                );
                Changed::Nothing
            }
            // The rights are those already, but nobody has them.
            Err(Unchanged::Same(_)) if self.replacement.failed => {
                Changed::Worker(self.standing.rights.clone())
            }
            Err(unchanged) => {
                out.notice(unchanged.code(), &unchanged.to_string());
                Changed::Nothing
            }
        }
    }

    fn apply(&mut self, change: &Change, rights: Rights, out: &mut Outbox) -> Changed {
        self.keep(change);
        match change {
            Change::Rights(_) => Changed::Worker(rights),
            Change::Mode(mode) => {
                let is_same = self.has(&rights);
                self.seen.mode = *mode;
                if is_same {
                    return Changed::ModeAlone(self.changed_mode(*mode, out));
                }
                self.replacement.mode = Some(*mode);
                Changed::Worker(rights)
            }
        }
    }

    /// True if there is a worker that has these rights.
    pub(super) fn has(&self, rights: &Rights) -> bool {
        *rights == self.standing.rights.clone().normalised() && !self.replacement.failed
    }

    /// Notes a change of the mode. Returns the words for the model.
    pub(super) fn changed_mode(&mut self, mode: ApprovalMode, out: &mut Outbox) -> String {
        self.seen.mode = mode;
        out.log(EventKind::ModeChanged { mode });
        mode_context(&self.seen)
    }

    /// Has the next worker told as a change of the mode too.
    pub(super) fn announce(&mut self, mode: Option<ApprovalMode>) {
        self.replacement.mode = mode.or_else(|| self.replacement.mode.take());
    }

    /// Notes what of a change is no part of the worker's rights.
    pub(super) fn keep(&mut self, change: &Change) {
        match change {
            // What the user took back does not come back with a mode.
            Change::Rights(RightsChange::RemoveWrite { path }) => {
                if let Some(modes) = &mut self.standing.modes {
                    modes.always.retain(|root| root != path);
                }
            }
            Change::Rights(_) => {}
            Change::Mode(mode) => self.standing.mode = *mode,
        }
    }

    /// Takes in that the rights of an agent above this one became less, and what is left of its own.
    pub(in crate::core) fn narrow(&self, rights: Rights) -> Changed {
        if rights == self.standing.rights { Changed::Nothing } else { Changed::Worker(rights) }
    }

    /// Has these rights from here on, and waits for a worker that has them.
    pub(in crate::core) fn replace(&mut self, rights: Rights) {
        self.standing.rights = rights;
        self.seen = self.standing.seen_in(self.seen.tier);
        self.replacement.awaited = true;
    }

    /// Takes in that a worker is ready. Returns the words for the model, if that worker has other rights than the last.
    pub(in crate::core) fn on_worker_ready(
        &mut self,
        worker: ReadyWorker,
        out: &mut Outbox,
    ) -> Option<String> {
        self.seen = self.standing.seen_in(worker.tier);
        if !std::mem::take(&mut self.replacement.awaited) {
            return None;
        }
        self.replacement.failed = false;
        let mode = self.replacement.mode.take();
        if let Some(mode) = mode {
            out.log(EventKind::ModeChanged { mode });
        }
        out.log(EventKind::RightsChanged(RightsChanged {
            generation: worker.generation,
            pid: worker.pid,
            rights: self.seen.summary().into(),
            rights_digest: worker.rights_digest,
            ruleset_digest: worker.ruleset_digest,
        }));
        Some(match mode {
            Some(_) => mode_context(&self.seen),
            None if self.is_top_level() => rights_context(&self.seen),
            None => narrowed_context(&self.seen),
        })
    }

    /// Takes in that no worker has the new rights. Returns the words for the model.
    pub(in crate::core) fn on_not_replaced(&mut self, reason: &str, out: &mut Outbox) -> Option<String> {
        if !std::mem::take(&mut self.replacement.awaited) {
            return None;
        }
        self.replacement.failed = true;
        let message = format!(
            "the access was changed, but no worker could be started with it: {reason}; calls fail until the access \
             is changed again"
        );
        out.notice(NoticeCode::NoWorker, &message);
        Some(format!("<rights>\nThe user changed your rights, and {message}.\n</rights>"))
    }
}
