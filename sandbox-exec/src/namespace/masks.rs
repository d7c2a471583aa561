//! Masks over hidden paths: an empty file or directory without permissions, mounted over each.
//!
//! The mount of a mask is read-only, since the owner could otherwise change the permissions.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};

use super::mount::{self, Attributes, Reach};
use super::resolving;

const DIRECTORY: &str = "directory";
const FILE: &str = "file";

/// Mounted file system with the masks.
#[derive(Debug)]
pub(super) struct Masks(OwnedFd);

/// Creates an unreadable directory and an unreadable file, and those by which names of hosts are resolved, and
/// makes the file system read-only.
pub(super) fn furnish(masks: BorrowedFd<'_>, resolves: bool) -> io::Result<()> {
    if resolves {
        resolving::write(masks)?;
    }
    mkdirat(masks, DIRECTORY, Mode::empty())?;
    drop(openat(masks, FILE, OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC, Mode::empty())?);
    mount::restrict(masks, Attributes::DATA, Reach::Mount)
}

impl Masks {
    /// Mounts the masks at a place that another mount will cover. They must be attached because Linux before
    /// 6.15 copies only attached mounts.
    pub(super) fn mounted(masks: OwnedFd, place: BorrowedFd<'_>) -> io::Result<Self> {
        mount::attach(masks.as_fd(), place)?;
        Ok(Self(masks))
    }

    /// Covers the file or directory at `path`, if it exists.
    pub(super) fn cover(&self, path: &Path) -> io::Result<()> {
        mount::while_it_stands(|| self.cover_found(path, None))
    }

    /// Replaces the file at `path`, if it exists, by one of the masks' file system.
    pub(super) fn replace(&self, path: &Path, by: &str) -> io::Result<()> {
        mount::while_it_stands(|| self.cover_found(path, Some(by)))
    }

    fn cover_found(&self, path: &Path, by: Option<&str>) -> io::Result<()> {
        let place = match mount::open(path) {
            Ok(place) => place,
            Err(error) if is_unreachable(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let directory =
            SFlag::from_bits_truncate(fstat(&place)?.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR;
        let mask = by.unwrap_or(if directory { DIRECTORY } else { FILE });
        let mask = mount::open_in(self.0.as_fd(), Path::new(mask))?;
        mount::attach(mount::copy(mask.as_fd(), Reach::Mount)?.as_fd(), place.as_fd())
    }
}

/// True if an error of opening a path means that the path needs no mask. Either the program cannot reach the
/// path (it does not exist, even this process cannot search its directory, or its mount does not answer), or
/// the path leads over a link, whose target gets a mask of its own.
pub(super) fn is_unreachable(error: &io::Error) -> bool {
    use nix::libc;
    crate::domain::is_out_of_reach(error) || error.raw_os_error() == Some(libc::ELOOP)
}
