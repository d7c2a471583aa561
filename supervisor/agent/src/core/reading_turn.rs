//! A turn that only reads: its worker writes nothing but the private temp directory, and nothing is approved until it is over.

use gate::Change;
use ipc::rights::{Network, Rights, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::event::{EventKind, NoticeCode};

use super::Agent;
use super::conversation::UserSaid;
use super::rights::ends_approvals;
use super::turn::Phase;
use crate::prompt::mode_context;

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

impl Agent {
    /// Starts a turn that only reads, and has no network if it is `offline`.
    pub(super) fn on_reading_turn(&mut self, said: UserSaid, offline: bool) {
        // A turn that runs already would have to lose its access halfway.
        if !matches!(self.turn.phase(), Phase::Resting | Phase::Closed) {
            let why = "the message was not sent: a turn is running, and this one is to read only";
            return self.out.notice(NoticeCode::CommandNotRun, why);
        }
        if !self.config.id.is_top_level()
            || self.conversation.too_long(&said, &self.seen).is_some()
            || said.is_empty()
        {
            // A sub-agent's access is fixed. The other two start no turn.
            return self.on_user_turn(said);
        }
        if self.turn.phase() == Phase::Resting {
            self.narrow_to_reading(offline);
        }
        self.on_user_turn(said);
    }

    fn narrow_to_reading(&mut self, offline: bool) {
        let standing = &self.config.standing;
        let (rights, mode) = (standing.rights.clone(), standing.mode);
        let mut narrow = rights.clone();
        narrow.write = standing.temp.iter().cloned().collect();
        narrow.sockets.clear();
        if offline {
            narrow.net = Network::Off;
        }
        let narrow = narrow.normalised();
        self.access_after = Some(AccessAfter { rights, mode, changes: Vec::new() });
        let text = if offline { ONLY_READS_OFFLINE } else { ONLY_READS };
        self.conversation.tell_of_rights(text.to_owned());
        self.take_access(narrow, ApprovalMode::Deny);
    }

    /// Restores the access of before the turn, with the user's changes since.
    pub(super) fn end_reading(&mut self) {
        let Some(AccessAfter { rights, mode, changes }) = self.access_after.take() else { return };
        let narrow = std::mem::replace(&mut self.config.standing.rights, rights);
        self.config.standing.mode = mode;
        for change in changes {
            match self.decide(&change) {
                Ok(rights) => {
                    self.keep_change(&change);
                    self.config.standing.rights = rights;
                }
                Err(unchanged) => self.out.notice(unchanged.code(), &unchanged.to_string()),
            }
        }
        let standing = &mut self.config.standing;
        let mode = std::mem::replace(&mut standing.mode, ApprovalMode::Deny);
        let rights = std::mem::replace(&mut standing.rights, narrow);
        self.take_access(rights, mode);
    }

    /// Has these rights and this mode in force, with another worker where the rights differ.
    fn take_access(&mut self, rights: Rights, mode: ApprovalMode) {
        let standing = &mut self.config.standing;
        let has_changed = std::mem::replace(&mut standing.mode, mode) != mode;
        let same_rights = rights == standing.rights.clone().normalised() && !self.replacement.has_failed();
        if !same_rights {
            return self.replace_worker_in(rights, has_changed.then_some(mode));
        }
        self.seen.mode = mode;
        if has_changed {
            self.out.log(EventKind::ModeChanged { mode });
            self.conversation.tell_of_rights(mode_context(&self.seen));
        }
    }

    /// Takes in the user's change during a turn that only reads; returns it if it is to be made now. A change that gives access waits
    /// for the turn's end.
    pub(super) fn during_reading(&mut self, change: Change) -> Option<Change> {
        let Some(after) = &mut self.access_after else { return Some(change) };
        after.changes.push(change.clone());
        let takes = match &change {
            Change::Mode(_) => ends_approvals(&change),
            Change::Rights(RightsChange::Network { net, .. }) => {
                self.config.standing.rights.net.covers(net) && self.config.standing.rights.net != *net
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
        self.out.notice(NoticeCode::RightsUnchanged, when);
        None
    }
}
