//! Protection against keys that were pressed before a person could read an approval request.

use std::time::Duration;

use crate::moment::UiTime;

/// Time during which a request must be visible, without any key, before a key counts as an answer.
pub(super) const QUIET: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guard {
    drawn: Option<UiTime>,
    last_key: UiTime,
    open: bool,
}

impl Guard {
    pub(crate) fn drawn(&mut self, at: UiTime) {
        self.drawn.get_or_insert(at);
    }

    /// Records a key. True if it counts as an answer; a key that comes too early restarts the time [`QUIET`].
    pub(crate) fn key(&mut self, at: UiTime) -> bool {
        self.open = self.open || self.opens_at().is_some_and(|opens| at >= opens);
        self.last_key = self.last_key.max(at);
        self.open
    }

    /// Ignores keys until none has been pressed for [`QUIET`].
    pub(crate) fn wait_again(&mut self, at: UiTime) {
        self.open = false;
        self.last_key = self.last_key.max(at);
    }

    pub(crate) fn is_open(&self, now: UiTime) -> bool {
        self.open || self.opens_at().is_some_and(|opens| now >= opens)
    }

    pub(crate) fn opens_at(&self) -> Option<UiTime> {
        self.drawn.map(|drawn| drawn.max(self.last_key).plus(QUIET))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> UiTime {
        UiTime::from_millis(millis)
    }

    #[test]
    fn no_key_counts_before_it_was_drawn() {
        let mut guard = Guard::default();
        assert!(!guard.key(ms(100_000)));
        guard.drawn(ms(200_000));
        assert!(!guard.key(ms(150_000)), "read before, delivered after");
        assert!(guard.key(ms(200_300)));
    }

    #[test]
    fn no_key_counts_until_nothing_was_pressed_for_a_while() {
        let mut guard = Guard::default();
        guard.drawn(ms(1000));
        assert!(!guard.key(ms(1299)));
        assert!(!guard.key(ms(1500)) && !guard.key(ms(1799)));
        assert!(guard.key(ms(2099)) && guard.key(ms(2100)));
    }
}
