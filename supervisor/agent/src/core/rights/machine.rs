//! Current and future access: changes, the replacement of the worker, and approvals for the session.

use std::collections::VecDeque;

use gate::activity::Activity;
use gate::approval::{Scope, SessionApprovals, SessionGrants, Subject};
use gate::judgement::change;
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

pub(in crate::core) struct RightsState {
    /// Current access. Its paths are those outside of the sandbox.
    pub(super) standing: StandingRights,
    /// Current access. Its paths are those that the worker sees.
    pub(super) seen: StandingRights,
    pub(super) replacement: Replacement,
    grants: SessionGrants,
    /// Access after the current turn; `None` if the turn has no access of its own.
    pub(super) access_after: Option<AccessAfter>,
    position: Position,
}

#[derive(Debug, Default)]
pub(super) struct Replacement {
    /// True while a worker with new access is starting.
    awaited: bool,
    /// True if the worker with the current access could not be started.
    failed: bool,
    /// New approval mode, which is logged once the worker has started; `None` if the mode stays.
    mode: Option<ApprovalMode>,
    /// Changes that wait until the worker has started, in order.
    next: VecDeque<Change>,
}

/// Approved access that the user takes back by a change.
pub(in crate::core) struct Withdrawal {
    /// Maximum network access that may stay approved.
    pub(in crate::core) bound: Network,
    /// True if no approval stays valid.
    pub(in crate::core) nothing: bool,
    /// True if the session had approvals that end now.
    pub(in crate::core) revoked: bool,
}

/// The step that follows a change of access.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::core) enum Changed {
    Nothing,
    /// Only the approval mode changes, and open requests end. The text tells the model.
    ModeAlone(String),
    /// A new worker is needed, with this access.
    Worker(Rights),
}

impl RightsState {
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

    pub(in crate::core) const fn seen(&self) -> &StandingRights {
        &self.seen
    }

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

    /// True if the approval mode allows questions to the person.
    pub(in crate::core) fn asks(&self) -> bool {
        permits(self.position, self.seen.mode()).asks()
    }

    pub(in crate::core) const fn is_awaited(&self) -> bool {
        self.replacement.awaited
    }

    /// True if no worker has the current access, because it could not be started.
    pub(in crate::core) const fn has_failed(&self) -> bool {
        self.replacement.failed
    }

    /// Returns the source of an earlier approval that covers an action; `None` if there is none.
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

    /// Returns the access of the one-shot worker for an approved effect, with the paths that this worker sees.
    pub(in crate::core) fn with_grant(&self, grant: &Grant) -> StandingRights {
        self.standing.with_grant(grant).seen_in(self.seen.tier())
    }

    pub(in crate::core) fn restore(&mut self, last: GrantId) {
        self.grants = SessionGrants::after(last);
    }

    /// Stores an approval for the session. Returns a change of the standing access, which the caller makes after the
    /// call because it would interrupt the call. `None` if the access stays.
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

    pub(in crate::core) fn revoke(&mut self, id: GrantId, out: &mut Outbox) {
        if self.grants.revoke(id) {
            out.log(EventKind::GrantRevoked { id });
        } else {
            out.notice(NoticeCode::NoSuchGrant, &format!("no approval of this session has the id {id}"));
        }
    }

    /// Withdraws approvals that a change by the user excludes. Returns `None` if the change cannot exclude approvals.
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

    /// Stores a change and returns `None` if a worker is starting; else returns the change.
    pub(super) fn defer(&mut self, change: Change) -> Option<Change> {
        if self.replacement.awaited {
            self.replacement.next.push_back(change);
            return None;
        }
        Some(change)
    }

    pub(in crate::core) fn take_deferred(&mut self) -> Option<Change> {
        self.replacement.next.pop_front()
    }

    pub(in crate::core) fn decide(&self, change: &Change) -> Result<Rights, Unchanged> {
        if !self.is_top_level() {
            return Err(Unchanged::Refused("the access of a sub-agent cannot be changed".to_owned()));
        }
        match change {
            Change::Rights(change) => change::rights_after(&self.standing, change, self.activity()),
            Change::Mode(mode) => change::to_mode(&self.standing, *mode, self.activity()),
        }
    }

    /// Makes a change. `decided` is the access that results from it. If `withdrawn`, calls or approvals ended because
    /// of the change, and a notice says this even if the access stays the same.
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
                    "calls that were approved with the network were ended, and need a new approval",
                );
                Changed::Nothing
            }
            // The access is the current one already, but no worker has it.
            Err(Unchanged::Same(_)) if self.replacement.failed => {
                Changed::Worker(self.standing.rights().clone())
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
                self.seen.set_mode(*mode);
                if is_same {
                    return Changed::ModeAlone(self.changed_mode(*mode, out));
                }
                self.replacement.mode = Some(*mode);
                Changed::Worker(rights)
            }
        }
    }

    /// True if a worker has this access.
    pub(super) fn has(&self, rights: &Rights) -> bool {
        *rights == self.standing.rights().clone().normalised() && !self.replacement.failed
    }

    /// Sets the mode. Returns the text about it for the model.
    pub(super) fn changed_mode(&mut self, mode: ApprovalMode, out: &mut Outbox) -> String {
        self.seen.set_mode(mode);
        out.log(EventKind::ModeChanged { mode });
        mode_context(&self.seen)
    }

    /// Stores a new mode until the next worker has started. With `None`, a mode that is stored already stays.
    pub(super) fn announce(&mut self, mode: Option<ApprovalMode>) {
        self.replacement.mode = mode.or_else(|| self.replacement.mode.take());
    }

    /// Stores the parts of a change that no worker enforces.
    pub(super) fn keep(&mut self, change: &Change) {
        match change {
            // A write root that the user removed does not come back with another mode.
            Change::Rights(RightsChange::RemoveWrite { path }) => {
                self.standing.forget_root(path);
            }
            Change::Rights(_) => {}
            Change::Mode(mode) => self.standing.set_mode(*mode),
        }
    }

    /// Returns the step after a reduction of the parent's access. `rights` is the access that remains for this agent.
    pub(in crate::core) fn narrow(&self, rights: Rights) -> Changed {
        if rights == *self.standing.rights() { Changed::Nothing } else { Changed::Worker(rights) }
    }

    /// Sets the access, and waits for a worker that has it.
    pub(in crate::core) fn replace(&mut self, rights: Rights) {
        self.standing.set_rights(rights);
        self.seen = self.standing.seen_in(self.seen.tier());
        self.replacement.awaited = true;
    }

    /// Handles the start of a worker. Returns the text for the model about the access; `None` if no worker was awaited.
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

    /// Handles a worker that could not be started. Returns the text for the model; `None` if no worker was awaited.
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
