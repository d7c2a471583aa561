//! The threads: one leads, that is, receives calls. A thread that gets a call which may wait keeps it and lets another lead.
//!
//! So no call is handed from thread to thread, and none that waits holds up another.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Shared;
use crate::privilege::clear_capabilities;

/// The most threads. When all of them wait, further calls wait for the first that is free.
const MOST: usize = 512;
/// How many stay when there is nothing to do.
const SPARE: usize = 2;
/// Enough for what they do, none of which recurses.
const STACK: usize = 128 << 10;

/// Who is there.
#[derive(Debug, Default)]
pub(super) struct Crew {
    lead: Mutex<()>,
    count: Mutex<Count>,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    all: usize,
    standing_by: usize,
}

/// A thread's turn to lead.
pub(super) struct Turn<'a> {
    shared: &'a Arc<Shared>,
    lead: Option<MutexGuard<'a, ()>>,
}

impl Turn<'_> {
    /// Lets another lead: what comes next may wait.
    pub(super) fn step_aside(&mut self) {
        if self.lead.is_some() {
            if self.shared.crew.count().standing_by == 0 {
                // Without another thread the calls wait until this one is back.
                drop(add(self.shared));
            }
            self.lead = None;
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.lead.is_some()
    }
}

impl Crew {
    /// Waits until nobody is left.
    pub(super) fn wait(&self) {
        let mut count = self.count();
        while count.all > 0 {
            count = self.gone.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait to lead, unless there are enough.
    fn stands_by(&self) -> bool {
        let mut count = self.count();
        let needed = count.standing_by < SPARE;
        count.standing_by += usize::from(needed);
        needed
    }

    fn leaves(&self) {
        self.count().all -= 1;
        self.gone.notify_all();
    }
}

/// Adds a thread.
pub(super) fn add(shared: &Arc<Shared>) -> std::io::Result<()> {
    let mut count = shared.crew.count();
    if count.all >= MOST {
        return Ok(());
    }
    let theirs = Arc::clone(shared);
    thread::Builder::new().name("mediator".into()).stack_size(STACK).spawn(move || work(&theirs))?;
    count.all += 1;
    Ok(())
}

/// A thread's life.
fn work(shared: &Arc<Shared>) {
    // Without the first, calls that wait would not end with their callers; the second is no caller's. Better one thread less.
    if super::waiting::allow_interruption().is_err() || clear_capabilities().is_err() {
        return shared.crew.leaves();
    }
    while shared.crew.stands_by() {
        let lead = shared.crew.lead.lock().unwrap_or_else(PoisonError::into_inner);
        shared.crew.count().standing_by -= 1;
        let mut turn = Turn { shared, lead: Some(lead) };
        while turn.leads() {
            if !shared.serve(&mut turn) {
                shared.crew.leaves();
                return;
            }
        }
    }
    shared.crew.leaves();
}
