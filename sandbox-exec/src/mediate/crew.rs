//! The threads: one leads, that is, receives calls, and performs what does not wait. Before a call that will wait it has another
//! lead; where it took one for one that will not, and it waits all the same, another is made to lead soon (`waiting`).
//!
//! So no call is handed from thread to thread, and none that waits holds up another for long.

use std::io;
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
pub(super) struct WorkerPool {
    count: Mutex<Count>,
    next: Condvar,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    all: usize,
    /// Who will lead next, those included that have not run yet: who steps aside before a new thread had its turn must not add
    /// another.
    standing_by: usize,
    leader: Option<Lead>,
    /// How often somebody began to lead.
    leads: u64,
}

/// Leading, from when a thread begins to until it steps aside, or is made to: no other time has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lead(u64);

/// A thread's turn to lead.
pub(super) struct Turn<'a> {
    shared: &'a Arc<Shared>,
    lead: Lead,
}

impl Turn<'_> {
    /// Lets another lead: what comes next will wait.
    pub(super) fn step_aside(&self) {
        relieve(self.shared, self.lead);
    }

    pub(super) fn lead(&self) -> Lead {
        self.lead
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.shared
    }

    fn lasts(&self) -> bool {
        self.shared.crew.count().leader == Some(self.lead)
    }
}

impl WorkerPool {
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

    /// Waits to lead, as one of those who stand by.
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

    /// Joins those who wait to lead, unless there are enough.
    fn stands_by(&self) -> bool {
        let mut count = self.count();
        let needed = count.standing_by < SPARE;
        count.standing_by += usize::from(needed);
        needed
    }

    /// There are no more calls: the next to lead sees it, too.
    fn ends(&self, lead: Lead) {
        self.count().leader.take_if(|leader| *leader == lead);
        self.next.notify_one();
    }

    fn leaves(&self) {
        self.count().all -= 1;
        self.gone.notify_all();
    }
}

/// Has another lead, if this lead lasts still.
pub(super) fn relieve(shared: &Arc<Shared>, lead: Lead) {
    let mut count = shared.crew.count();
    if count.leader != Some(lead) {
        return;
    }
    if count.standing_by == 0 {
        // Without another thread the calls wait until this one is back.
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

/// Makes the first thread.
pub(super) fn begin(shared: &Arc<Shared>) -> io::Result<()> {
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

/// A thread's life, which begins as one that stands by.
fn work(shared: &Arc<Shared>) {
    let crew = &shared.crew;
    // Without the first, calls that wait would not end with their callers; the second is no caller's. Better one thread less.
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
