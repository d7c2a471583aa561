//! Detection of whether the person is at the terminal, to decide if a notification is needed.

use std::time::Duration;

use crate::moment::UiTime;

/// Time without a key press after which the person counts as absent, if the terminal does not report focus.
const AWAY: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attention {
    focused: Option<bool>,
    last_key: UiTime,
    called: bool,
}

impl Attention {
    /// Records that the terminal got or lost the focus. True if a notification is open and must be removed.
    pub(crate) const fn focus(&mut self, at: UiTime, focused: bool) -> bool {
        self.focused = Some(focused);
        focused && self.key(at)
    }

    pub(crate) const fn key(&mut self, at: UiTime) -> bool {
        self.last_key = at;
        std::mem::replace(&mut self.called, false)
    }

    /// Requests a notification. True if the caller must notify: the person is absent, and no notification is open.
    pub(crate) fn call(&mut self, now: UiTime) -> bool {
        let away = match self.focused {
            Some(focused) => !focused,
            None => now.since(self.last_key) >= AWAY,
        };
        self.called |= away;
        away
    }
}
