//! Private temp directory of an agent, with a random name and a short path. It is removed at the end of the agent, or
//! else by the next start of Bailiwick.
//!
//! A lock file in the state directory contains the path, device and inode of the temp directory. The lock on that file
//! (flock(2)) ends with the process that owns the temp directory.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use uuid::Uuid;

use super::removal::{self, Identity};
use super::temps::Temps;

#[derive(Debug, thiserror::Error)]
#[error("cannot make a private temp directory: {path}: {source}\n  hint: {}", self.remedy())]
pub struct TempError {
    pub(super) path: PathBuf,
    /// Environment variable with which the user can set another parent directory.
    pub(super) variable: &'static str,
    pub(super) source: io::Error,
}

impl TempError {
    pub fn of_parent(source: io::Error) -> Self {
        Self { path: std::env::temp_dir(), variable: "TMPDIR", source }
    }

    fn remedy(&self) -> String {
        let elsewhere = format!("set {} to a directory that you can write", self.variable);
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                format!("free some space on that file system, or {elsewhere}")
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                format!(
                    "{elsewhere}; a container with a read-only root needs such a directory: docker run --tmpfs /tmp:exec"
                )
            }
            _ => elsewhere,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a private temp directory could not be removed: {path}: {source}; the next start tries again")]
pub struct Leftover {
    path: PathBuf,
    source: io::Error,
}

/// An agent's temp directory. Dropping it removes the directory with its contents.
#[derive(Debug)]
pub struct PrivateTemp {
    path: PathBuf,
    identity: Identity,
    lock_path: PathBuf,
    // Locked for as long as the directory is in use.
    _lock: Flock<File>,
}

impl PrivateTemp {
    /// Creates the temp directory, and its lock file in the directory `locks`.
    pub fn create(temps: &Temps, locks: &Path) -> Result<Self, TempError> {
        Self::create_at(temps.path(), temps.variable, locks)
    }

    /// Creates the temp directory in `directory`. That directory belongs to Bailiwick.
    pub fn create_in(directory: &Path, locks: &Path) -> Result<Self, TempError> {
        Self::create_at(directory, "BAILIWICK_HOME", locks)
    }

    fn create_at(directory: &Path, variable: &'static str, locks: &Path) -> Result<Self, TempError> {
        loop {
            if let Some(made) = Self::try_create(directory, variable, locks)? {
                return Ok(made);
            }
        }
    }

    fn try_create(directory: &Path, variable: &'static str, locks: &Path) -> Result<Option<Self>, TempError> {
        let name = format!("bw-{}", &Uuid::new_v4().simple().to_string()[..12]);
        let path = directory.join(&name);
        let lock_path = locks.join(&name);
        let at = |path: &Path, variable| {
            let path = path.to_owned();
            move |source| TempError { path, variable, source }
        };
        let (here, of_lock) = (|| at(&path, variable), || at(&lock_path, "BAILIWICK_HOME"));
        let Some(mut lock) = lock(&lock_path, &path).map_err(of_lock())? else { return Ok(None) };
        DirBuilder::new().mode(0o700).create(&path).map_err(here())?;
        let identity = removal::open(&path).and_then(Identity::of).map_err(here())?;
        writeln!(&mut *lock, "\0{} {}", identity.device, identity.inode).map_err(of_lock())?;
        Ok(Some(Self { path, identity, lock_path, _lock: lock }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTemp {
    fn drop(&mut self) {
        if let Err(leftover) = remove(&self.path, self.identity, &self.lock_path) {
            tracing::warn!("{leftover}");
        }
    }
}

/// Removes temp directories of processes that have ended. Returns those that could not be removed.
pub fn remove_stale(locks: &Path) -> Vec<Leftover> {
    let entries = fs::read_dir(locks).into_iter().flatten().flatten();
    entries.filter_map(|entry| remove_one_stale(&entry.path()).err()).collect()
}

fn remove_one_stale(lock_path: &Path) -> Result<(), Leftover> {
    let Ok(file) = File::open(lock_path) else { return Ok(()) };
    let Ok(mut file) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { return Ok(()) };
    let mut text = vec![];
    let read = (&mut *file).take(LONGEST_LOCK).read_to_end(&mut text);
    let (path, identity) = split(&text);
    if read.is_err() || !names_a_private_temp(path, lock_path) {
        let _ = fs::remove_file(lock_path);
        return Ok(());
    }
    if let Some(identity) = identity {
        return remove(path, identity, lock_path);
    }
    // The owner ended before it could put anything into the directory.
    let _ = fs::remove_dir(path);
    let _ = fs::remove_file(lock_path);
    Ok(())
}

const LONGEST_LOCK: u64 = 8 << 10;

/// Splits a lock file's text into path and identity (device and inode), separated by a NUL byte. The identity is `None`
/// if the text is incomplete.
fn split(text: &[u8]) -> (&Path, Option<Identity>) {
    let mut parts = text.splitn(2, |byte| *byte == 0);
    let path = Path::new(OsStr::from_bytes(parts.next().unwrap_or_default()));
    let identity = parts.next().and_then(|rest| std::str::from_utf8(rest).ok()).and_then(|rest| {
        // The line end shows that the number is complete.
        let (device, inode) = rest.strip_suffix('\n')?.split_once(' ')?;
        Some(Identity { device: device.parse().ok()?, inode: inode.parse().ok()? })
    });
    (path, identity)
}

/// True if this module may have written the path in a lock file. A forged lock file must not cause a removal.
fn names_a_private_temp(path: &Path, lock_path: &Path) -> bool {
    let name = path.file_name();
    path.is_absolute()
        && name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"bw-"))
        && name == lock_path.file_name()
}

/// Creates and locks the lock file. `None` if another process removed the new file because it was not locked yet.
fn lock(lock_path: &Path, path: &Path) -> io::Result<Option<Flock<File>>> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(lock_path)?;
    let mut lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) if lock.metadata()?.nlink() > 0 => lock,
        Ok(_) | Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
        Err((_, errno)) => return Err(errno.into()),
    };
    lock.write_all(path.as_os_str().as_encoded_bytes())?;
    Ok(Some(lock))
}

