//! What stands in the watched places: taken beneath a descriptor, within bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::stat::{FileStat, SFlag};

use super::beneath;
use super::names::{GIT, OURS, WORKSPACE};

/// The largest file whose content is kept.
const LARGEST: usize = 2 << 20;

/// The most bytes that are kept in all.
const MOST_BYTES: usize = 64 << 20;

/// The most entries of directories that are looked at, beside those that were there before.
const MOST_ENTRIES: usize = 20_000;

/// How deep a watched tree is looked into.
const DEEPEST: usize = 24;

/// How a place is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any change counts.
    Whole,
    /// A git configuration, by key.
    Config,
    /// An entry of a hooks directory.
    Hook,
    /// Where a git directory says that its configuration and hooks are.
    CommonDirectory,
    /// What a rebase that waits will do: it may name commands.
    Todo,
    /// A `.git` that is a file, and says where the git directory is.
    GitFile,
}

/// What stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A regular file with this content.
    File(Arc<[u8]>),
    /// A link to this target.
    Link(OsString),
    /// A directory; its entries are places of their own.
    Directory,
    /// A fifo, a socket or a device, a file that is too large to be kept, or one that cannot be read.
    Closed(Stamp),
}

/// A directory of which entries are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// All but repositories, which are watched for themselves.
    Whole,
    /// Hooks: what git takes for an example is none.
    Hooks,
    /// Directories, and what may lead to one.
    Repositories,
    /// The top of a project: our own files, and those that an editor opens as a project.
    Top,
}

impl Listing {
    /// Whether an entry is watched.
    pub(super) fn has(self, name: &OsStr, leads_on: bool) -> bool {
        match self {
            Self::Whole => name != GIT,
            Self::Hooks => !name.as_bytes().ends_with(b".sample"),
            Self::Repositories => leads_on,
            Self::Top => name.as_bytes().starts_with(OURS) || name.as_bytes().ends_with(WORKSPACE),
        }
    }
}

/// Evidence that what cannot be read did not change. Of what can be read the content alone counts: a write through a shared
/// mapping that was read before leaves times and size as they were on a tmpfs (`shmem_fault` maps the page writable, so that
/// no `file_update_time` follows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    kind: u32,
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// One place.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) body: Body,
    pub(super) mode: u32,
}

impl Place {
    /// Whether the two are the same to whoever reads or executes them.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let modes = self.mode == other.mode || matches!(self.body, Body::Link(_));
        self.body == other.body && modes
    }
}

/// All watched places of one root, relative to it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) places: BTreeMap<PathBuf, Place>,
    /// The directories on the way that are there.
    pub(super) directories: BTreeSet<PathBuf>,
    /// The git directories among them.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// The directories with more entries than are looked at.
    pub(super) crowded: BTreeMap<PathBuf, Listing>,
    /// What could not be looked at, one sentence each.
    pub(super) notes: Vec<String>,
}

/// Looks; every content is read anew.
pub(super) struct Look<'a> {
    before: Option<&'a State>,
    bytes: usize,
    entries: usize,
    pub(super) state: State,
}

impl<'a> Look<'a> {
    /// What was there `before` is looked at whatever else there is now: a crowd hides nothing.
    pub(super) fn new(before: Option<&'a State>) -> Self {
        Self { before, bytes: 0, entries: 0, state: State::default() }
    }

    /// Looks at one name; of a directory at everything in it.
    pub(super) fn place(&mut self, at: &OwnedFd, path: PathBuf, kind: Kind) {
        self.place_within(at, path, kind, DEEPEST);
    }

    fn place_within(&mut self, at: &OwnedFd, path: PathBuf, kind: Kind, depth: usize) {
        let Some(name) = path.file_name().map(OsStr::to_owned) else { return };
        let stat = match beneath::stat(at, &name) {
            Ok(stat) => stat,
            Err(Errno::ENOENT) => return,
            Err(error) => return self.note(&path, &error.to_string()),
        };
        let is_directory = beneath::kind(&stat) == SFlag::S_IFDIR;
        let place = self.look(at, &name, kind, &stat);
        self.state.places.insert(path.clone(), place);
        if is_directory && kind != Kind::Config {
            self.tree(at, &path, &name, depth);
        }
    }

