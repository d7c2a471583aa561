use std::time::{Duration, Instant};

use super::names::visible;
use crate::engine::driver::Caller;

/// Minimum time between two lines. The guest limits its rate too, but is not trusted to do so.
const PAUSE: Duration = Duration::from_millis(150);

/// Maximum number of lines about one call.
const MOST: u32 = 1000;

/// Maximum number of characters of one line.
const LINE: usize = 200;

/// Lines about the progress of one call. Their rate and number are limited.
pub(super) struct ProgressLines {
    /// Channel to the user; `None` if no front end shows progress.
    caller: Option<Caller>,
    last: Option<Instant>,
    left: u32,
}

impl ProgressLines {
    pub(super) const fn of(caller: Option<Caller>) -> Self {
        Self { caller, last: None, left: MOST }
    }

    /// Shows a text of the server, unless it comes too early after the previous text.
    pub(super) fn show(&mut self, words: &str) {
        if let (Some(line), Some(caller)) = (self.admit(words, Instant::now()), &self.caller) {
            caller.progress(line);
        }
    }

    fn admit(&mut self, words: &str, now: Instant) -> Option<String> {
        if self.left == 0 || self.last.is_some_and(|last| now < last + PAUSE) {
            return None;
        }
        self.left -= 1;
        self.last = Some(now);
        let line = words.lines().next().unwrap_or_default().chars().take(LINE).collect::<String>();
        Some(visible(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_rare_visible_and_few() {
        let mut lines = ProgressLines::of(None);
        let mut now = Instant::now();
        assert_eq!(lines.admit("1 of 3: \u{1b}[2J\nmore", now).as_deref(), Some(r"1 of 3: \u{1b}[2J"));
        assert_eq!(lines.admit("at once", now), None);
        now += PAUSE;
        assert_eq!(lines.admit(&"x".repeat(900), now).map(|line| line.len()), Some(LINE));
        let shown = (0..2 * MOST).filter(|_| {
            now += PAUSE;
            lines.admit("again", now).is_some()
        });
        assert_eq!(shown.count(), MOST as usize - 2);
    }
}