/// Removes a directory, then its lock file. If the removal fails, the lock file stays, and the next start tries again.
fn remove(path: &Path, identity: Identity, lock_path: &Path) -> Result<(), Leftover> {
    match removal::remove(path, identity) {
        Err(source) if source.kind() != io::ErrorKind::NotFound && is_still(path, identity) => {
            Err(Leftover { path: path.to_owned(), source })
        }
        _ => {
            let _ = fs::remove_file(lock_path);
            Ok(())
        }
    }
}

fn is_still(path: &Path, identity: Identity) -> bool {
    removal::open(path).and_then(Identity::of).is_ok_and(|found| found == identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temp_directory_goes_with_its_owner() {
        let (locks, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let temps = Temps::open(cache.path(), false).unwrap();
        let temp = PrivateTemp::create(&temps, locks.path()).unwrap();
        let path = temp.path().to_owned();
        fs::create_dir(path.join("d")).unwrap();
        let mut closed = fs::metadata(path.join("d")).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut closed, 0);
        fs::set_permissions(path.join("d"), closed).unwrap();
        remove_stale(locks.path());
        assert!(path.is_dir(), "a living owner's directory stays");
        drop(temp);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(locks.path()).unwrap().count(), 0);
    }

    #[test]
    fn starts_beside_one_another_take_nothing_from_one_another() {
        let (locks, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let temps = Temps::open(cache.path(), false).unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        assert!(remove_stale(locks.path()).is_empty());
                    }
                });
            }
            let made: Result<Vec<_>, _> =
                (0..200).map(|_| PrivateTemp::create(&temps, locks.path())).collect();
            let kept = made
                .as_ref()
                .map(|made| made.iter().filter(|temp| temp.path.is_dir() && temp.lock_path.exists()).count());
            let told = kept.map_err(ToString::to_string);
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(told, Ok(200));
        });
    }

    #[test]
    fn what_cannot_be_made_is_told_with_what_moves_it_elsewhere() {
        let told = |variable, errno| {
            let (path, source) = (PathBuf::from("/p"), io::Error::from_raw_os_error(errno));
            let error = TempError { path, variable, source }.to_string();
            error.split_once("hint: ").map(|(_, next)| next.to_owned()).unwrap_or_default()
        };
        assert_eq!(told("TMPDIR", libc::EACCES), "set TMPDIR to a directory that you can write");
        assert_eq!(
            told("BAILIWICK_HOME", libc::ENOSPC),
            "free some space on that file system, or set BAILIWICK_HOME to a directory that you can write"
        );
        assert!(
            told("TMPDIR", libc::EROFS).ends_with("needs such a directory: docker run --tmpfs /tmp:exec")
        );
    }

    #[test]
    fn a_dead_owners_directory_is_removed_and_nothing_else() {
        let locks = tempfile::tempdir().unwrap();
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join("bw-left");
        fs::create_dir_all(left.join("d")).unwrap();
        let identity = Identity::of(removal::open(&left).unwrap()).unwrap();
        let text = format!("{}\0{} {}\n", left.display(), identity.device, identity.inode);
        fs::write(locks.path().join("bw-left"), text).unwrap();
        // A directory that was replaced, and one with an incomplete lock file.
        for (name, rest) in [("bw-other", "\x001 1\n"), ("bw-torn", "\x001 1")] {
            let path = place.path().join(name);
            fs::create_dir_all(path.join("kept")).unwrap();
            fs::write(locks.path().join(name), format!("{}{rest}", path.display())).unwrap();
        }
        fs::write(locks.path().join("bw-foreign"), place.path().as_os_str().as_encoded_bytes()).unwrap();
        assert!(remove_stale(locks.path()).is_empty());
        assert!(place.path().join("bw-other/kept").is_dir() && place.path().join("bw-torn/kept").is_dir());
        assert!(!left.exists());
        assert!(place.path().is_dir(), "a path that is no private temp is never removed");
        assert_eq!(fs::read_dir(locks.path()).unwrap().count(), 0);
    }
}
