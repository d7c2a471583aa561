//! Connections from inside to inside that were started and not yet accepted.
//!
//! A client may be gone before its connection is accepted, and is then no longer in the table of open
//! sockets.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of pending connections: the longest queue (`net.core.somaxconn`). A client that started
/// before that many others, and was not accepted since, is not let in. Connections that a server closed
/// without accepting are never looked up.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<VecDeque<u64>>);

impl Connections {
    /// Records that a client starts a connection.
    pub(super) fn begin(&self, client: u64) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !begun.contains(&client) {
            begun.push_back(client);
            if begun.len() > MOST {
                begun.pop_front();
            }
        }
    }

    /// Returns true if the client started a connection, and removes it: it is accepted now.
    pub(super) fn accept(&self, client: u64) -> bool {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = begun.iter().position(|&cookie| cookie == client);
        found.is_some_and(|at| begun.remove(at).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_accepted_once() {
        let connections = Connections::default();
        connections.begin(1);
        connections.begin(1);
        assert!(!connections.accept(2));
        assert!(connections.accept(1) && !connections.accept(1));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let connections = Connections::default();
        (0..=MOST as u64).for_each(|client| connections.begin(client));
        assert!(!connections.accept(0) && connections.accept(1));
    }
}
