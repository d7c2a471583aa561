//! The project's `.git` itself: one that was renamed away is put back, whatever stands in its place.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, openat, renameat2};
use nix::sys::stat::{FileStat, Mode, fstat};

use super::beneath;
use super::root::GIT;

/// How often a put-back is tried against whoever still moves things.
const TRIES: usize = 8;

/// Holds the directory that `.git` was, wherever it is moved.
#[derive(Debug)]
pub(super) struct Anchor(Option<OwnedFd>);

/// What became of `.git`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundAnchor {
    /// It is where it was, or is gone for good: what stands there is judged by what is in it.
    InPlace,
    /// It was elsewhere, and is back.
    PutBack,
    /// It is elsewhere, and stays there.
    Lost(Errno),
}

impl Anchor {
    /// Holds what `.git` is now, if it is a directory.
    pub(super) fn new(root: &OwnedFd) -> Self {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Self(openat(root, GIT, flags, Mode::empty()).ok())
    }

    /// Puts it back where it was moved.
    pub(super) fn hold(&mut self, root: &OwnedFd) -> FoundAnchor {
        let found = self.0.as_ref().map_or(FoundAnchor::InPlace, |held| put_back(root, held));
        // What was deleted is let go of: the next one counts from now.
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
        // What stands in its place goes where it was.
        let flags = if there.is_ok() { RenameFlags::RENAME_EXCHANGE } else { RenameFlags::RENAME_NOREPLACE };
        if let Err(error) = renameat2(&parent, name.as_os_str(), root, GIT, flags) {
            failure = error;
        }
    }
    FoundAnchor::Lost(failure)
}

/// The directory that holds it now, and its name there; absent when it was deleted.
fn whereabouts(held: &OwnedFd, own: &FileStat) -> Option<(OwnedFd, std::ffi::OsString)> {
    let path = std::fs::read_link(beneath::own_path(held)).ok()?;
    let name = path.file_name()?.to_owned();
    let mut parent = beneath::open_root(std::path::Path::new("/")).ok()?;
    for step in path.parent()?.components().skip(1) {
        parent = beneath::open_directory(&parent, step.as_os_str()).ok()?;
    }
    // The path is only where it was a moment ago: what counts is that this name is that very directory.
    let is_it = beneath::stat(parent.as_fd(), &name).is_ok_and(|there| is_same(&there, own));
    is_it.then_some((parent, name))
}

const fn is_same(one: &FileStat, other: &FileStat) -> bool {
    one.st_dev == other.st_dev && one.st_ino == other.st_ino
}
