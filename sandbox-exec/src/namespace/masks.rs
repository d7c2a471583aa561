//! Masks over hidden places: an empty file or directory that nobody can open.
//!
//! Modes alone would not suffice, since the owner could change them: the mount is read-only as well.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};

use super::mount::{self, Attributes, Reach};

const DIRECTORY: &str = "directory";
const FILE: &str = "file";

/// File system of the masks, mounted.
#[derive(Debug)]
pub(super) struct Masks(OwnedFd);

/// Creates an unreadable directory and an unreadable file, for good.
pub(super) fn furnish(masks: BorrowedFd<'_>) -> io::Result<()> {
    mkdirat(masks, DIRECTORY, Mode::empty())?;
    drop(openat(masks, FILE, OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC, Mode::empty())?);
    mount::restrict(masks, Attributes::DATA, Reach::Mount)
}

impl Masks {
    /// Mounts the masks at a place that another mount will cover: before Linux 6.15 an unattached mount
    /// cannot be copied.
    pub(super) fn mounted(masks: OwnedFd, place: BorrowedFd<'_>) -> io::Result<Self> {
        mount::attach(masks.as_fd(), place)?;
        Ok(Self(masks))
    }

    /// Covers the file or directory at `path`, if it exists.
    pub(super) fn cover(&self, path: &Path) -> io::Result<()> {
        mount::while_it_stands(|| self.cover_found(path))
    }

    fn cover_found(&self, path: &Path) -> io::Result<()> {
        let place = match mount::open(path) {
            Ok(place) => place,
            Err(error) if is_unreachable(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let directory =
            SFlag::from_bits_truncate(fstat(&place)?.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR;
        let mask = mount::open_in(self.0.as_fd(), Path::new(if directory { DIRECTORY } else { FILE }))?;
        mount::attach(mount::copy(mask.as_fd(), Reach::Mount)?.as_fd(), place.as_fd())
    }
}

/// True if the program cannot get there either: the path does not exist, lies in a directory that even this
/// process cannot search, behind a link (whose target is hidden by its own name), or on a mount that does not
/// answer.
pub(super) fn is_unreachable(error: &io::Error) -> bool {
    use nix::libc;
    crate::domain::is_out_of_reach(error) || error.raw_os_error() == Some(libc::ELOOP)
}
