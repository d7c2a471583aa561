//! Directories of shared memory and of terminals. In a container, only one agent at a time gets access to each of them.
//!
//! A rule of the floor tier covers all processes' segments and terminals, so an agent gets such a directory only while
//! it holds the lock (flock(2)) on it. If a confined program takes the lock, no agent gets access.

use std::fs::File;

use crate::path::WirePath;

/// The directory of POSIX shared memory.
pub const MEMORY: &str = "/dev/shm";

/// The directory of pseudo-terminals.
pub const TERMINALS: &str = "/dev/pts";

/// The directories that this process has locked. Dropping the value releases the locks.
#[derive(Debug, Default)]
pub struct Devices(Vec<(&'static str, File)>);

impl Devices {
    /// Locks the directories that no other process has locked.
    pub fn take() -> Self {
        let take = |place| {
            let directory = File::open(place).ok()?;
            directory.try_lock().ok().map(|()| (place, directory))
        };
        Self([MEMORY, TERMINALS].into_iter().filter_map(take).collect())
    }

    /// Returns the locked directories.
    pub fn places(&self) -> Vec<WirePath> {
        self.0.iter().map(|(place, _)| WirePath::from(*place)).collect()
    }
}
