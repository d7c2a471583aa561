//! Connections between sockets inside the sandbox that are not accepted yet, each with a note about it. A client's
//! process may end before its connection is accepted.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of recorded connections, as in a listener's queue (`net.core.somaxconn`). The oldest is replaced.
const MOST: usize = 4096;

#[derive(Debug)]
pub(super) struct Connections<T = ()>(Mutex<VecDeque<(u64, T)>>);

impl<T> Default for Connections<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Connections<T> {
    /// Records a connection by its client's cookie. A client has one connection at a time: a new note replaces its
    /// last.
    pub(super) fn begin(&self, client: u64, note: T) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match begun.iter_mut().find(|(cookie, _)| *cookie == client) {
            Some((_, old)) => *old = note,
            None => begun.push_back((client, note)),
        }
        if begun.len() > MOST {
            begun.pop_front();
        }
    }

    /// Removes a connection that was accepted. Returns its note; `None` if the connection is not recorded.
    pub(super) fn accept(&self, client: u64) -> Option<T> {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = begun.iter().position(|(cookie, _)| *cookie == client);
        found.and_then(|at| begun.remove(at)).map(|(_, note)| note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_accepted_once() {
        let connections = Connections::default();
        connections.begin(1, 'a');
        connections.begin(1, 'b');
        assert_eq!(connections.accept(2), None);
        assert_eq!([connections.accept(1), connections.accept(1)], [Some('b'), None]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let connections = Connections::default();
        (0..=MOST as u64).for_each(|client| connections.begin(client, ()));
        assert_eq!([connections.accept(0), connections.accept(1)], [None, Some(())]);
    }
}
