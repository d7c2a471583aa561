//! Takes a snapshot of the watched files, within limits and without following links.
//!
//! If the first snapshot of a session exceeds a limit, the session does not start. Later snapshots include every file
//! of the first one, however many new files there are.

use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipc::text::one_line;
use nix::errno::Errno;
use nix::sys::stat::{FileStat, SFlag, fstat};

use super::access::PlaceAccess;
use super::beneath;
use super::bounds::{Bound, DEEPEST, LARGEST, LARGEST_JUDGED, PlaceBudget};
use super::state::{FileBody, FileKind, FileStamp, TripwireListing, WatchState, WatchedPlace};
use super::watch::Given;

/// Snapshot of watched files that is being taken.
pub(super) struct TripwireLook<'a> {
    before: Option<&'a WatchState>,
    /// Paths that the user lets agents change freely, relative to the watched directory.
    given: &'a Given,
    pub(super) budget: PlaceBudget,
    pub(super) trees: usize,
    pub(super) state: WatchState,
}

impl<'a> TripwireLook<'a> {
    /// Begins a snapshot. `before` is the recorded state, or `None` for the first snapshot.
    pub(super) fn new(before: Option<&'a WatchState>, given: &'a Given) -> Self {
        Self { before, given, budget: PlaceBudget::new(), trees: 0, state: WatchState::default() }
    }

    pub(super) fn more(state: WatchState, given: &'a Given) -> Self {
        Self { state, ..Self::new(None, given) }
    }

    pub(super) fn is_first(&self) -> bool {
        self.before.is_none()
    }

    pub(super) fn is_given(&self, path: &Path) -> bool {
        self.given.has(path)
    }

    pub(super) fn was_there(&self, path: &Path) -> bool {
        self.before.is_some_and(|before| before.knows(path))
    }

    pub(super) fn top(&mut self, root: &OwnedFd) {
        if let Ok(stat) = fstat(root) {
            self.state.directories.insert(PathBuf::new(), PlaceAccess::with_lists(&stat, root));
        }
    }

    pub(super) fn place(&mut self, at: &OwnedFd, path: PathBuf, kind: FileKind) {
        self.place_within(at, path, kind, DEEPEST);
    }

    fn place_within(&mut self, at: &OwnedFd, path: PathBuf, kind: FileKind, depth: usize) {
        let Some(name) = path.file_name().map(OsStr::to_owned) else { return };
        let stat = match beneath::stat(at, &name) {
            Ok(stat) => stat,
            Err(Errno::ENOENT) => return,
            Err(error) => return self.note(&path, &error.to_string()),
        };
        // A new entry that git does not know is moved aside as a whole.
        let is_moved = kind == FileKind::Unknown && !self.is_first() && !self.was_there(&path);
        let is_tree = beneath::kind(&stat) == SFlag::S_IFDIR && kind != FileKind::Config && !is_moved;
        if !is_tree {
            let place = self.look(at, &path, &name, kind, &stat);
            self.state.places.insert(path, place);
            return;
        }
        let held = beneath::open_own_directory(at, &name);
        let access = held
            .as_ref()
            .map_or_else(|_| PlaceAccess::of(&stat), |held| PlaceAccess::with_lists(&stat, held));
        self.state.places.insert(path.clone(), WatchedPlace { kind, body: FileBody::Directory, access });
        match held {
            Ok(held) => self.tree(&held, &path, kind, depth),
            Err(error) => self.cannot_read(&path, error),
        }
    }

    fn tree(&mut self, directory: &OwnedFd, path: &Path, kind: FileKind, depth: usize) {
        if self.is_given(path) {
            return;
        }
        let Some(depth) = depth.checked_sub(1) else { return self.met(path, Bound::Depth(DEEPEST)) };
        let kind = if kind == FileKind::Unknown { kind } else { FileKind::Whole };
        for (entry, _) in self.entries(directory, path, TripwireListing::Whole) {
            self.place_within(directory, path.join(entry), kind, depth);
        }
    }

    /// Opens a directory on the way to a watched file. Records any other entry like a watched file and returns `None`.
    pub(super) fn enter(&mut self, at: &OwnedFd, path: &Path) -> Option<OwnedFd> {
        let name = path.file_name()?;
        let stat = beneath::stat(at, name).ok()?;
        if beneath::kind(&stat) != SFlag::S_IFDIR {
            self.place(at, path.to_owned(), FileKind::Whole);
            return None;
        }
        let held = beneath::open_own_directory(at, name);
        let access = held
            .as_ref()
            .map_or_else(|_| PlaceAccess::of(&stat), |held| PlaceAccess::with_lists(&stat, held));
        self.state.directories.insert(path.to_owned(), access);
        held.map_err(|error| self.cannot_read(path, error)).ok()
    }

    /// Handles a path that is deeper than the limit. The first snapshot then fails. A later snapshot records a new path
    /// as unexpected, so that it will be removed.
    pub(super) fn beyond(&mut self, at: &OwnedFd, path: &Path, bound: Bound) {
        if self.is_first() {
            self.met(path, bound);
        } else if !self.was_there(path) {
            self.place(at, path.to_owned(), FileKind::Whole);
        }
    }

    pub(super) fn met(&mut self, path: &Path, bound: Bound) {
        if self.is_first() && !self.is_given(path) {
            self.state.met.push((path.to_owned(), bound));
        }
    }

