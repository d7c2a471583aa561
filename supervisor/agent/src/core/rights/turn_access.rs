//! A turn that only reads: its worker writes nothing but the private temp directory, and nothing is approved until it is over.

use gate::Change;
use ipc::rights::{Network, Rights, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::event::NoticeCode;

use super::machine::{Changed, RightsState, ends_approvals};
use crate::core::outbox::Outbox;

/// The access that comes back with the end of a turn that only reads.
#[derive(Debug)]
pub(super) struct AccessAfter {
    rights: Rights,
    mode: ApprovalMode,
    /// Changes of the user during the turn, in order.
    changes: Vec<Change>,
}

/// Told to the model with the message.
const ONLY_READS: &str = "<rights>\nThe user started this turn with a command that only reads: nothing but the temporary \
    directory is writable, and nothing is approved until the turn is over.\n</rights>";

/// The same for a turn without the network.
const ONLY_READS_OFFLINE: &str = "<rights>\nThe user started this turn with a command that only reads: nothing but the temporary \
    directory is writable, the network is off, and nothing is approved until the turn is over.\n</rights>";

impl RightsState {
    /// Has a turn only read, without the network if it is `offline`. Returns the words for the model, and the step that follows.
    pub(in crate::core) fn begin_reading(
        &mut self,
        offline: bool,
        out: &mut Outbox,
    ) -> (&'static str, Changed) {
        let (rights, mode) = (self.standing.rights.clone(), self.standing.mode);
        let mut narrow = rights.clone();
        narrow.write = self.standing.temp.iter().cloned().collect();
        narrow.sockets.clear();
        if offline {
            narrow.net = Network::Off;
        }
        self.access_after = Some(AccessAfter { rights, mode, changes: Vec::new() });
        let told = if offline { ONLY_READS_OFFLINE } else { ONLY_READS };
        (told, self.take_access(narrow.normalised(), ApprovalMode::Deny, out))
    }

    /// Restores the access of before the turn, with the user's changes since.
    pub(in crate::core) fn end_reading(&mut self, out: &mut Outbox) -> Changed {
        let Some(AccessAfter { rights, mode, changes }) = self.access_after.take() else {
            return Changed::Nothing;
        };
        let narrow = std::mem::replace(&mut self.standing.rights, rights);
        self.standing.mode = mode;
        for change in changes {
            match self.decide(&change) {
                Ok(rights) => {
                    self.keep(&change);
                    self.standing.rights = rights;
                }
                Err(unchanged) => out.notice(unchanged.code(), &unchanged.to_string()),
            }
        }
        let mode = std::mem::replace(&mut self.standing.mode, ApprovalMode::Deny);
        let rights = std::mem::replace(&mut self.standing.rights, narrow);
        self.take_access(rights, mode, out)
    }

    /// Forgets the access of before the turn: no worker is started for a session that ends.
    pub(in crate::core) fn end_session(&mut self) {
        self.access_after = None;
    }

    /// Has these rights and this mode in force, with another worker where the rights differ.
    fn take_access(&mut self, rights: Rights, mode: ApprovalMode, out: &mut Outbox) -> Changed {
        let has_changed = std::mem::replace(&mut self.standing.mode, mode) != mode;
        if !self.has(&rights) {
            self.announce(has_changed.then_some(mode));
            return Changed::Worker(rights);
        }
        self.seen.mode = mode;
        if has_changed { Changed::ModeAlone(self.changed_mode(mode, out)) } else { Changed::Nothing }
    }

    /// Takes in the user's change during a turn that only reads. Returns it if it is to be made now: a change that gives access
    /// waits for the turn's end.
    pub(in crate::core) fn during_reading(&mut self, change: Change, out: &mut Outbox) -> Option<Change> {
        let Some(after) = &mut self.access_after else { return Some(change) };
        after.changes.push(change.clone());
        let net = &self.standing.rights.net;
        let takes = match &change {
            Change::Mode(_) => ends_approvals(&change),
            Change::Rights(RightsChange::Network { net: narrower, .. }) => {
                net.covers(narrower) && net != narrower
            }
            Change::Rights(
                RightsChange::AddHosts { .. }
                | RightsChange::AddWrite { .. }
                | RightsChange::RemoveWrite { .. }
                | RightsChange::AddSocket { .. }
                | RightsChange::RemoveSocket { .. },
            ) => false,
        };
        if takes {
            return Some(change);
        }
        let when = "this turn only reads; the change is made when it is over";
        out.notice(NoticeCode::RightsUnchanged, when);
        None
    }
}
