//! What stands in the watched places: taken beneath a descriptor, within bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::stat::{FileStat, SFlag};
use serde::{Deserialize, Serialize};

use super::beneath;
use super::layout::{self, LayoutPart, part};
use super::root::GIT;
use crate::messages::one_line;
use crate::protected;

/// The largest file whose content is kept.
const LARGEST: usize = 2 << 20;

/// The most bytes that are kept in all.
const MOST_BYTES: usize = 64 << 20;

/// The same once what has no part in a git directory is looked at: it may not use up what the rest needs.
const MOST_BYTES_UNKNOWN: usize = 32 << 20;

/// The most entries of directories that are looked at, beside those that were there before.
const MOST_ENTRIES: usize = 20_000;

/// How deep a watched tree is looked into.
const DEEPEST: usize = 24;

/// How a place is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileKind {
    /// Any change counts.
    Whole,
    /// A git configuration, by key.
    Config,
    /// An entry of a hooks directory.
    Hook,
    /// Where a git directory says that its configuration and hooks are.
    CommonDirectory,
    /// A file in a git directory that git acts on later, by its content.
    State(TripwireRule),
    /// A `.git` that is a file, and says where the git directory is.
    GitFile,
    /// An entry of a git directory that is no part of its layout.
    Unknown,
}

/// The content that a file of git's own state may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TripwireRule {
    /// Commands of a rebase, none of them one to execute.
    Todo,
    /// A strategy that git has built in.
    Strategy,
    /// Options of such a strategy.
    StrategyOptions,
    /// The option to sign, without a key.
    Sign,
    /// Names of branches, commits or terms.
    Revision,
    /// Assignments of an author.
    Author,
    /// Words that are quoted for a shell.
    QuotedWords,
    /// Options of `git apply` that stay within the work tree.
    ApplyOptions,
    /// A configuration of a cherry-pick or revert.
    SequencerOptions,
    /// Files of the work tree, none of them behind a link.
    ConflictedPaths,
    /// Other object stores: within the project, or where no agent can write.
    Alternates,
}

/// What stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileBody {
    /// A regular file with this content.
    File(Arc<[u8]>),
    /// A link to this target.
    Link(OsString),
    /// A directory; its entries are places of their own.
    Directory,
    /// A fifo, a socket or a device, a file that is too large to be kept, or one that cannot be read.
    Closed(FileStamp),
}

/// A directory of which entries are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TripwireListing {
    /// All but repositories, which are watched for themselves.
    Whole,
    /// Hooks: what git takes for an example is none.
    Hooks,
    /// Directories, and what may lead to one.
    Repositories,
    /// This directory of a project: names that match a pattern of the list of settings.
    Settings(&'static Path),
    /// The top of a git directory: all but plain files of data.
    GitDirectory,
    /// All but files and directories, in a directory of git's data.
    Special,
}

impl TripwireListing {
    /// Whether an entry is watched.
    pub(super) fn has(self, name: &OsStr, file_type: Option<FileType>) -> bool {
        match self {
            Self::Whole => name != GIT,
            Self::Hooks => !name.as_bytes().ends_with(b".sample"),
            Self::Repositories => beneath::leads_on(file_type),
            Self::Settings(directory) => protected::is_listed(directory, name),
            Self::GitDirectory => {
                !layout::is_plain_data(name, file_type) && part(name) != LayoutPart::Watched
            }
            Self::Special => !file_type.is_some_and(|kind| kind.is_file() || kind.is_dir()),
        }
    }
}

/// Evidence that what cannot be read did not change. Of what can be read the content alone counts: a write through a shared
/// mapping that was read before leaves times and size as they were on a tmpfs (`shmem_fault` maps the page writable, so that
/// no `file_update_time` follows).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    kind: u32,
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// One place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchedPlace {
    pub(super) kind: FileKind,
    pub(super) body: FileBody,
    pub(super) mode: u32,
}

impl WatchedPlace {
    /// Whether the two are the same to whoever reads or executes them.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let modes = self.mode == other.mode || matches!(self.body, FileBody::Link(_));
        self.body == other.body && modes
    }
}

/// All watched places of one root, relative to it.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchState {
    pub(super) places: BTreeMap<PathBuf, WatchedPlace>,
    /// The directories on the way that are there.
    pub(super) directories: BTreeSet<PathBuf>,
    /// The git directories among them.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// The directories with more entries than are looked at.
    pub(super) crowded: BTreeMap<PathBuf, TripwireListing>,
    /// What could not be looked at, one sentence each.
    pub(super) notes: Vec<String>,
    /// What is there and cannot be read, with the reason; a file that is only too large is not among them.
    pub(super) unread: Vec<(PathBuf, Errno)>,
}

/// Looks; every content is read anew.
pub(super) struct TripwireLook<'a> {
    before: Option<&'a WatchState>,
    bytes: usize,
    entries: usize,
    /// The directories of data that were entered.
    pub(super) trees: usize,
    pub(super) state: WatchState,
}

