//! Removes a directory tree in which confined commands may have created anything.
//!
//! Before a directory is removed, its subdirectories are moved to the top of the tree, so that two descriptors suffice
//! for any depth. Links are not followed, and directories on other mounts are not entered. Each name is read from the
//! same open directory in which it is used.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2, renameat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Maximum time for the removal of a tree, in case a process fills it faster than it is emptied.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl Identity {
    pub(super) fn of(directory: impl AsFd) -> io::Result<Self> {
        let meta = fstat(directory)?;
        Ok(Self { device: meta.st_dev, inode: meta.st_ino })
    }
}

/// Opens a directory (`O_PATH`). Fails if the last component is a symbolic link.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = nix::fcntl::open(parent, PLACE, Mode::empty())?;
    Ok(openat(parent, name, PLACE | OFlag::O_NOFOLLOW, Mode::empty())?)
}

/// Removes the directory at `path` with its contents, but only if it is the directory with the identity `meant`.
pub(super) fn remove(path: &Path, meant: Identity) -> io::Result<()> {
    let root = open(path)?;
    if Identity::of(&root)? != meant {
        return Err(io::Error::other("another directory is there now"));
    }
    TempRemoval { root, moved: 0, changes: 0, until: Instant::now() + PATIENCE }.empty()?;
    fs::remove_dir(path)
}

const PLACE: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

struct TempRemoval {
    root: OwnedFd,
    moved: u64,
    changes: u64,
    until: Instant,
}

impl TempRemoval {
    fn empty(mut self) -> io::Result<()> {
        open_up(self.root.as_fd());
        loop {
            let before = self.changes;
            let mut failure = None;
            for entry in fs::read_dir(by_descriptor(self.root.as_fd()))? {
                let name = entry?.file_name();
                if let Err(error) = self.remove(&name) {
                    failure = Some(error);
                }
            }
            if self.changes == before {
                return failure.map_or(Ok(()), Err);
            }
        }
    }

