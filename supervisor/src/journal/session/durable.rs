//! Counts the bytes of a log up to which fdatasync(2) has succeeded.
//!
//! The kernel reports an error of `fdatasync(2)` once and may drop the unwritten pages. So after an error, all lines
//! since the last success count as lost until they are written again.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The state of a log's file, shared by its writer and the thread that syncs.
#[derive(Debug, Default)]
pub(super) struct Durable {
    appended: AtomicU64,
    synced: AtomicU64,
    /// True if a sync failed because the disk was full.
    failed: AtomicBool,
    /// Held during a sync. Only one sync may run at a time, because the kernel reports an error only once.
    syncing: Mutex<()>,
    #[cfg(test)]
    pretended: AtomicU64,
}

impl Durable {
    pub(super) fn appended(&self, bytes: u64) {
        self.appended.store(bytes, Ordering::Release);
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Clears the failure. Before this call, the caller must remove from the file all lines that were not synced.
    pub(super) fn begin_again(&self) {
        self.failed.store(false, Ordering::Release);
    }

    /// Syncs all bytes that were appended until now. Fails if this sync fails, or an earlier one found the disk full.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        let _alone = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.failed.load(Ordering::Acquire) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let appended = self.appended.load(Ordering::Acquire);
        let synced = self.sync_data(file);
        match &synced {
            Ok(()) => drop(self.synced.fetch_max(appended, Ordering::AcqRel)),
            Err(error) => self.failed.store(super::log::is_full(error), Ordering::Release),
        }
        synced
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "in tests a disk is full for a while")]
    fn sync_data(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    #[cfg(test)]
    fn sync_data(&self, file: &File) -> io::Result<()> {
        let left = self.pretended.load(Ordering::Acquire);
        if left > 0 {
            self.pretended.store(left - 1, Ordering::Release);
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.sync_data()
    }

    #[cfg(test)]
    pub(super) fn pretend(&self, calls: u64) {
        self.pretended.store(calls, Ordering::Release);
    }
}
