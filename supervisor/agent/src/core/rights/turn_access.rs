//! Access for one turn: less access in a turn that only reads, more in a turn that the user allowed as a whole.
//!
//! The end of the turn restores the previous access, by another worker. If the user changes the access during the turn,
//! the change applies to the previous access. A reduction applies to the turn as well, at once.

use gate::approval::{Subject, allowed_in_turn, turn_access};
use gate::judgement::change;
use gate::modes::permits;
use gate::{Ask, Change};
use ipc::id::CallId;
use ipc::rights::{Network, Rights, RightsChange};
use protocol::approval::{ApprovalMode, TurnAccess};
use protocol::event::{EventKind, NoticeCode, TurnAllowanceEnd, TurnAllowed};

use super::machine::{Changed, RightsState};
use crate::core::change::ends_approvals;
use crate::core::outbox::Outbox;

#[derive(Debug)]
pub(super) struct AccessAfter {
    kind: TurnKind,
    rights: Rights,
    mode: ApprovalMode,
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnKind {
    /// The worker can write only in the private temp directory, and nothing is approved.
    OnlyReads,
    /// The user approved everything in the project: the worker can write there, and has no network.
    Allowed,
}

/// Time at which a user's change takes effect in a turn with access of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum Due {
    Now,
    /// The change takes effect at once, and ends the access of the turn.
    EndsAllowance,
    /// The change takes effect after the turn. Until then it only limits what can be approved.
    AfterTurn,
}

/// Text for the model with the first message of a turn that only reads.
const ONLY_READS: &str = "<rights>\nThe user started this turn with a command that only reads: nothing but the temporary \
    directory is writable, and nothing is approved until the turn is over.\n</rights>";

/// Text for the model with the first message of a turn that only reads and has no network.
const ONLY_READS_OFFLINE: &str = "<rights>\nThe user started this turn with a command that only reads: nothing but the temporary \
    directory is writable, the network is off, and nothing is approved until the turn is over.\n</rights>";

/// Text for the model with the next results, after the user has approved everything in the turn.
const ALLOWED: &str = "<rights>\nThe user said yes to everything in the project until this turn ends: changes in the project are \
    made without asking, and the network is off. What is beyond the rights is asked about as before.\n</rights>";

impl RightsState {
    /// Begins a turn that only reads, without the network if `offline`. Returns the text for the model, and the next
    /// step.
    pub(in crate::core) fn begin_reading(
        &mut self,
        offline: bool,
        out: &mut Outbox,
    ) -> (&'static str, Changed) {
        let mut narrow = self.standing.rights().clone();
        narrow.write = self.standing.temp().into_iter().cloned().collect();
        narrow.sockets.clear();
        if offline {
            narrow.net = Network::Off;
        }
        self.keep_until_end(TurnKind::OnlyReads);
        let told = if offline { ONLY_READS_OFFLINE } else { ONLY_READS };
        (told, self.take_access(narrow.normalised(), ApprovalMode::Deny, out))
    }

    /// Returns the access for an approval of everything in the turn; `None` if this action would need an approval even
    /// then.
    pub(in crate::core) fn offered_turn(&self, ask: &Ask, subject: &Subject) -> Option<TurnAccess> {
        if self.access_after.is_some() || self.is_awaited() {
            return None;
        }
        let rights = change::for_turn(&self.standing, self.position())?;
        if rights == self.standing.rights().clone().normalised() {
            return None;
        }
        let host = self.standing.clone().with_rights(rights);
        let seen = host.seen_in(self.seen.tier());
        allowed_in_turn(&seen, &host, ask, subject).then(|| turn_access(&self.seen, &seen))
    }

    /// Begins the access that the request showed, for the rest of the turn. Returns the text for the model, and the
    /// next step; `None` if the approval mode does not permit this access.
    pub(in crate::core) fn begin_allowed(
        &mut self,
        call: CallId,
        access: TurnAccess,
        out: &mut Outbox,
    ) -> Option<(&'static str, Changed)> {
        let rights = change::for_turn(&self.standing, self.position())?;
        out.log(EventKind::TurnAllowed(TurnAllowed { call, access }));
        self.keep_until_end(TurnKind::Allowed);
        Some((ALLOWED, Changed::Worker(rights)))
    }

    fn keep_until_end(&mut self, kind: TurnKind) {
        let (rights, mode) = (self.standing.rights().clone(), self.standing.mode());
        self.access_after = Some(AccessAfter { kind, rights, mode, changes: Vec::new() });
    }

