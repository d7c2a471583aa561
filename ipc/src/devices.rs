//! Shared memory and terminals: places that one agent of a container has at a time.
//!
//! In the floor tier a rule there covers every segment and terminal of any process. So an agent gets such a place only while it
//! holds the lock (flock(2)) on the directory itself, which all users of the place share. A confined program can take a free
//! lock; then no agent gets the place.

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

    /// Returns the paths of the places.
    pub fn places(&self) -> Vec<WirePath> {
        self.0.iter().map(|(place, _)| WirePath::from(*place)).collect()
    }
}
