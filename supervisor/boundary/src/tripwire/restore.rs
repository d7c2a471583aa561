//! Restores watched files. Each step uses one name in an open directory, and never follows a link.
//!
//! If a file cannot be restored, the changed file is renamed or loses all permissions. Neither needs disk space.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, openat, renameat, renameat2};
use nix::sys::stat::{Mode, SFlag, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::access::PlaceAccess;
use super::aside::{Aside, TakenOut};
use super::beneath;
use super::state::{FileBody, FileKind, TripwireListing, WatchState, WatchedPlace};

#[derive(Debug, Default)]
pub(super) struct Restored {
    pub(super) moved_to: Option<PathBuf>,
    /// Error because of which the changed file was removed instead of moved; `None` without an error.
    pub(super) unmoved: Option<io::Error>,
    pub(super) closed: bool,
    pub(super) failure: Option<Errno>,
}

impl From<TakenOut> for Restored {
    fn from(TakenOut { moved_to, unmoved }: TakenOut) -> Self {
        Self { moved_to, unmoved, ..Self::default() }
    }
}

impl Restored {
    fn of(outcome: nix::Result<Self>) -> Self {
        outcome.unwrap_or_else(|error| Self { failure: Some(error), ..Self::default() })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Restorer<'a> {
    pub(super) root: &'a OwnedFd,
    pub(super) before: &'a WatchState,
    pub(super) aside: Aside<'a>,
}

impl Restorer<'_> {
    pub(super) fn restore(self, path: &Path) -> Restored {
        match self.before.places.get(path) {
            Some(place) => self.put_back(path, place),
            None => Restored::of(self.withdraw(path)),
        }
    }

    pub(super) fn thin(self, path: &Path, listing: TripwireListing) -> Restored {
        Restored::of(self.thinned(path, listing))
    }

    pub(super) fn keep(self, path: &Path, content: &[u8]) -> Restored {
        let kept = || {
            let (parent, name) = beneath::open_parent(self.root, path, false)?;
            let access = match self.before.places.get(path) {
                Some(place) => place.access.clone(),
                None => self.narrowed(path, &PlaceAccess::of(&beneath::stat(&parent, name)?)),
            };
            renameat(&parent, write_beside(&parent, content, &access)?.as_os_str(), &parent, name)
        };
        match kept() {
            Ok(()) => Restored::default(),
            Err(error) => self.without(path, error),
        }
    }

    pub(super) fn give(self, path: &Path, access: &PlaceAccess) -> Restored {
        let given = if path == Path::new("") {
            access.give(&beneath::own_path(self.root)).map_err(|error| beneath::errno(&error))
        } else {
            beneath::open_parent(self.root, path, false)
                .and_then(|(parent, name)| beneath::set_access(&parent, name, access))
        };
        Restored::of(given.map(|()| Restored::default()))
    }

    fn narrowed(self, path: &Path, access: &PlaceAccess) -> PlaceAccess {
        self.before.around(path).map_or_else(|| access.clone(), |around| access.narrowed_to(around))
    }

    fn put_back(self, path: &Path, place: &WatchedPlace) -> Restored {
        let put_back = || {
            let (parent, name) = self.parent(path)?;
            match &place.body {
                FileBody::File(content) => {
                    let beside = write_beside(&parent, content, &place.access)?;
                    self.exchange(&parent, &beside, name, place.kind)
                }
                FileBody::Link(target) => {
                    let taken = self.aside.take_out(&parent, name, name)?;
                    symlinkat(target.as_os_str(), &parent, name)?;
                    Ok(taken.into())
                }
                FileBody::Directory => self.directory(&parent, name, &place.access),
                // The content of such a file was never recorded.
                FileBody::Closed(_) => Err(Errno::EFBIG),
            }
        };
        put_back().unwrap_or_else(|error| self.without(path, error))
    }

    /// Opens the parent of `path`. Creates missing directories with their recorded permissions.
    fn parent(self, path: &Path) -> nix::Result<(OwnedFd, &OsStr)> {
        match beneath::open_parent(self.root, path, false) {
            Err(Errno::ENOENT) => {}
            opened => return opened,
        }
        let mut above: Vec<_> = path.ancestors().skip(1).filter(|above| *above != Path::new("")).collect();
        above.reverse();
        for directory in above {
            let (parent, name) = beneath::open_parent(self.root, directory, false)?;
            match mkdirat(&parent, name, Mode::from_bits_truncate(0o755)) {
                Err(Errno::EEXIST) => {}
                made => {
                    made?;
                    if let Some(access) = self.before.directories.get(directory) {
                        beneath::set_access(&parent, name, access)?;
                    }
                }
            }
        }
        beneath::open_parent(self.root, path, false)
    }

    /// Exchanges the changed file `name` with the restored file `beside`, and moves the changed one out of the project.
    fn exchange(
        self,
        parent: &OwnedFd,
        beside: &OsStr,
        name: &OsStr,
        kind: FileKind,
    ) -> nix::Result<Restored> {
        let is_kept = kind != FileKind::Config;
        let exchanged = if is_kept {
            renameat2(parent, beside, parent, name, RenameFlags::RENAME_EXCHANGE)
        } else {
            Err(Errno::EINVAL)
        };
        if exchanged.is_ok() {
            return self.aside.take_out(parent, beside, name).map(Restored::from);
        }
        // There was no file, or the file system cannot exchange names.
        let replace = || {
            let is_file =
                beneath::stat(parent, name).is_ok_and(|stat| beneath::kind(&stat) == SFlag::S_IFREG);
            let taken = if is_file && !is_kept {
                TakenOut::default()
            } else {
                self.aside.take_out(parent, name, name)?
            };
            renameat(parent, beside, parent, name)?;
            Ok(taken.into())
        };
        replace().inspect_err(|_: &Errno| {
            let _ = unlinkat(parent, beside, UnlinkatFlags::NoRemoveDir);
        })
    }

    fn directory(self, parent: &OwnedFd, name: &OsStr, access: &PlaceAccess) -> nix::Result<Restored> {
        let is_there = beneath::stat(parent, name).is_ok_and(|stat| beneath::kind(&stat) == SFlag::S_IFDIR);
        let mut restored = Restored::default();
        if !is_there {
            restored = self.aside.take_out(parent, name, name)?.into();
            mkdirat(parent, name, Mode::S_IRWXU)?;
        }
        beneath::set_access(parent, name, access)?;
        Ok(restored)
    }

    fn withdraw(self, path: &Path) -> nix::Result<Restored> {
        let taken = match beneath::open_parent(self.root, path, false) {
            Ok((parent, name)) => self.aside.take_out(&parent, name, name)?,
            // The file is already gone.
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(Restored::default()),
            Err(error) => return Err(error),
        };
        for directory in path.ancestors().skip(1).filter(|path| *path != Path::new("")) {
            if self.before.knows(directory) {
                break;
            }
            let (parent, name) = beneath::open_parent(self.root, directory, false)?;
            if unlinkat(&parent, name, UnlinkatFlags::RemoveDir).is_err() {
                break;
            }
        }
        Ok(taken.into())
    }

    fn thinned(self, path: &Path, listing: TripwireListing) -> nix::Result<Restored> {
        let directory = match beneath::open_parent(self.root, path, false) {
            Ok((parent, name)) => beneath::open_own_directory(&parent, name)?,
            // The watched directory itself.
            Err(Errno::EINVAL) => self.root.try_clone().map_err(|error| beneath::errno(&error))?,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(Restored::default()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        let seen = beneath::each(&directory, |name, file_type| {
            if listing.has(&name, file_type) && !self.before.knows(&path.join(&name)) {
                names.push(name);
            }
            ControlFlow::Continue(())
        });
        seen.map_err(|error| beneath::errno(&error))?;
        let together = self.aside.directory_for(path.file_name().unwrap_or(OsStr::new("project")));
        let aside = Aside { directory: together.as_deref(), ..self.aside };
        let (mut restored, mut outcome) = (Restored::default(), Ok(()));
        for name in names {
            match aside.take_out(&directory, &name, &name) {
                Ok(taken) => restored.unmoved = restored.unmoved.or(taken.unmoved),
                Err(error) => outcome = Err(error),
            }
        }
        restored.moved_to = together.filter(|together| together.exists());
        outcome.map(|()| restored)
    }

    fn without(self, path: &Path, error: Errno) -> Restored {
        let failure = Some(error);
        let Ok((parent, name)) = beneath::open_parent(self.root, path, false) else {
            return Restored { failure, ..Restored::default() };
        };
        if beneath::stat(&parent, name) == Err(Errno::ENOENT) {
            return Restored { failure, ..Restored::default() };
        }
        let moved = self.aside.move_out(&parent, name, name);
        let closed = !matches!(moved, Some(Ok(_))) && close(&parent, name);
        Restored { moved_to: moved.and_then(Result::ok), closed, failure, ..Restored::default() }
    }
}

/// Removes all permissions of a file or directory; deletes a link instead. Returns true on success.
fn close(parent: &OwnedFd, name: &OsStr) -> bool {
    match beneath::set_mode(parent, name, 0) {
        Err(Errno::ELOOP) => unlinkat(parent, name, UnlinkatFlags::NoRemoveDir).is_ok(),
        closed => closed.is_ok(),
    }
}

/// Writes a file under a temporary name, so that the final name never has partial content. Returns the temporary name.
fn write_beside(parent: &OwnedFd, content: &[u8], access: &PlaceAccess) -> nix::Result<OsString> {
    let beside = OsString::from(format!(".bailiwick-{}", uuid::Uuid::new_v4().simple()));
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(parent, beside.as_os_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let written = file.write_all(content).and_then(|()| access.give(&beneath::own_path(&file)));
    match written {
        Ok(()) => Ok(beside),
        Err(error) => {
            let _ = unlinkat(parent, beside.as_os_str(), UnlinkatFlags::NoRemoveDir);
            Err(beneath::errno(&error))
        }
    }
}
