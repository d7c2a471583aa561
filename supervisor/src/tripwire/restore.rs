//! Putting back what was there: on descriptors, name by name, and never through a link.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::beneath;
use super::state::{FileBody, TripwireListing, WatchState, WatchedPlace};

/// Makes a place what it was; `before` knows which directories were there.
pub(super) fn restore(root: &OwnedFd, path: &Path, before: &WatchState) -> nix::Result<()> {
    let Some(place) = before.places.get(path) else { return withdraw(root, path, before) };
    let (parent, name) = beneath::open_parent(root, path, true)?;
    match &place.body {
        FileBody::File(content) => write(&parent, name, content, place.mode),
        FileBody::Link(target) => {
            beneath::remove(&parent, name)?;
            symlinkat(target.as_os_str(), &parent, name)
        }
        FileBody::Directory => directory(&parent, name, place),
        // Its content was never taken.
        FileBody::Closed(_) => Err(Errno::EFBIG),
    }
}

/// Removes from a directory what is watched there and was not there before, however much it is.
pub(super) fn thin(
    root: &OwnedFd,
    path: &Path,
    listing: TripwireListing,
    before: &WatchState,
) -> nix::Result<()> {
    let directory = if path == Path::new("") {
        root.try_clone().map_err(|error| beneath::errno(&error))?
    } else {
        let (parent, name) = beneath::open_parent(root, path, false)?;
        beneath::open_own_directory(&parent, name)?
    };
    let mut outcome = Ok(());
    let seen = beneath::each(&directory, |name, file_type| {
        if listing.has(&name, file_type) && !before.knows(&path.join(&name)) {
            outcome = outcome.and(beneath::remove(&directory, &name));
        }
    });
    seen.map_err(|error| beneath::errno(&error)).and(outcome)
}

/// Writes a configuration of which a part stays.
pub(super) fn keep(root: &OwnedFd, path: &Path, content: &[u8]) -> nix::Result<()> {
    let (parent, name) = beneath::open_parent(root, path, false)?;
    let mode = beneath::stat(&parent, name)?.st_mode & 0o777;
    write(&parent, name, content, mode)
}

/// Removes what was not there, and the directories that were made for it.
fn withdraw(root: &OwnedFd, path: &Path, before: &WatchState) -> nix::Result<()> {
    match beneath::open_parent(root, path, false) {
        Ok((parent, name)) => beneath::remove(&parent, name)?,
        // Nothing leads there any more.
        Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
        Err(error) => return Err(error),
    }
    for directory in path.ancestors().skip(1).filter(|path| *path != Path::new("")) {
        if before.directories.contains(directory) || before.places.contains_key(directory) {
            break;
        }
        let (parent, name) = beneath::open_parent(root, directory, false)?;
        if unlinkat(&parent, name, UnlinkatFlags::RemoveDir).is_err() {
            break;
        }
    }
    Ok(())
}

fn directory(parent: &OwnedFd, name: &OsStr, place: &WatchedPlace) -> nix::Result<()> {
    let is_there = beneath::stat(parent, name).is_ok_and(|stat| beneath::kind(&stat) == SFlag::S_IFDIR);
    if !is_there {
        beneath::remove(parent, name)?;
        mkdirat(parent, name, Mode::S_IRWXU)?;
    }
    beneath::set_mode(parent, name, place.mode)
}

/// Writes a file beside the place and renames it there, so that the place never holds a part.
fn write(parent: &OwnedFd, name: &OsStr, content: &[u8], mode: u32) -> nix::Result<()> {
    let is_directory = beneath::stat(parent, name).is_ok_and(|stat| beneath::kind(&stat) == SFlag::S_IFDIR);
    if is_directory {
        beneath::remove(parent, name)?;
    }
    let beside = OsString::from(format!(".bailiwick-{}", uuid::Uuid::new_v4().simple()));
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(parent, beside.as_os_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let written = file
        .write_all(content)
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        .map_err(|error| beneath::errno(&error))
        .and_then(|()| renameat(parent, beside.as_os_str(), parent, name));
    if written.is_err() {
        let _ = unlinkat(parent, beside.as_os_str(), UnlinkatFlags::NoRemoveDir);
    }
    written
}
