//! Waiting for conditions in tests. A condition about a closed socket may become true late: another test's forked child
//! has a copy of every socket until it executes its program.

use std::time::{Duration, Instant};

/// Waits for a condition.
///
/// # Panics
///
/// If it does not hold within a minute.
pub(crate) fn comes_true(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_mins(1), "it never came true");
        std::thread::yield_now();
    }
}
