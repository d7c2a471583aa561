//! The person's attention to the terminal.

use std::time::Duration;

use crate::moment::UiTime;

/// Time without a key after which the user may be away, where the terminal reports no focus.
const AWAY: Duration = Duration::from_secs(30);

/// The person's attention to the terminal, and the call for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attention {
    /// True if the terminal has the focus, as it said last.
    focused: Option<bool>,
    last_key: UiTime,
    called: bool,
}

impl Attention {
    /// The terminal got the focus, or lost it; true if that ends a call.
    pub(crate) const fn focus(&mut self, at: UiTime, focused: bool) -> bool {
        self.focused = Some(focused);
        focused && self.key(at)
    }

    /// A key was pressed; true if that ends a call.
    pub(crate) const fn key(&mut self, at: UiTime) -> bool {
        self.last_key = at;
        std::mem::replace(&mut self.called, false)
    }

    /// Somebody is waited for; true if the person has to be called.
    pub(crate) fn call(&mut self, now: UiTime) -> bool {
        let away = match self.focused {
            Some(focused) => !focused,
            None => now.since(self.last_key) >= AWAY,
        };
        self.called |= away;
        away
    }
}
