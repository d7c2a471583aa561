//! Connections within the sandbox that are not accepted yet. A client may end before; then the table of open
//! sockets lacks it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of pending connections: the longest queue (`net.core.somaxconn`). After that many later
/// ones, a client is not let in. Connections that a server closes unaccepted are never looked up.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<VecDeque<u64>>);

impl Connections {
    pub(super) fn begin(&self, client: u64) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !begun.contains(&client) {
            begun.push_back(client);
            if begun.len() > MOST {
                begun.pop_front();
            }
        }
    }

    /// Removes a started connection, which is now accepted; returns false if there was none.
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