impl<'a> TripwireLook<'a> {
    /// What was there `before` is looked at whatever else there is now: a crowd hides nothing.
    pub(super) fn new(before: Option<&'a WatchState>) -> Self {
        Self { before, bytes: 0, entries: 0, trees: 0, state: WatchState::default() }
    }

    /// Looks at one name; of a directory at everything in it.
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
        let is_directory = beneath::kind(&stat) == SFlag::S_IFDIR;
        let place = self.look(at, &path, &name, kind, &stat);
        self.state.places.insert(path.clone(), place);
        // What has no part in a git directory is moved aside as a whole.
        let is_moved = kind == FileKind::Unknown && self.before.is_some_and(|before| !before.knows(&path));
        if is_directory && kind != FileKind::Config && !is_moved {
            self.tree(at, &path, kind, depth);
        }
    }

    /// Everything in a directory of which any change counts.
    fn tree(&mut self, at: &OwnedFd, path: &Path, kind: FileKind, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return self.note(path, "it is too deep to be watched");
        };
        let kind = if kind == FileKind::Unknown { kind } else { FileKind::Whole };
        match beneath::open_own_directory(at, path.file_name().unwrap_or_default()) {
            Ok(directory) => {
                for (entry, _) in self.entries(&directory, path, TripwireListing::Whole) {
                    self.place_within(&directory, path.join(entry), kind, depth);
                }
            }
            Err(error) => self.cannot_read(path, error),
        }
    }

    /// Enters a directory on the way. Anything else that stands there is a place by itself: it would lead elsewhere.
    pub(super) fn enter(&mut self, at: &OwnedFd, path: &Path) -> Option<OwnedFd> {
        let name = path.file_name()?;
        let stat = beneath::stat(at, name).ok()?;
        if beneath::kind(&stat) != SFlag::S_IFDIR {
            self.place(at, path.to_owned(), FileKind::Whole);
            return None;
        }
        self.state.directories.insert(path.to_owned());
        match beneath::open_own_directory(at, name) {
            Ok(directory) => Some(directory),
            Err(error) => {
                self.cannot_read(path, error);
                None
            }
        }
    }

    /// The watched entries of a directory: those that were there before, and as many others as may be looked at.
    pub(super) fn entries(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
        listing: TripwireListing,
    ) -> Vec<(OsString, Option<FileType>)> {
        let mut kept = Vec::new();
        let seen = beneath::each(directory, |name, file_type| {
            if !listing.has(&name, file_type) {
                return;
            }
            if !self.before.is_some_and(|before| before.knows(&path.join(&name))) {
                if self.entries >= MOST_ENTRIES {
                    self.state.crowded.insert(path.to_owned(), listing);
                    return;
                }
                self.entries += 1;
            }
            kept.push((name, file_type));
        });
        if let Err(error) = seen {
            self.cannot_read(path, beneath::errno(&error));
        }
        // Beyond what was crowded before, what came since is removed.
        if self.state.crowded.contains_key(path)
            && self.before.is_none_or(|before| before.crowded.contains_key(path))
        {
            self.note(path, "some of it, as it holds too many files");
        }
        kept
    }

    fn look(
        &mut self,
        at: &OwnedFd,
        path: &Path,
        name: &OsStr,
        kind: FileKind,
        stat: &FileStat,
    ) -> WatchedPlace {
        let body = self.body(at, name, kind, stat).unwrap_or_else(|error| {
            self.cannot_read(path, error);
            None
        });
        let body = body.unwrap_or_else(|| FileBody::Closed(FileStamp::of(stat)));
        WatchedPlace { kind, body, mode: stat.st_mode & 0o7777 }
    }

    /// Absent for what cannot be kept.
    fn body(
        &mut self,
        at: &OwnedFd,
        name: &OsStr,
        kind: FileKind,
        stat: &FileStat,
    ) -> nix::Result<Option<FileBody>> {
        match beneath::kind(stat) {
            SFlag::S_IFDIR => Ok(Some(FileBody::Directory)),
            SFlag::S_IFLNK => beneath::target(at, name).map(|target| Some(FileBody::Link(target))),
            SFlag::S_IFREG => {
                let most = if kind == FileKind::Unknown { MOST_BYTES_UNKNOWN } else { MOST_BYTES };
                let left = LARGEST.min(most.saturating_sub(self.bytes));
                let content = beneath::read_own(at, name, left)?;
                self.bytes += content.as_ref().map_or(0, Vec::len);
                Ok(content.map(|content| FileBody::File(content.into())))
            }
            _ => Ok(None),
        }
    }

    fn cannot_read(&mut self, path: &Path, error: Errno) {
        self.note(path, &error.to_string());
        // What is gone meanwhile was read as far as it was there.
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

impl WatchState {
    /// Whether something stood there.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.places.contains_key(path) || self.directories.contains(path)
    }
}

impl WatchedPlace {
    /// True if a mount can hold it, which needs no content: anything but a link.
    pub(super) const fn is_solid(&self) -> bool {
        !matches!(self.body, FileBody::Link(_))
    }
}

impl FileStamp {
    fn of(stat: &FileStat) -> Self {
        Self {
            kind: beneath::kind(stat).bits(),
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}
