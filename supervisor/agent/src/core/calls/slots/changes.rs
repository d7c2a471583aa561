//! Changes of files that are asked about together: prepared, asked about, or approved and waiting for their turn.

use gate::approval::SubjectChange;
use ipc::id::CallId;

use super::{CallState, Open, Slots};

/// The progress of a change that is asked about together with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core::calls) enum Stage {
    /// It is prepared; others are not yet.
    Gathered,
    /// Another call of the reply asks for it.
    Asked,
    /// It is approved, and carried out when the changes before it are.
    Approved,
}

impl Slots {
    /// Puts a call among those that are asked about together.
    pub(in crate::core::calls) fn put(&mut self, call: CallId, change: SubjectChange, stage: Stage) {
        self.set(call, CallState::Together(Box::new(change), stage));
    }

    /// The changes that have come so far, in the order of the calls.
    pub(in crate::core::calls) fn changes(&self, wanted: Stage) -> Vec<(CallId, SubjectChange)> {
        let changes = self.slots.iter().filter_map(|slot| match &slot.state {
            CallState::Together(change, stage) if *stage == wanted => Some((slot.call, (**change).clone())),
            _ => None,
        });
        changes.collect()
    }

    /// All changes that are asked about together, and their calls.
    pub(in crate::core::calls) fn all_together(&self) -> Vec<CallId> {
        self.ids(|state| matches!(state, CallState::Together(..)))
    }

    /// True while changes are prepared that are to be asked about together.
    pub(in crate::core::calls) fn is_gathering(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, CallState::Together(_, Stage::Gathered)))
    }

    /// True while a change is prepared.
    pub(in crate::core::calls) fn is_preparing(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, CallState::Open(Open::Preparing(_))))
    }

    /// Has a call begin again when it is its turn.
    pub(in crate::core::calls) fn put_back(&mut self, call: CallId) {
        self.set(call, CallState::Waiting);
    }

    /// Notes that the log has the beginning of a call; true if it had it already.
    pub(in crate::core::calls) fn note_logged(&mut self, call: CallId) -> bool {
        let slot = self.slots.iter_mut().find(|slot| slot.call == call);
        slot.is_some_and(|slot| std::mem::replace(&mut slot.logged, true))
    }

    /// The calls that follow one, as long as they have not begun.
    pub(in crate::core::calls) fn waiting_after(&self, call: CallId) -> impl Iterator<Item = CallId> {
        let after = self.slots.iter().skip_while(move |slot| slot.call != call).skip(1);
        after.take_while(|slot| matches!(slot.state, CallState::Waiting)).map(|slot| slot.call)
    }
}
