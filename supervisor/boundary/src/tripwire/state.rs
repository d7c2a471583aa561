use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate::protected;
use nix::errno::Errno;
use nix::sys::stat::FileStat;
use serde::{Deserialize, Serialize};

use super::access::PlaceAccess;
use super::beneath;
use super::bounds::Bound;
use super::layout::{self, LayoutPart, part};
use super::root::GIT;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileKind {
    Whole,
    Config,
    Hook,
    /// The file `commondir` of a linked worktree. It names the directory with configuration and hooks.
    CommonDirectory,
    /// A file in a git directory from which git takes its next actions. Its content decides if a change may stay.
    State(TripwireRule),
    /// A `.git` file. It names the git directory.
    GitFile,
    /// An entry of a git directory that git itself does not have.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TripwireRule {
    /// Allows a rebase todo list without commands that execute a program.
    Todo,
    /// Allows the name of a merge strategy that is built into git.
    Strategy,
    StrategyOptions,
    /// Allows the option to sign commits, without the name of a key.
    Sign,
    /// Allows names of branches, commits or `git bisect` terms.
    Revision,
    /// Allows assignments of the author's name, email and date.
    Author,
    QuotedWords,
    /// Allows options of `git apply` that stay within the work tree.
    ApplyOptions,
    /// Allows options of a cherry-pick or revert.
    SequencerOptions,
    /// Allows paths of files in the work tree, none of them behind a link.
    ConflictedPaths,
    /// Allows paths of other object stores, within the project or where no agent can write.
    Alternates,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileBody {
    File(Arc<[u8]>),
    Link(OsString),
    /// A directory. Its entries are recorded separately.
    Directory,
    /// A special file, or a file that is too large to be kept or cannot be read.
    Closed(FileStamp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TripwireListing {
    /// All entries of the directory except `.git`, which is watched separately.
    Whole,
    Hooks,
    Repositories,
    /// Entries of this directory of a project whose names are in the list of watched settings.
    Settings(&'static Path),
    /// Entries at the top of a git directory, without files that git only reads as data.
    GitDirectory,
    /// Entries that are neither files nor directories, in a directory of git's data such as `refs`.
    Special,
}

impl TripwireListing {
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

/// Metadata of a file whose content was not read. Other files are compared by content alone, since a write through a
/// shared mapping of a tmpfs can leave times and size unchanged (`shmem_fault` maps the page writable, so no
/// `file_update_time` follows).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    kind: u32,
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchedPlace {
    pub(super) kind: FileKind,
    pub(super) body: FileBody,
    pub(super) access: PlaceAccess,
}

impl WatchedPlace {
    /// True if both states are the same for a process that reads or executes the file.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.body == other.body && (self.is_link() || self.access.is_like(&other.access))
    }

    pub(super) const fn is_link(&self) -> bool {
        matches!(self.body, FileBody::Link(_))
    }
}

/// Recorded state of a watched directory. All paths are relative to it.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchState {
    pub(super) places: BTreeMap<PathBuf, WatchedPlace>,
    pub(super) directories: BTreeMap<PathBuf, PlaceAccess>,
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Files that could not be restored yet.
    pub(super) owed: BTreeSet<PathBuf>,
    /// Directories that could not be opened at the start. Files in them never count as new.
    pub(super) unreached: BTreeSet<PathBuf>,
    pub(super) crowded: BTreeMap<PathBuf, TripwireListing>,
    /// Warnings about files that could not be checked, one sentence each.
    pub(super) notes: Vec<String>,
    /// Files that could not be read, each with the error. Files that are only too large are not included.
    pub(super) unread: Vec<(PathBuf, Errno)>,
    pub(super) met: Vec<(PathBuf, Bound)>,
}

impl WatchState {
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.places.contains_key(path) || self.directories.contains_key(path)
    }

    /// Returns the permissions of the nearest recorded directory above a path; `None` if none is recorded.
    pub(super) fn around(&self, path: &Path) -> Option<&PlaceAccess> {
        let known = |above: &Path| {
            self.directories.get(above).or_else(|| self.places.get(above).map(|place| &place.access))
        };
        path.ancestors().skip(1).find_map(known)
    }
}

impl WatchedPlace {
    /// True if a read-only mount can protect the file. A link cannot be a mount point.
    pub(super) const fn is_solid(&self) -> bool {
        !self.is_link()
    }
}

impl FileStamp {
    pub(super) fn of(stat: &FileStat) -> Self {
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
