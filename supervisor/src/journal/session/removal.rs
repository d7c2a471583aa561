//! The deletion of a log. A log that a process has open is never deleted.

use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::LogError;
use super::file::open_directory;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    Removed,
    Held,
}

/// Deletes a log. Holds the lock until the name is removed, so that no process continues a deleted log. With
/// `is_rehearsal`, nothing is deleted.
pub(crate) fn remove(log: &Path, is_rehearsal: bool) -> Result<Removal, LogError> {
    let directory = open_directory(log.parent().unwrap_or(Path::new(".")))?;
    let name = log.file_name().unwrap_or_default();
    let failed = |source: io::Error| LogError::Remove { path: log.to_owned(), source };
    let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let opened = openat(&directory, name, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let file = std::fs::File::from(opened);
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Removal::Held),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    let metadata = file.metadata().map_err(failed)?;
    let named =
        fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).map_err(|errno| failed(errno.into()))?;
    if !metadata.is_file() || (named.st_dev, named.st_ino) != (metadata.dev(), metadata.ino()) {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    if !is_rehearsal {
        unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir).map_err(|errno| failed(errno.into()))?;
    }
    // A forked child that has not executed its program yet has the file open too.
    file.unlock().map_err(failed)?;
    Ok(Removal::Removed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::journal::session::SessionLog;

    #[test]
    fn a_log_is_deleted_but_for_one_that_is_open_or_a_link() {
        let state = tempfile::tempdir().unwrap();
        let log = SessionLog::create(state.path(), &"s-1".into()).unwrap();
        let path = log.path().to_owned();
        assert_eq!(remove(&path, false).unwrap(), Removal::Held);
        assert!(path.exists());
        drop(log);
        let link = state.path().join("sessions/link.jsonl");
        symlink(&path, &link).unwrap();
        assert!(remove(&link, false).is_err());
        assert_eq!(remove(&path, true).unwrap(), Removal::Removed);
        assert!(path.exists());
        assert_eq!(remove(&path, false).unwrap(), Removal::Removed);
        assert!(!path.exists() && fs::symlink_metadata(&link).is_ok());
    }
}
