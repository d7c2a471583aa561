//! The file of a log: private, new, never reached through a symbolic link, and written in whole lines.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use nix::sys::statvfs::fstatvfs;

use super::LogError;
use super::durable::Durable;

/// Opens the directory of the logs and creates it if it is missing. Fails if others can access it.
pub(super) fn open_directory(path: &Path) -> Result<File, LogError> {
    let failed = |source| LogError::Directory { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = File::from(open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?);
    let metadata = directory.metadata().map_err(failed)?;
    let user = nix::unistd::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(LogError::Owner { path: path.to_owned(), owner: metadata.uid(), user });
    }
    if metadata.mode() & 0o077 != 0 {
        directory.set_permissions(PermissionsExt::from_mode(0o700)).map_err(failed)?;
    }
    Ok(directory)
}

#[derive(Debug)]
pub(super) struct LineFile {
    file: File,
    path: PathBuf,
    /// Size in bytes of the complete lines.
    whole: u64,
    /// True if a failed write may have left bytes after the complete lines.
    torn: bool,
    durable: Arc<Durable>,
}

impl LineFile {
    /// Creates a new file. Fails if anything exists at the path, even a symbolic link.
    pub(super) fn create(directory: &File, path: PathBuf) -> Result<Self, LogError> {
        let name = path.file_name().unwrap_or_default();
        let flags = OFlag::O_WRONLY
            | OFlag::O_APPEND
            | OFlag::O_CREAT
            | OFlag::O_EXCL
            | OFlag::O_NOFOLLOW
            | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        match openat(directory, name, flags, mode) {
            Ok(descriptor) => {
                let file = File::from(descriptor);
                // The name is new, so this lock is free.
                let _ = file.try_lock();
                Ok(Self { file, path, whole: 0, torn: false, durable: Arc::default() })
            }
            Err(errno) => Err(LogError::Create { path, source: errno.into() }),
        }
    }

    /// Opens an existing log and locks it. Fails if another process has it open.
    pub(super) fn reopen(directory: &File, path: PathBuf) -> Result<Self, LogError> {
        let name = path.file_name().unwrap_or_default();
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = openat(directory, name, flags, Mode::empty());
        let unreadable = |source| LogError::Read { path: path.clone(), source };
        let file = File::from(opened.map_err(|errno| unreadable(errno.into()))?);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = file.metadata().ok().and_then(|metadata| holder(metadata.ino()));
                return Err(LogError::Held { path, holder });
            }
            Err(TryLockError::Error(source)) => return Err(unreadable(source)),
        }
        // The process that had the lock deleted the log, so later writes would be lost.
        if file.metadata().map_err(unreadable)?.nlink() == 0 {
            return Err(unreadable(io::ErrorKind::NotFound.into()));
        }
        Ok(Self { file, path, whole: 0, torn: false, durable: Arc::default() })
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// Truncates the file after `whole` bytes. This removes an incomplete last line.
    pub(super) fn cut(&mut self, whole: u64) -> io::Result<()> {
        self.append_behind(whole);
        self.file.set_len(whole)
    }

    /// Sets the size of the complete lines, which is the offset at which the next line is written.
    pub(super) fn append_behind(&mut self, whole: u64) {
        self.whole = whole;
        self.durable.appended(whole);
    }

    pub(super) const fn whole(&self) -> u64 {
        self.whole
    }

    pub(super) const fn durable(&self) -> &Arc<Durable> {
        &self.durable
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line with its line feed. If this fails, the incomplete line is cut off: at once, or before the next
    /// line is written.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.mend()?;
        self.torn = true;
        // Each line is one write(2), so that a failure affects one line only.
        let written = self.file.write_all(line);
        if written.is_ok() {
            self.torn = false;
            self.append_behind(self.whole + line.len() as u64);
            return Ok(());
        }
        // If the truncation fails too, the next append tries to truncate first.
        let _ = self.mend();
        written
    }

    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.whole)?;
            self.torn = false;
        }
        Ok(())
    }

    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns the free bytes on the log's file system for this user; `None` if they are unknown.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        let stat = fstatvfs(&self.file).ok()?;
        Some(stat.blocks_available().saturating_mul(stat.fragment_size()))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.durable.sync(&self.file)
    }
}

impl Drop for LineFile {
    /// Releases the lock explicitly. Otherwise a forked child that has not executed its program yet would hold it.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

pub(crate) fn is_held(log: &Path) -> io::Result<bool> {
    match File::open(log)?.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Maximum number of reads of the kernel's list of locks.
const LOOKS: usize = 64;

/// Returns the process that holds a lock on the file with this inode number; `None` if it is not found. Repeats the
/// search, because the kernel can skip a lock while others are removed (fs/locks.c, `locks_start`).
fn holder(inode: u64) -> Option<u32> {
    (0..LOOKS).find_map(|_| listed_holder(inode))
}

fn listed_holder(inode: u64) -> Option<u32> {
    // With a small capacity, the first read would ask for a few bytes only.
    let mut locks = String::with_capacity(64 << 10);
    File::open("/proc/locks").ok()?.read_to_string(&mut locks).ok()?;
    let end = format!(":{inode}");
    // `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = words.as_slice() else { return None };
        file.ends_with(&end).then(|| pid.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_holder_is_found_while_other_locks_come_and_go() {
        let place = tempfile::tempdir().unwrap();
        let lock = |name: String| {
            let file = File::create(place.path().join(name)).unwrap();
            file.try_lock().unwrap();
            file
        };
        // More than a page of other locks comes before and after the searched one.
        let _before: Vec<_> = (0..100).map(|number| lock(format!("before-{number}"))).collect();
        let held = lock("held".to_owned());
        let inode = held.metadata().unwrap().ino();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (lock, over) = (&lock, &over);
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let _some: Vec<_> =
                            (0..50).map(|number| lock(format!("{thread}-{number}"))).collect();
                    }
                });
            }
            let found = (0..300).filter(|_| holder(inode) == Some(std::process::id())).count();
            over.store(true, Ordering::Relaxed);
            assert_eq!(found, 300);
        });
    }
}
