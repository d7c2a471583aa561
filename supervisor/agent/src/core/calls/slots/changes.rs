//! Changes of files that share a request. Each is prepared, shown to the person, and if approved, carried out.

use gate::approval::SubjectChange;
use ipc::id::CallId;

use super::{CallState, Open, Slots};

/// The progress of a change that shares a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core::calls) enum Stage {
    /// Prepared, while other changes of the request are still being prepared.
    Gathered,
    /// Shown in a request that names another call.
    Asked,
    /// Approved, and waiting for the changes before it.
    Approved,
}

impl Slots {
    /// Records that a call is a change which shares a request and is at this stage.
    pub(in crate::core::calls) fn put(&mut self, call: CallId, change: SubjectChange, stage: Stage) {
        self.set(call, CallState::Together(Box::new(change), stage));
    }

    /// Returns the changes at this stage, in the order of the calls.
    pub(in crate::core::calls) fn changes(&self, wanted: Stage) -> Vec<(CallId, SubjectChange)> {
        let changes = self.slots.iter().filter_map(|slot| match &slot.state {
            CallState::Together(change, stage) if *stage == wanted => Some((slot.call, (**change).clone())),
            _ => None,
        });
        changes.collect()
    }

    /// Returns the calls of all changes that share a request.
    pub(in crate::core::calls) fn all_together(&self) -> Vec<CallId> {
        self.ids(|state| matches!(state, CallState::Together(..)))
    }

    /// True while a prepared change waits until the other changes of the request are prepared.
    pub(in crate::core::calls) fn is_gathering(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, CallState::Together(_, Stage::Gathered)))
    }

    /// True while a change is prepared.
    pub(in crate::core::calls) fn is_preparing(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, CallState::Open(Open::Preparing(_))))
    }

    /// Resets a call, so that it begins again after the calls before it.
    pub(in crate::core::calls) fn put_back(&mut self, call: CallId) {
        self.set(call, CallState::Waiting);
    }

    /// Records that the log has the start of a call. Returns true if it was recorded before.
    pub(in crate::core::calls) fn note_logged(&mut self, call: CallId) -> bool {
        let slot = self.slots.iter_mut().find(|slot| slot.call == call);
        slot.is_some_and(|slot| std::mem::replace(&mut slot.logged, true))
    }

    /// Returns the calls directly after `call` that have not begun.
    pub(in crate::core::calls) fn waiting_after(&self, call: CallId) -> impl Iterator<Item = CallId> {
        let after = self.slots.iter().skip_while(move |slot| slot.call != call).skip(1);
        after.take_while(|slot| matches!(slot.state, CallState::Waiting)).map(|slot| slot.call)
    }
}
