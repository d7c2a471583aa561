//! Masks over hidden paths: each path is covered by an empty file or directory without permissions.
//!
//! The masks are mounted read-only, since their owner could otherwise change the permissions.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};

use super::mount::{self, Attributes, Reach};
use super::resolving;

const DIRECTORY: &str = "directory";
const FILE: &str = "file";
const WINDOWS: &str = "windows";

/// Mode of a directory in which known names can be opened, but which cannot be listed.
const SEARCHED: libc::mode_t = 0o111;

#[derive(Debug)]
pub(super) struct Masks(OwnedFd);

/// Creates the unreadable file and directory, the files by which names of hosts are resolved, and the directories
/// around visible sockets. Then makes the file system of the masks read-only.
pub(super) fn furnish(masks: BorrowedFd<'_>, resolves: bool, windows: &[PathBuf]) -> io::Result<()> {
    if resolves {
        resolving::write(masks)?;
    }
    mkdirat(masks, DIRECTORY, Mode::empty())?;
    drop(openat(masks, FILE, OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC, Mode::empty())?);
    if !windows.is_empty() {
        mkdirat(masks, WINDOWS, Mode::from_bits_truncate(SEARCHED))?;
        windows.iter().try_for_each(|path| make_window(masks, path))?;
    }
    mount::restrict(masks, Attributes::DATA, Reach::Mount)
}

/// Creates a mount point for a visible socket. The directories above it cannot be listed.
fn make_window(masks: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let mut here = mount::open_in(masks, Path::new(WINDOWS))?;
    let mut names = path.strip_prefix("/").unwrap_or(path).iter().peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            let flags = OFlag::O_CREAT | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
            drop(openat(&here, name, flags, Mode::empty())?);
            break;
        }
        match mkdirat(&here, name, Mode::from_bits_truncate(SEARCHED)) {
            Err(Errno::EEXIST) => {}
            made => made?,
        }
        here = mount::open_in(here.as_fd(), Path::new(name))?;
    }
    Ok(())
}

impl Masks {
    /// Mounts the file system of the masks at `place`, which another mount covers later. It has to be mounted: Linux
    /// before 6.15 copies only attached mounts.
    pub(super) fn mounted(masks: OwnedFd, place: BorrowedFd<'_>) -> io::Result<Self> {
        mount::attach(masks.as_fd(), place)?;
        Ok(Self(masks))
    }

    pub(super) fn cover(&self, path: &Path) -> io::Result<()> {
        mount::while_it_stands(|| self.cover_found(path, None))
    }

    /// Covers a hidden directory by one that shows only the granted sockets in it.
    pub(super) fn cover_but_windows(&self, path: &Path) -> io::Result<()> {
        let cover = Path::new(WINDOWS).join(path.strip_prefix("/").unwrap_or(path));
        mount::while_it_stands(|| self.cover_found(path, Some(&cover)))
    }

    /// Covers the file at `path`, if it exists, with the file `by` of the masks.
    pub(super) fn replace(&self, path: &Path, by: &str) -> io::Result<()> {
        mount::while_it_stands(|| self.cover_found(path, Some(Path::new(by))))
    }

    fn cover_found(&self, path: &Path, by: Option<&Path>) -> io::Result<()> {
        let place = match mount::open(path) {
            Ok(place) => place,
            Err(error) if is_unreachable(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let directory =
            SFlag::from_bits_truncate(fstat(&place)?.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR;
        let mask = by.unwrap_or(Path::new(if directory { DIRECTORY } else { FILE }));
        let mask = mount::open_in(self.0.as_fd(), mask)?;
        mount::attach(mount::copy(mask.as_fd(), Reach::Mount)?.as_fd(), place.as_fd())
    }
}

/// True if an error of opening a path means that the program cannot reach it, or that the path leads over a link. (The
/// link's target gets a mask of its own.)
pub(super) fn is_unreachable(error: &io::Error) -> bool {
    crate::domain::is_out_of_reach(error) || error.raw_os_error() == Some(libc::ELOOP)
}
