use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs `check` on all cases in parallel, and returns the results in any order. Passes the first panic on after all
/// threads have ended.
pub fn side_by_side<C: Send, R: Send>(
    cases: impl IntoIterator<Item = C>,
    check: impl Fn(C) -> R + Sync,
) -> Vec<R> {
    many_at_once(thread::available_parallelism().map_or(1, NonZero::get), cases, check)
}

/// Runs `check` on all cases with this number of threads. For cases that mostly wait.
pub fn many_at_once<C: Send, R: Send>(
    threads: usize,
    cases: impl IntoIterator<Item = C>,
    check: impl Fn(C) -> R + Sync,
) -> Vec<R> {
    let left = Mutex::new(cases.into_iter().collect::<Vec<_>>().into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(next).map(&check).collect::<Vec<_>>();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        ended.into_iter().flat_map(|found| found.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn every_case_is_checked_once_and_a_failing_one_fails_the_test() {
        let mut found = side_by_side(0..100, |case| case);
        found.sort_unstable();
        assert_eq!(found, (0..100).collect::<Vec<_>>());
        let failed = catch_unwind(|| {
            side_by_side(0..100, |case| {
                assert!(case != 7, "seven");
            });
        });
        assert_eq!(failed.unwrap_err().downcast_ref::<&str>(), Some(&"seven"));
    }
}
