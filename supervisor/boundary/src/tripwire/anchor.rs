//! Keeps the project's `.git` directory open, and moves it back if a command has renamed it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, openat, renameat2};
use nix::sys::stat::{FileStat, Mode, fstat};

use super::beneath;
use super::root::GIT;

/// Maximum number of attempts to move `.git` back, in case another process keeps moving it.
const TRIES: usize = 8;

/// Descriptor of the original `.git` directory, still valid if the directory is moved. `None` if there is no `.git`.
#[derive(Debug)]
pub(super) struct Anchor(Option<OwnedFd>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundAnchor {
    /// The directory is still at `.git`, or was deleted.
    InPlace,
    PutBack,
    Lost(Errno),
}

impl Anchor {
    pub(super) fn new(root: &OwnedFd) -> Self {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Self(openat(root, GIT, flags, Mode::empty()).ok())
    }

    pub(super) fn hold(&mut self, root: &OwnedFd) -> FoundAnchor {
        let found = self.0.as_ref().map_or(FoundAnchor::InPlace, |held| put_back(root, held));
        // A deleted directory is released, and the new one is held instead.
        if found == FoundAnchor::InPlace {
            *self = Self::new(root);
        }
        found
    }
}

fn put_back(root: &OwnedFd, held: &OwnedFd) -> FoundAnchor {
    let mut failure = Errno::EBUSY;
    for attempt in 0..TRIES {
        let Ok(own) = fstat(held) else { return FoundAnchor::InPlace };
        let there = beneath::stat(root, OsStr::new(GIT));
        if there.as_ref().is_ok_and(|there| is_same(there, &own)) {
            return if attempt == 0 { FoundAnchor::InPlace } else { FoundAnchor::PutBack };
        }
        let Some((parent, name)) = whereabouts(held, &own) else { return FoundAnchor::InPlace };
        // An exchange puts the replacement where the directory was.
        let flags = if there.is_ok() { RenameFlags::RENAME_EXCHANGE } else { RenameFlags::RENAME_NOREPLACE };
        if let Err(error) = renameat2(&parent, name.as_os_str(), root, GIT, flags) {
            failure = error;
        }
    }
    FoundAnchor::Lost(failure)
}

/// Returns the parent and the current name of the open directory. `None` if it was deleted or cannot be found.
fn whereabouts(held: &OwnedFd, own: &FileStat) -> Option<(OwnedFd, std::ffi::OsString)> {
    let path = std::fs::read_link(beneath::own_path(held)).ok()?;
    let name = path.file_name()?.to_owned();
    let mut parent = beneath::open_root(std::path::Path::new("/")).ok()?;
    for step in path.parent()?.components().skip(1) {
        parent = beneath::open_directory(&parent, step.as_os_str()).ok()?;
    }
    // The path in /proc may be out of date: what is found at it must be the held directory itself.
    let is_it = beneath::stat(parent.as_fd(), &name).is_ok_and(|there| is_same(&there, own));
    is_it.then_some((parent, name))
}

const fn is_same(one: &FileStat, other: &FileStat) -> bool {
    one.st_dev == other.st_dev && one.st_ino == other.st_ino
}
