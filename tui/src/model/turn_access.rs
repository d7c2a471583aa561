//! Access that an agent has until its turn ends.

use ipc::rights::RightsSummary;
use protocol::approval::ApprovalMode;

use super::{OwnTurn, Session};

/// Access that an agent has only during the current turn, and the previous access, which is restored after the turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnAccess {
    /// Difference from the previous access, in words.
    words: String,
    mode: ApprovalMode,
    rights: RightsSummary,
    /// True if the turn has ended, but its previous access is not restored yet.
    is_over: bool,
}

impl TurnAccess {
    fn new(words: String, before: &Session) -> Self {
        Self { words, mode: before.mode, rights: before.rights.clone(), is_over: false }
    }

    fn allowed(access: &protocol::approval::TurnAccess, before: &Session) -> Self {
        let places: Vec<_> = access.write.iter().map(ToString::to_string).collect();
        let words =
            format!("you allowed the whole turn: writes in {}, and the network is off", places.join(", "));
        Self::new(words, before)
    }

    /// Returns the access for a turn that a custom command starts; `None` if the command does not change the access.
    pub(crate) fn of(own: &OwnTurn, before: &Session) -> Option<Self> {
        let offline = if own.offline { ", and the network is off" } else { "" };
        let words = format!("/{} only reads: no access can be approved{offline}", own.name);
        own.reads.then(|| Self::new(words, before))
    }

    pub(crate) fn words(&self) -> Option<&str> {
        (!self.is_over).then_some(self.words.as_str())
    }

    /// True if a change to `mode` needs no report: the turn's start made it, or the turn's end restores the mode.
    pub(crate) fn explains_mode(&self, mode: ApprovalMode, is_asked_for: bool) -> bool {
        if self.is_over { mode == self.mode } else { !is_asked_for }
    }

    pub(crate) fn explains_rights(&self, rights: &RightsSummary) -> bool {
        !self.is_over || *rights == self.rights
    }
}

impl Session {
    /// Records that the person has allowed all requests of the turn.
    pub(crate) fn allow_turn(&mut self, access: &protocol::approval::TurnAccess) {
        self.turn_allowed = true;
        self.until = Some(TurnAccess::allowed(access, self));
    }

    pub(crate) const fn end_turn_access(&mut self) {
        self.turn_allowed = false;
        if let Some(until) = &mut self.until {
            until.is_over = true;
        }
    }
}
