//! The sockets that were made here for the mediated programs, and that a call on them may still need: those that are not
//! connected, and all that take an address with each message.
//!
//! A duplicate keeps a socket alive after the programs have closed it: its port taken, its queue listening. So it is let go
//! when no program has the socket any more, which is looked for when somebody could notice (before a connection or a message
//! to what it is bound to, before a port is called taken), and otherwise soon, then ever more seldom. Of what a program sees of
//! a *connection*, nothing is left to that: the duplicate is let go before the call that made it returns.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::stat::fstat;

use super::holding::{self, HoldingPlace};
use super::socket;

/// The most that are held.
const MOST: usize = 4096;
/// How often a socket has to be missed to be let go.
const LOOKS: usize = 2;
/// How soon after a change it is looked whether somebody still has what is held, and how often at least.
const SOONEST: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_secs(1);

/// What is held, by inode.
#[derive(Debug, Default)]
pub(super) struct Registry {
    state: Mutex<RegistryState>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct RegistryState {
    held: HashMap<u64, HeldSocket>,
    /// Whether something came since it was looked last.
    changed: bool,
    ended: bool,
}

#[derive(Debug)]
struct HeldSocket {
    socket: OwnedFd,
    /// Where somebody had it last; nothing while it is being given.
    seen: Option<HoldingPlace>,
}

impl Registry {
    /// Holds a duplicate of a socket, and returns its inode. `ENOBUFS` when there are too many.
    pub(super) fn hold(&self, socket: &OwnedFd) -> Result<u64, Errno> {
        if self.is_full() {
            self.let_go();
        }
        if self.is_full() {
            return Err(Errno::ENOBUFS);
        }
        let inode = fstat(socket)?.st_ino;
        let held = HeldSocket { socket: duplicate(socket)?, seen: None };
        let mut state = self.lock();
        // The kernel counts inodes with 32 bits, and does not look whether one is in use.
        if state.held.contains_key(&inode) {
            return Err(Errno::ENOBUFS);
        }
        state.held.insert(inode, held);
        drop(state);
        self.look_soon();
        Ok(inode)
    }

    fn is_full(&self) -> bool {
        self.lock().held.len() >= MOST
    }

    /// Has it looked soon what can be let go.
    pub(super) fn look_soon(&self) {
        if !std::mem::replace(&mut self.lock().changed, true) {
            self.more.notify_one();
        }
    }

    /// Notes where a program got it.
    pub(super) fn given(&self, inode: u64, place: HoldingPlace) {
        if let Some(held) = self.lock().held.get_mut(&inode) {
            held.seen = Some(place);
        }
    }

    /// Another duplicate of what is held.
    pub(super) fn get(&self, inode: u64) -> Option<Result<OwnedFd, Errno>> {
        self.lock().held.get(&inode).map(|held| duplicate(&held.socket))
    }

    /// Lets go of one.
    pub(super) fn forget(&self, inode: u64) {
        self.lock().held.remove(&inode);
    }

    /// Lets go of what no program has any more; how many that were.
    pub(super) fn let_go(&self) -> usize {
        self.let_go_of(|_| true)
    }

    /// The same of those sockets alone that `matter`.
    pub(super) fn let_go_of(&self, matter: impl Fn(&OwnedFd) -> bool) -> usize {
        let mut gone = self.missing(matter);
        for _ in 0..LOOKS {
            if gone.is_empty() {
                return 0;
            }
            // A process that has it may pass it to another while one looks: what is missed once is looked for again.
            let found = holding::find(&gone);
            gone.retain(|inode| !found.contains_key(inode));
            for (inode, place) in found {
                self.given(inode, place);
            }
        }
        let mut state = self.lock();
        gone.iter().filter(|inode| state.held.remove(inode).is_some()).count()
    }

    /// What is not where it was seen last.
    fn missing(&self, matter: impl Fn(&OwnedFd) -> bool) -> HashSet<u64> {
        let state = self.lock();
        let known = state.held.iter().filter(|(_, held)| matter(&held.socket));
        let known: Vec<_> = known.filter_map(|(&inode, held)| Some((inode, held.seen?))).collect();
        drop(state);
        known
            .into_iter()
            .filter(|(inode, seen)| seen.socket() != Ok(*inode))
            .map(|(inode, _)| inode)
            .collect()
    }

    /// Lets go of connections that were begun without waiting, and are made now.
    fn let_go_of_connected(&self) {
        self.lock().held.retain(|_, held| !socket::is_connected_stream(&held.socket));
    }

    /// Looks after what is held until [`Registry::end`].
    pub(super) fn watch(&self) {
        let mut pause = SOONEST;
        while let Some(changed) = self.sleep(pause) {
            if changed && pause > SOONEST {
                pause = SOONEST;
                continue;
            }
            self.lock().changed = false;
            self.let_go_of_connected();
            self.let_go();
            pause = if changed { SOONEST } else { (pause * 2).min(LATEST) };
        }
    }

    /// Sleeps for as long as nothing is held, and then until it is time to look; a long time ends with a change. Whether there was
    /// one, or nothing at the end.
    fn sleep(&self, pause: Duration) -> Option<bool> {
        let mut state = self.lock();
        while state.held.is_empty() && !state.ended {
            // What came is gone again: whatever comes next has to wake this thread.
            state.changed = false;
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let goes_on = |state: &mut RegistryState| !state.ended && (pause == SOONEST || !state.changed);
        let waited = self.more.wait_timeout_while(state, pause, goes_on);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        (!state.ended).then_some(state.changed)
    }

    /// Lets the thread that looks end.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.more.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of our descriptors there are too many, which is no fault of the caller's table.
fn duplicate(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    socket.try_clone().map_err(|_| Errno::ENOBUFS)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_comes_is_looked_after_when_what_came_before_is_gone_already() {
        let registry = Registry::default();
        registry.look_soon();
        thread::scope(|scope| {
            scope.spawn(|| registry.sleep(SOONEST));
            let start = Instant::now();
            while registry.lock().changed && start.elapsed() < Duration::from_mins(1) {
                thread::yield_now();
            }
            let (socket, _peer) = UnixStream::pair().unwrap();
            let wakes = !registry.lock().changed;
            registry.hold(&socket.into()).unwrap();
            registry.end();
            assert!(wakes);
        });
    }
}