    /// Everything in a directory of which any change counts.
    fn tree(&mut self, at: &OwnedFd, path: &Path, name: &OsStr, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return self.note(path, "it is too deep to be watched");
        };
        match beneath::open_own_directory(at, name) {
            Ok(directory) => {
                for (entry, _) in self.entries(&directory, path, Listing::Whole) {
                    self.place_within(&directory, path.join(entry), Kind::Whole, depth);
                }
            }
            Err(error) => self.note(path, &error.to_string()),
        }
    }

    /// Enters a directory on the way. Anything else that stands there is a place by itself: it would lead elsewhere.
    pub(super) fn enter(&mut self, at: &OwnedFd, path: &Path) -> Option<OwnedFd> {
        let name = path.file_name()?;
        let stat = beneath::stat(at, name).ok()?;
        if beneath::kind(&stat) != SFlag::S_IFDIR {
            self.place(at, path.to_owned(), Kind::Whole);
            return None;
        }
        self.state.directories.insert(path.to_owned());
        match beneath::open_own_directory(at, name) {
            Ok(directory) => Some(directory),
            Err(error) => {
                self.note(path, &error.to_string());
                None
            }
        }
    }

    /// The watched entries of a directory: those that were there before, and as many others as may be looked at.
    pub(super) fn entries(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
        listing: Listing,
    ) -> Vec<(OsString, bool)> {
        let mut kept = Vec::new();
        let seen = beneath::each(directory, |name, leads_on| {
            if !listing.has(&name, leads_on) {
                return;
            }
            if !self.before.is_some_and(|before| before.knows(&path.join(&name))) {
                if self.entries >= MOST_ENTRIES {
                    self.state.crowded.insert(path.to_owned(), listing);
                    return;
                }
                self.entries += 1;
            }
            kept.push((name, leads_on));
        });
        if let Err(error) = seen {
            self.note(path, &error.to_string());
        }
        // Beyond what was crowded before, what came since is removed.
        if self.state.crowded.contains_key(path)
            && self.before.is_none_or(|before| before.crowded.contains_key(path))
        {
            self.note(path, "some of it, as it holds too many files");
        }
        kept
    }

    fn look(&mut self, at: &OwnedFd, name: &OsStr, kind: Kind, stat: &FileStat) -> Place {
        let body = self.body(at, name, stat).unwrap_or_else(|| Body::Closed(Stamp::of(stat)));
        Place { kind, body, mode: stat.st_mode & 0o7777 }
    }

    /// Absent for what cannot be kept.
    fn body(&mut self, at: &OwnedFd, name: &OsStr, stat: &FileStat) -> Option<Body> {
        match beneath::kind(stat) {
            SFlag::S_IFDIR => Some(Body::Directory),
            SFlag::S_IFLNK => beneath::target(at, name).ok().map(Body::Link),
            SFlag::S_IFREG => {
                let left = LARGEST.min(MOST_BYTES.saturating_sub(self.bytes));
                let content = beneath::read(at, name, left).ok().flatten()?;
                self.bytes += content.len();
                Some(Body::File(content.into()))
            }
            _ => None,
        }
    }

    fn note(&mut self, path: &Path, why: &str) {
        if self.state.notes.len() < 20 {
            self.state.notes.push(format!("{} is not watched: {why}", path.display()));
        }
    }
}

impl State {
    /// Whether something stood there.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.places.contains_key(path) || self.directories.contains(path)
    }
}

impl Place {
    /// Whether it is a file or directory, which a mount can hold.
    pub(super) fn is_solid(&self) -> bool {
        matches!(self.body, Body::File(_) | Body::Directory)
    }
}

impl Stamp {
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
