//! Shared memory and terminals: the places that one agent of a container has at a time.
//!
//! In the floor a rule there covers every segment and every terminal, whoever made them. So an agent is granted such a place only
//! while it has the lock on it (flock(2)). The lock is on the directory itself: whoever shares the place shares the lock, whatever
//! user that is, and wherever our own files lie. A confined program can lock a directory that nobody has locked; then no
//! agent is granted it.

use std::fs::File;

use crate::path::WirePath;

/// The directory of POSIX shared memory.
pub const MEMORY: &str = "/dev/shm";

/// The directory of pseudo-terminals.
pub const TERMINALS: &str = "/dev/pts";

/// The places that this process has, until this is dropped.
#[derive(Debug, Default)]
pub struct Devices(Vec<(&'static str, File)>);

impl Devices {
    /// Takes the places that nobody has.
    pub fn take() -> Self {
        let take = |place| {
            let directory = File::open(place).ok()?;
            directory.try_lock().ok().map(|()| (place, directory))
        };
        Self([MEMORY, TERMINALS].into_iter().filter_map(take).collect())
    }

    /// Their paths.
    pub fn places(&self) -> Vec<WirePath> {
        self.0.iter().map(|(place, _)| WirePath::from(*place)).collect()
    }
}