    /// True if the user allowed the turn as a whole and the action needs the network, which is off in such a turn.
    pub(super) fn is_offline_turn(&self, ask: &Ask) -> bool {
        let is_allowed = self.access_after.as_ref().is_some_and(|after| after.kind == TurnKind::Allowed);
        is_allowed && ask.grant.net.reaches_out()
    }

    /// Ends the access of the turn: restores the previous access, with the user's changes since then.
    pub(in crate::core) fn end_turn(&mut self, cause: TurnAllowanceEnd, out: &mut Outbox) -> Changed {
        let Some(AccessAfter { kind, rights, mode, changes }) = self.access_after.take() else {
            return Changed::Nothing;
        };
        if kind == TurnKind::Allowed {
            out.log(EventKind::TurnAllowanceEnded { cause });
        }
        let (of_turn, mode_of_turn) = (self.standing.rights().clone(), self.standing.mode());
        self.standing.set_rights(rights);
        self.standing.set_mode(mode);
        for change in changes {
            match self.decide(&change) {
                Ok(rights) => {
                    self.keep(&change);
                    self.standing.set_rights(rights);
                }
                Err(unchanged) => out.notice(unchanged.code(), &unchanged.to_string()),
            }
        }
        let (rights, mode) = (self.standing.rights().clone(), self.standing.mode());
        self.standing.set_rights(of_turn);
        self.standing.set_mode(mode_of_turn);
        self.take_access(rights, mode, out)
    }

    /// Drops the previous access, so that no worker starts for a session that ends.
    pub(in crate::core) fn end_session(&mut self) {
        self.access_after = None;
    }

    /// Sets access and mode. Another worker is needed if the access differs.
    fn take_access(&mut self, rights: Rights, mode: ApprovalMode, out: &mut Outbox) -> Changed {
        let has_changed = self.standing.mode() != mode;
        self.standing.set_mode(mode);
        if !self.has(&rights) {
            self.announce(has_changed.then_some(mode));
            return Changed::Worker(rights);
        }
        self.seen.set_mode(mode);
        if has_changed { Changed::ModeAlone(self.changed_mode(mode, out)) } else { Changed::Nothing }
    }

    /// Returns a change and the way in which it takes effect, or `None` if the change waits for a worker or for the end
    /// of the turn. In a turn with access of its own, an increase of access waits for the end of the turn.
    pub(in crate::core) fn due(&mut self, change: Change, out: &mut Outbox) -> Option<(Change, Due)> {
        let Some(after) = &mut self.access_after else { return self.due_now(change) };
        let (kind, mode_after) = (after.kind, after.mode);
        // The mode that the end of the turn restores is no change.
        if change != Change::Mode(mode_after) {
            after.changes.push(change.clone());
        }
        if kind == TurnKind::Allowed && self.takes_yes_back(&change) {
            return Some((change, Due::EndsAllowance));
        }
        if self.takes(&change) {
            return self.due_now(change);
        }
        let why = match kind {
            TurnKind::Allowed => "you allowed everything in this turn, except the network",
            TurnKind::OnlyReads => "this turn only reads",
        };
        out.notice(NoticeCode::RightsUnchanged, &format!("{why}; the change is made when the turn is over"));
        (kind == TurnKind::Allowed).then_some((change, Due::AfterTurn))
    }

    fn due_now(&mut self, change: Change) -> Option<(Change, Due)> {
        self.defer(change).map(|change| (change, Due::Now))
    }

    /// True if the change is to a mode in which the project is not writable. Such a change ends the turn's own access.
    fn takes_yes_back(&self, change: &Change) -> bool {
        match change {
            Change::Mode(mode) => !permits(self.position(), *mode).writes_project(),
            Change::Rights(_) => false,
        }
    }

    /// True if a change reduces the access of the turn.
    fn takes(&self, change: &Change) -> bool {
        let Rights { net, write, sockets, .. } = self.standing.rights();
        match change {
            Change::Mode(_) => ends_approvals(change),
            Change::Rights(RightsChange::Network { net: narrower, .. }) => {
                net.covers(narrower) && net != narrower
            }
            Change::Rights(RightsChange::RemoveWrite { path }) => write.contains(path),
            Change::Rights(RightsChange::RemoveSocket { path }) => sockets.contains(path),
            Change::Rights(
                RightsChange::AddHosts { .. }
                | RightsChange::AddWrite { .. }
                | RightsChange::AddSocket { .. },
            ) => false,
        }
    }
}
