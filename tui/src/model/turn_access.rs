//! Access that an agent has until its turn ends.

use ipc::rights::RightsSummary;
use protocol::approval::ApprovalMode;

use super::{OwnTurn, Session};

/// Access of one turn, and the access to which its end leads back.
#[derive(Clone, Debug)]
pub(crate) struct TurnAccess {
    /// The difference from the access before, in words.
    words: String,
    mode: ApprovalMode,
    rights: RightsSummary,
    /// True once the turn has ended, while the access of before is being restored.
    is_over: bool,
}

impl TurnAccess {
    fn new(words: String, before: &Session) -> Self {
        Self { words, mode: before.mode, rights: before.rights.clone(), is_over: false }
    }

    /// Returns the access of a turn that the person said yes to as a whole.
    fn allowed(access: &protocol::approval::TurnAccess, before: &Session) -> Self {
        let places: Vec<_> = access.write.iter().map(ToString::to_string).collect();
        let words =
            format!("you allowed the whole turn: writes in {}, and the network is off", places.join(", "));
        Self::new(words, before)
    }

    /// Returns the access of a turn that a command of the person starts; `None` if the command narrows nothing.
    pub(crate) fn of(own: &OwnTurn, before: &Session) -> Option<Self> {
        let offline = if own.offline { ", and the network is off" } else { "" };
        let words = format!("/{} only reads: no access can be approved{offline}", own.name);
        own.reads.then(|| Self::new(words, before))
    }

    /// Returns the words while the turn runs.
    pub(crate) fn words(&self) -> Option<&str> {
        (!self.is_over).then_some(self.words.as_str())
    }

    /// True if a change of the mode belongs to the turn: its beginning, which the person has not asked for as a change,
    /// or its end, which restores the mode of before.
    pub(crate) fn explains_mode(&self, mode: ApprovalMode, is_asked_for: bool) -> bool {
        if self.is_over { mode == self.mode } else { !is_asked_for }
    }

    /// True if a change of the rights belongs to the turn.
    pub(crate) fn explains_rights(&self, rights: &RightsSummary) -> bool {
        !self.is_over || *rights == self.rights
    }
}

impl Session {
    /// Begins the access of a turn that the person said yes to as a whole.
    pub(crate) fn allow_turn(&mut self, access: &protocol::approval::TurnAccess) {
        self.turn_allowed = true;
        self.until = Some(TurnAccess::allowed(access, self));
    }

    /// Ends the access of a turn, which is restored by the events that follow.
    pub(crate) const fn end_turn_access(&mut self) {
        self.turn_allowed = false;
        if let Some(until) = &mut self.until {
            until.is_over = true;
        }
    }
}
