//! Thread pool. One thread leads: it receives calls and performs those that do not wait. Before it performs a call that
//! will wait, it makes another thread lead. If a call waits unexpectedly, the watching thread of `waiting` makes
//! another thread lead.
//!
//! So calls are not handed between threads, and no waiting call delays others for long.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::mediate::Shared;
use crate::privilege::clear_capabilities;

/// Maximum number of threads. Further calls wait until a thread is free.
const MOST: usize = 512;
/// Number of threads that stay alive while there is nothing to do.
const SPARE: usize = 2;
/// Size of a thread's stack in bytes. No function of these threads recurses.
const STACK: usize = 128 << 10;

#[derive(Debug, Default)]
pub(in crate::mediate) struct WorkerPool {
    count: Mutex<Count>,
    next: Condvar,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    all: usize,
    /// Number of threads that wait to lead, including those that were started and have not run yet.
    standing_by: usize,
    leader: Option<Lead>,
    leads: u64,
}

/// Number that identifies a period during which one thread leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mediate) struct Lead(u64);

pub(in crate::mediate) struct Turn<'a> {
    shared: &'a Arc<Shared>,
    lead: Lead,
}

impl Turn<'_> {
    pub(in crate::mediate) fn step_aside(&self) {
        relieve(self.shared, self.lead);
    }

    pub(in crate::mediate) fn lead(&self) -> Lead {
        self.lead
    }

    pub(in crate::mediate) fn shared(&self) -> &Arc<Shared> {
        self.shared
    }

    fn lasts(&self) -> bool {
        self.shared.crew.count().leader == Some(self.lead)
    }
}

impl WorkerPool {
    pub(in crate::mediate) fn wait(&self) {
        let mut count = self.count();
        while count.all > 0 {
            count = self.gone.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lead(&self) -> Lead {
        let mut count = self.count();
        while count.leader.is_some() {
            count = self.next.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
        count.standing_by -= 1;
        count.leads += 1;
        let lead = Lead(count.leads);
        count.leader = Some(lead);
        lead
    }

    fn stands_by(&self) -> bool {
        let mut count = self.count();
        let needed = count.standing_by < SPARE;
        count.standing_by += usize::from(needed);
        needed
    }

    fn ends(&self, lead: Lead) {
        self.count().leader.take_if(|leader| *leader == lead);
        self.next.notify_one();
    }

    fn leaves(&self) {
        self.count().all -= 1;
        self.gone.notify_all();
    }
}

/// Makes another thread lead, unless the period `lead` has already ended.
pub(in crate::mediate) fn relieve(shared: &Arc<Shared>, lead: Lead) {
    let mut count = shared.crew.count();
    if count.leader != Some(lead) {
        return;
    }
    if count.standing_by == 0 {
        // Without another thread, calls wait until this thread returns.
        drop(add_to(&mut count, shared));
    }
    count.leader = None;
    drop(count);
    shared.crew.next.notify_one();
}

impl Count {
    fn joined(&mut self) {
        self.all += 1;
        self.standing_by += 1;
    }
}

pub(in crate::mediate) fn begin(shared: &Arc<Shared>) -> io::Result<()> {
    add_to(&mut shared.crew.count(), shared)
}

fn add_to(count: &mut Count, shared: &Arc<Shared>) -> io::Result<()> {
    if count.all >= MOST {
        return Ok(());
    }
    let theirs = Arc::clone(shared);
    thread::Builder::new().name("mediator".into()).stack_size(STACK).spawn(move || work(&theirs))?;
    count.joined();
    Ok(())
}

fn work(shared: &Arc<Shared>) {
    let crew = &shared.crew;
    // Without the first, waiting calls would not end with their callers; the second is not a caller's right.
    // Better one thread less.
    if super::waiting::allow_interruption().is_err() || clear_capabilities().is_err() {
        crew.count().standing_by -= 1;
        return crew.leaves();
    }
    loop {
        let turn = Turn { shared, lead: crew.lead() };
        while turn.lasts() {
            if !shared.serve(&turn) {
                crew.ends(turn.lead);
                return crew.leaves();
            }
        }
        if !crew.stands_by() {
            return crew.leaves();
        }
    }
}
