//! Duplicates of sockets that the mediator created and that a call may still need: sockets that are not connected, and
//! those that take an address with each message.
//!
//! A duplicate keeps a socket alive, with its port and queue, after the programs have closed it. So the mediator
//! searches for closed sockets. It does so whenever a program could notice (before a connection or message to the
//! address, before a port is reported as taken), else at growing intervals. When a call connects a socket, the
//! duplicate is dropped before the call returns.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::stat::fstat;

use crate::mediate::call::socket;
use crate::mediate::kernel::open_descriptors::{self, HoldingPlace};

/// Maximum number of duplicates that are kept.
const MOST: usize = 4096;
/// Number of searches that must not find a socket in any process before its duplicate is dropped.
const LOOKS: usize = 2;
// Minimum time after a change until the next search, and maximum time between searches.
const SOONEST: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(in crate::mediate) struct Registry {
    state: Mutex<RegistryState>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct RegistryState {
    held: HashMap<u64, HeldSocket>,
    changed: bool,
    ended: bool,
}

#[derive(Debug)]
struct HeldSocket {
    socket: OwnedFd,
    /// Thread and descriptor at which the socket was last found; `None` until a program has got it.
    seen: Option<HoldingPlace>,
}

impl Registry {
    /// Keeps a duplicate of a socket, and returns its inode. `ENOBUFS` if there are too many duplicates.
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
        // The kernel counts inodes with 32 bits, and does not check if one is in use.
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

    pub(super) fn look_soon(&self) {
        if !std::mem::replace(&mut self.lock().changed, true) {
            self.more.notify_one();
        }
    }

    pub(super) fn given(&self, inode: u64, place: HoldingPlace) {
        if let Some(held) = self.lock().held.get_mut(&inode) {
            held.seen = Some(place);
        }
    }

    pub(super) fn get(&self, inode: u64) -> Option<Result<OwnedFd, Errno>> {
        self.lock().held.get(&inode).map(|held| duplicate(&held.socket))
    }

    pub(super) fn forget(&self, inode: u64) {
        self.lock().held.remove(&inode);
    }

    /// Drops the duplicates of sockets that no program has any more; returns the number of dropped ones.
    pub(in crate::mediate) fn let_go(&self) -> usize {
        self.let_go_of(|_| true)
    }

    /// Drops the duplicates like [`Self::let_go`], but only those of sockets that `matter`.
    pub(super) fn let_go_of(&self, matter: impl Fn(&OwnedFd) -> bool) -> usize {
        let mut gone = self.missing(matter);
        for _ in 0..LOOKS {
            if gone.is_empty() {
                return 0;
            }
            // A process may pass the socket to another during the search, so a socket that is missed once is
            // searched again.
            let found = open_descriptors::find(&gone);
            gone.retain(|inode| !found.contains_key(inode));
            for (inode, place) in found {
                self.given(inode, place);
            }
        }
        let mut state = self.lock();
        gone.iter().filter(|inode| state.held.remove(inode).is_some()).count()
    }

    /// Returns the inodes of those sockets that `matter` and are no longer at the place where they were last seen.
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

    fn let_go_of_connected(&self) {
        self.lock().held.retain(|_, held| !socket::is_connected_stream(&held.socket));
    }

    pub(in crate::mediate) fn watch(&self) {
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

    /// Sleeps until the next search is due or a socket is added or closed. Returns true after such a change, false
    /// after the pause, and `None` at the end of the registry.
    fn sleep(&self, pause: Duration) -> Option<bool> {
        let mut state = self.lock();
        while state.held.is_empty() && !state.ended {
            // All added sockets are gone again: the next one has to wake this thread.
            state.changed = false;
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let goes_on = |state: &mut RegistryState| !state.ended && (pause == SOONEST || !state.changed);
        let waited = self.more.wait_timeout_while(state, pause, goes_on);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        (!state.ended).then_some(state.changed)
    }

    pub(in crate::mediate) fn end(&self) {
        self.lock().ended = true;
        self.more.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Duplicates a socket. `ENOBUFS` if this process's table is full, since the caller's is not.
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
