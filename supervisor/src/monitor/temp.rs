//! An agent's private temp directory: random name, short path, removed at the end, or by the next start.
//!
//! Unix socket paths end at 108 bytes (unix(7)), so the directory lies directly below the system's temp directory. A
//! lock file in the state directory names it while its owner lives: flock(2) dies with the process, so a directory
//! whose lock can be had belongs to nobody and is removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use uuid::Uuid;

/// Room for a socket's name below the temp directory, out of the 108 bytes of `sun_path`.
const LONGEST_PARENT: usize = 40;

/// Why there is no private temp directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a private temp directory at {path}: {source}")]
pub struct TempError {
    path: PathBuf,
    source: io::Error,
}

/// A private temp directory; dropping it removes it with everything in it.
#[derive(Debug)]
pub struct PrivateTemp {
    path: PathBuf,
    lock_path: PathBuf,
    // Held for as long as the directory is ours.
    _lock: Flock<File>,
}

impl PrivateTemp {
    /// Makes a fresh directory, owned by this process until it ends; `locks` is a directory of the state directory.
    pub fn create(locks: &Path) -> Result<Self, TempError> {
        let name = format!("bw-{}", &Uuid::new_v4().simple().to_string()[..12]);
        let path = parent().join(&name);
        let lock_path = locks.join(&name);
        let error = |source| TempError { path: path.clone(), source };
        let lock = lock(&lock_path, &path).map_err(error)?;
        DirBuilder::new().mode(0o700).create(&path).map_err(error)?;
        Ok(Self { path, lock_path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTemp {
    fn drop(&mut self) {
        remove(&self.path, &self.lock_path);
    }
}

/// Removes the directories of processes that ended without removing them.
pub fn remove_stale(locks: &Path) {
    let Ok(entries) = fs::read_dir(locks) else { return };
    for entry in entries.flatten() {
        let lock_path = entry.path();
        let Ok(file) = File::open(&lock_path) else {
            continue;
        };
        let Ok(mut file) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
            continue;
        };
        let mut path = String::new();
        if file.read_to_string(&mut path).is_ok() && names_a_private_temp(Path::new(&path), &lock_path) {
            remove(Path::new(&path), &lock_path);
        } else {
            let _ = fs::remove_file(&lock_path);
        }
    }
}

/// Whether the text of a lock file is what we write: a torn or foreign one must never name what is removed.
fn names_a_private_temp(path: &Path, lock_path: &Path) -> bool {
    let name = path.file_name();
    path.is_absolute()
        && name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"bw-"))
        && name == lock_path.file_name()
}

fn parent() -> PathBuf {
    let wanted = std::env::temp_dir();
    match fs::canonicalize(wanted) {
        Ok(path) if path.as_os_str().len() <= LONGEST_PARENT && path != Path::new("/") => path,
        _ => PathBuf::from("/tmp"),
    }
}

fn lock(lock_path: &Path, path: &Path) -> io::Result<Flock<File>> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(lock_path)?;
    let mut lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)?;
    lock.write_all(path.as_os_str().as_encoded_bytes())?;
    Ok(lock)
}

/// Removes a tree that confined commands filled: std's `remove_dir_all` follows no links, not even in a race.
fn remove(path: &Path, lock_path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path);
            let _ = fs::remove_dir_all(path);
        }
        _ => {}
    }
    // What could not be removed keeps its lock file, and the next start tries again.
    if fs::symlink_metadata(path).is_err() {
        let _ = fs::remove_file(lock_path);
    }
}

/// Gives the owner back the right to empty directories that a command closed (`chmod 0`).
fn make_writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    // Not through links: only what is a directory by itself is opened up.
    let is_directory = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    if !is_directory || fs::set_permissions(path, fs::Permissions::from_mode(0o700)).is_err() {
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        make_writable(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temp_directory_goes_with_its_owner() {
        let locks = tempfile::tempdir().unwrap();
        let temp = PrivateTemp::create(locks.path()).unwrap();
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
    fn a_dead_owners_directory_is_removed_and_nothing_else() {
        let locks = tempfile::tempdir().unwrap();
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join("bw-left");
        fs::create_dir_all(left.join("d")).unwrap();
        fs::write(locks.path().join("bw-left"), left.as_os_str().as_encoded_bytes()).unwrap();
        fs::write(locks.path().join("bw-foreign"), place.path().as_os_str().as_encoded_bytes()).unwrap();
        remove_stale(locks.path());
        assert!(!left.exists());
        assert!(place.path().is_dir(), "a path that is no private temp is never removed");
        assert_eq!(fs::read_dir(locks.path()).unwrap().count(), 0);
    }
}
