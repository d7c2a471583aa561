//! Waits in tests for conditions that other tests of the same process may delay: a child of theirs that has
//! been forked, and has not executed yet, has every socket open that was closed here.

use std::time::{Duration, Instant};

/// Waits until something is so.
///
/// # Panics
///
/// Where it is not within a minute.
pub(crate) fn comes_true(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_mins(1), "it never came true");
        std::thread::yield_now();
    }
}