    /// Removes an entry at the top of the tree. If it is a directory, removes as much of it as is possible now.
    fn remove(&mut self, name: &OsStr) -> io::Result<()> {
        if Instant::now() > self.until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match unlinkat(&self.root, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) => self.changes += 1,
            Err(errno @ (Errno::EISDIR | Errno::EPERM)) => {
                let directory = enter(self.root.as_fd(), name, errno)?;
                let emptied = self.clear(directory.as_fd());
                unlinkat(&self.root, name, UnlinkatFlags::RemoveDir)
                    .map_err(|errno| emptied.err().unwrap_or(errno.into()))?;
                self.changes += 1;
            }
            // Another process removed the entry.
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    fn clear(&mut self, directory: BorrowedFd<'_>) -> io::Result<()> {
        let mut failure = None;
        for entry in fs::read_dir(by_descriptor(directory))? {
            let name = entry?.file_name();
            let result = match unlinkat(directory, name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
                Err(errno @ (Errno::EISDIR | Errno::EPERM)) => self.move_up(directory, &name, errno),
                result => result.map_err(Into::into),
            };
            match result {
                Ok(()) => self.changes += 1,
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn move_up(&mut self, directory: BorrowedFd<'_>, name: &OsStr, why: Errno) -> io::Result<()> {
        // A directory without write permission cannot be moved, because that changes its `..` entry.
        drop(enter(directory, name, why)?);
        loop {
            let fresh = format!("bw-moved-{}", self.moved);
            self.moved += 1;
            match renameat(directory, name, &self.root, fresh.as_str()) {
                // The commands have created an entry with that name, so the next number is tried.
                Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
                result => return Ok(result?),
            }
        }
    }
}

/// Opens a subdirectory on the same mount. Fails with `why` if the entry is not a directory.
fn enter(parent: BorrowedFd<'_>, name: &OsStr, why: Errno) -> io::Result<OwnedFd> {
    let flags = PLACE | OFlag::O_NOFOLLOW;
    let how = OpenHow::new().flags(flags);
    let how = how.resolve(
        ResolveFlag::RESOLVE_NO_XDEV | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_BENEATH,
    );
    let directory = match openat2(parent, name, how) {
        // The seccomp profiles of some containers deny openat2.
        Err(Errno::ENOSYS | Errno::EPERM) => openat(parent, name, flags, Mode::empty())?,
        Err(Errno::ENOTDIR | Errno::ELOOP) => return Err(why.into()),
        directory => directory?,
    };
    if fstat(&directory)?.st_dev != fstat(parent)?.st_dev {
        return Err(Errno::EXDEV.into());
    }
    open_up(directory.as_fd());
    Ok(directory)
}

/// Gives the owner all permissions on a directory from which a command removed them (`chmod 0`).
fn open_up(directory: BorrowedFd<'_>) {
    let _ = fs::set_permissions(by_descriptor(directory), Permissions::from_mode(0o700));
}

/// Returns the path in /proc of an open descriptor (`proc_pid_fd(5)`), since chmod(2) and getdents(2) reject `O_PATH`.
pub(super) fn by_descriptor(descriptor: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use nix::sys::stat::mkdirat;

    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf, Identity) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("tree");
        fs::create_dir(&root).unwrap();
        let identity = Identity::of(open(&root).unwrap()).unwrap();
        (place, root, identity)
    }

    #[test]
    fn a_tree_of_20000_levels_is_removed() {
        let (_place, root, identity) = tree();
        let mut directory = open(&root).unwrap();
        for level in 0..20_000 {
            mkdirat(&directory, "d", Mode::S_IRWXU).unwrap();
            if level % 1000 == 0 {
                File::create(by_descriptor(directory.as_fd()).join("bw-moved-7")).unwrap();
            }
            directory = openat(&directory, "d", PLACE, Mode::empty()).unwrap();
        }
        drop(directory);
        remove(&root, identity).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn a_directory_of_200000_entries_is_removed() {
        let (_place, root, identity) = tree();
        File::create(root.join("first")).unwrap();
        for number in 0..200_000 {
            fs::hard_link(root.join("first"), root.join(number.to_string()))
                .or_else(|_| File::create(root.join(number.to_string())).map(drop))
                .unwrap();
        }
        remove(&root, identity).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn closed_directories_fifos_sockets_and_links_are_removed_and_no_link_is_followed() {
        let (place, root, identity) = tree();
        let victim = place.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("kept"), "kept").unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        symlink(&victim, root.join("a/b/link")).unwrap();
        symlink(&victim, root.join("link")).unwrap();
        symlink("..", root.join("a/b/c/up")).unwrap();
        nix::unistd::mkfifo(&root.join("a/fifo"), Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("a/s")).unwrap();
        for closed in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(root.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        remove(&root, identity).unwrap();
        assert!(!root.exists());
        assert_eq!(fs::read_to_string(victim.join("kept")).unwrap(), "kept");
    }

    #[test]
    fn another_directory_of_the_same_name_stays() {
        let (_place, root, identity) = tree();
        fs::rename(&root, root.with_extension("old")).unwrap();
        fs::create_dir(&root).unwrap();
        fs::write(root.join("kept"), "").unwrap();
        assert!(remove(&root, identity).unwrap_err().to_string().contains("another directory"));
        assert!(root.join("kept").exists());
        fs::remove_dir_all(&root).unwrap();
        symlink(root.with_extension("old"), &root).unwrap();
        remove(&root, identity).unwrap_err();
        assert!(root.with_extension("old").exists());
    }

    #[test]
    fn what_cannot_be_removed_is_an_error_and_the_rest_goes() {
        let (_place, root, identity) = tree();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/kept"), "").unwrap();
        fs::write(root.join("a/gone"), "").unwrap();
        let change = |flag| Command::new("chattr").arg(flag).arg(root.join("a/b/kept")).output();
        if !change("+i").is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: files cannot be made immutable here");
            return;
        }
        let error = remove(&root, identity).unwrap_err();
        let left: Vec<_> = fs::read_dir(&root).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.len() == 1 && left[0].join("kept").exists(), "{left:?}");
        assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
        Command::new("chattr").arg("-i").arg(left[0].join("kept")).output().unwrap();
        remove(&root, identity).unwrap();
    }
}
