//! What stands in the watched places, as plain data.

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
    pub(super) access: PlaceAccess,
}

impl WatchedPlace {
    /// Whether the two are the same to whoever reads or executes them.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.body == other.body && (self.is_link() || self.access.is_like(&other.access))
    }

    pub(super) const fn is_link(&self) -> bool {
        matches!(self.body, FileBody::Link(_))
    }
}

/// All watched places of one root, relative to it.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchState {
    pub(super) places: BTreeMap<PathBuf, WatchedPlace>,
    /// The directories on the way that are there.
    pub(super) directories: BTreeMap<PathBuf, PlaceAccess>,
    /// The git directories among them.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// The places that could not be restored, and still have to be.
    pub(super) owed: BTreeSet<PathBuf>,
    /// The directories that a walk could not enter at the start: nothing in them is ever news.
    pub(super) unreached: BTreeSet<PathBuf>,
    /// The directories into which more came than is judged one by one.
    pub(super) crowded: BTreeMap<PathBuf, TripwireListing>,
    /// What could not be looked at, one sentence each.
    pub(super) notes: Vec<String>,
    /// What is there and cannot be read, with the reason; a file that is only too large is not among them.
    pub(super) unread: Vec<(PathBuf, Errno)>,
    /// The bounds that were met at the start, with the places that met them.
    pub(super) met: Vec<(PathBuf, Bound)>,
}

impl WatchState {
    /// Whether something stood there.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.places.contains_key(path) || self.directories.contains_key(path)
    }

    /// The access to the nearest directory above a place that is known.
    pub(super) fn around(&self, path: &Path) -> Option<&PlaceAccess> {
        let known = |above: &Path| {
            self.directories.get(above).or_else(|| self.places.get(above).map(|place| &place.access))
        };
        path.ancestors().skip(1).find_map(known)
    }
}

impl WatchedPlace {
    /// True if a mount can hold it, which needs no content: anything but a link.
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
