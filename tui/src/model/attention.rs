//! Detection of whether the person is looking at the terminal.

use std::time::Duration;

use crate::moment::UiTime;

/// Time without a key after which the person counts as absent, for terminals that do not report focus.
const AWAY: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attention {
    focused: Option<bool>,
    last_key: UiTime,
    called: bool,
}

impl Attention {
    /// Records that the terminal got or lost the focus. True if an open notification must be removed.
    pub(crate) const fn focus(&mut self, at: UiTime, focused: bool) -> bool {
        self.focused = Some(focused);
        focused && self.key(at)
    }

    pub(crate) const fn key(&mut self, at: UiTime) -> bool {
        self.last_key = at;
        std::mem::replace(&mut self.called, false)
    }

    /// Requests a notification. True if the person is absent and none is open yet.
    pub(crate) fn call(&mut self, now: UiTime) -> bool {
        let away = match self.focused {
            Some(focused) => !focused,
            None => now.since(self.last_key) >= AWAY,
        };
        self.called |= away;
        away
    }
}
