//! Connections from inside to inside that were begun and not yet accepted.
//!
//! A client may be gone before its connection is accepted, and with it what tells it from a stranger. Until then no other
//! connection can have the same two ports and addresses.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The most that are remembered: what the longest queue holds (`net.core.somaxconn`). Those that a server closed without
/// accepting are never asked for.
const MOST: usize = 4096;

/// The ports of both ends, of each connection.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<VecDeque<(u16, u16)>>);

impl Connections {
    /// Remembers that a connection begins.
    pub(super) fn begin(&self, client: u16, server: u16) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !begun.contains(&(client, server)) {
            begun.push_back((client, server));
            if begun.len() > MOST {
                begun.pop_front();
            }
        }
    }

    /// Whether a connection was begun; now it is accepted.
    pub(super) fn accept(&self, client: u16, server: u16) -> bool {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = begun.iter().position(|&ports| ports == (client, server));
        found.is_some_and(|at| begun.remove(at).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_accepted_once() {
        let connections = Connections::default();
        connections.begin(1, 2);
        connections.begin(1, 2);
        assert!(!connections.accept(2, 1));
        assert!(connections.accept(1, 2) && !connections.accept(1, 2));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let connections = Connections::default();
        for server in [1, 2] {
            (0..u16::try_from(MOST).unwrap()).for_each(|client| connections.begin(client, server));
        }
        assert!(!connections.accept(0, 1) && connections.accept(0, 2));
    }
}
