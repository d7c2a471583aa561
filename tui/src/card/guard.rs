//! When keys begin to count: never before a person can have read what they answer.

use std::time::Duration;

use crate::moment::UiTime;

/// Minimum time that a request is on the screen without a key press before a key answers it: a person who is
/// typing when it appears keeps typing for a moment.
const QUIET: Duration = Duration::from_millis(300);

/// Protection against keys pressed by accident.
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

    /// Handles a key read at a moment; returns true if it counts. A key that does not count delays the
    /// others.
    pub(crate) fn key(&mut self, at: UiTime) -> bool {
        self.open = self.open || self.opens_at().is_some_and(|opens| at >= opens);
        self.last_key = self.last_key.max(at);
        self.open
    }

    /// Keys count again when nothing was pressed for a while.
    pub(crate) fn wait_again(&mut self, at: UiTime) {
        self.open = false;
        self.last_key = self.last_key.max(at);
    }

    /// True if a key would count.
    pub(crate) fn is_open(&self, now: UiTime) -> bool {
        self.open || self.opens_at().is_some_and(|opens| now >= opens)
    }

    /// When keys begin to count, if no more are pressed; unknown while it was not drawn.
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