    /// Returns the watched entries of a directory: all that are in the recorded state, and new ones within the limit.
    pub(super) fn entries(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
        listing: TripwireListing,
    ) -> Vec<(OsString, Option<FileType>)> {
        let mut kept = Vec::new();
        let mut bound = None;
        let seen = beneath::each(directory, |name, file_type| {
            if listing.has(&name, file_type) {
                match self.takes(path, listing, &name) {
                    Ok(true) => kept.push((name, file_type)),
                    Ok(false) => {}
                    Err(met) => {
                        bound = Some(met);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        });
        self.listed(path, seen, bound);
        kept
    }

    /// Returns the special files (links, devices and others) and the directories in a directory of git's data.
    pub(super) fn special_and_directories(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
    ) -> (Vec<OsString>, Vec<OsString>) {
        let (mut special, mut directories, mut bound) = (Vec::new(), Vec::new(), None);
        let seen = beneath::each(directory, |name, file_type| {
            if file_type.is_some_and(|kind| kind.is_dir()) {
                directories.push(name);
            } else if bound.is_none() && TripwireListing::Special.has(&name, file_type) {
                match self.takes(path, TripwireListing::Special, &name) {
                    Ok(true) => special.push(name),
                    Ok(false) => {}
                    Err(met) => bound = Some(met),
                }
            }
            ControlFlow::Continue(())
        });
        self.listed(path, seen, bound);
        (special, directories)
    }

    /// True if an entry is recorded, false if it is one new entry too many. Fails if the first snapshot exceeds a
    /// limit.
    fn takes(&mut self, path: &Path, listing: TripwireListing, name: &OsStr) -> Result<bool, Bound> {
        if self.is_first() {
            return self.budget.entry().map(|()| true);
        }
        let is_taken = self.was_there(&path.join(name)) || self.budget.is_judged_alone();
        if !is_taken {
            self.state.crowded.insert(path.to_owned(), listing);
        }
        Ok(is_taken)
    }

    fn listed(&mut self, path: &Path, seen: io::Result<()>, bound: Option<Bound>) {
        if let Some(bound) = bound
            && !self.is_given(path)
        {
            let place = self.budget.place().to_owned();
            self.met(&place, bound);
        }
        if let Err(error) = seen {
            self.cannot_read(path, beneath::errno(&error));
        }
    }

    fn look(
        &mut self,
        at: &OwnedFd,
        path: &Path,
        name: &OsStr,
        kind: FileKind,
        stat: &FileStat,
    ) -> WatchedPlace {
        let closed = || FileBody::Closed(FileStamp::of(stat));
        let (body, access) = match beneath::kind(stat) {
            SFlag::S_IFREG => match self.file(at, path, name, kind, stat) {
                Ok((body, access)) => (body.unwrap_or_else(closed), access),
                Err(error) => {
                    self.cannot_read(path, error);
                    (closed(), PlaceAccess::of(stat))
                }
            },
            SFlag::S_IFLNK => match beneath::target(at, name) {
                Ok(target) => (FileBody::Link(target), PlaceAccess::of(stat)),
                Err(error) => {
                    self.cannot_read(path, error);
                    (closed(), PlaceAccess::of(stat))
                }
            },
            SFlag::S_IFDIR => (FileBody::Directory, PlaceAccess::of(stat)),
            _ => (closed(), PlaceAccess::of(stat)),
        };
        WatchedPlace { kind, body, access }
    }

    /// Reads a regular file. The body is `None` if the content is too large to be kept.
    fn file(
        &mut self,
        at: &OwnedFd,
        path: &Path,
        name: &OsStr,
        kind: FileKind,
        stat: &FileStat,
    ) -> nix::Result<(Option<FileBody>, PlaceAccess)> {
        let before = self.before.and_then(|before| before.places.get(path));
        let most = self.largest(kind, before);
        let (content, access) =
            beneath::read_own(at, name, most, |held| PlaceAccess::with_lists(stat, held))?;
        if content.is_none()
            && self.is_first()
            && most < LARGEST
            && stat.st_size <= LARGEST.cast_signed() as i64
        {
            self.uses_up(kind);
        }
        let Some(content) = content else { return Ok((None, access)) };
        if self.is_first() {
            self.budget.keep(content.len());
        }
        let body = match before.map(|before| &before.body) {
            Some(FileBody::File(kept)) if **kept == *content => FileBody::File(Arc::clone(kept)),
            _ => FileBody::File(content.into()),
        };
        Ok((Some(body), access))
    }

    /// Returns the maximum number of bytes to read from a file. If its content is only compared, that is its earlier
    /// length: a longer file has changed.
    fn largest(&self, kind: FileKind, before: Option<&WatchedPlace>) -> usize {
        let is_compared = matches!(kind, FileKind::Whole | FileKind::Hook | FileKind::Unknown);
        match before.map(|before| &before.body) {
            _ if self.is_first() => self.budget.bytes(),
            Some(FileBody::File(content)) if is_compared => content.len(),
            Some(FileBody::File(content)) => content.len().max(LARGEST_JUDGED),
            _ if !is_compared => LARGEST_JUDGED,
            Some(FileBody::Link(_) | FileBody::Directory | FileBody::Closed(_)) | None => 0,
        }
    }

    /// Records that a snapshot exceeds the limit of bytes, except by entries unknown to git, which are moved away
    /// anyway.
    fn uses_up(&mut self, kind: FileKind) {
        if kind != FileKind::Unknown {
            let (place, bound) = (self.budget.place().to_owned(), self.budget.bytes_bound());
            self.met(&place, bound);
        }
    }

    fn cannot_read(&mut self, path: &Path, error: Errno) {
        self.note(path, &error.to_string());
        // A file that was removed meanwhile needs no error.
        if error != Errno::ENOENT {
            self.state.unread.push((path.to_owned(), error));
        }
    }

    pub(super) fn note(&mut self, path: &Path, why: &str) {
        if self.state.notes.len() < 20 {
            let path = one_line(&path.to_string_lossy());
            self.state.notes.push(format!("{path} is not watched: {why}"));
        }
    }
}
