//! Limits on the snapshots of watched files, most of them for each watched path. If the first snapshot of a session
//! exceeds a limit, the session does not start, and the error names the path.

use std::fmt;
use std::path::{Path, PathBuf};

/// Maximum size of a file whose content is kept. Larger files are compared by their times and sizes.
pub(super) const LARGEST: usize = 16 << 20;

/// Maximum size of a file whose content is parsed: 2 MiB.
pub(super) const LARGEST_JUDGED: usize = 2 << 20;

/// Maximum number of bytes that are kept for one watched path.
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of bytes that are kept for all paths in a watched directory.
const MOST_BYTES_IN_ALL: usize = 512 << 20;

/// Maximum number of files and directories in one watched path.
const MOST_ENTRIES: usize = 100_000;

/// Maximum number of files in a directory of `.git` that git itself does not use. Git-annex has four files for each
/// object.
const MOST_ENTRIES_UNKNOWN: usize = 400_000;

/// Maximum number of new names in one watched directory that are judged one by one.
const MOST_NEW: usize = 10_000;

/// Maximum depth of a watched directory. The search holds an open descriptor for each level.
pub(super) const DEEPEST: usize = 40;

/// Maximum number of other files to which one watched file leads.
pub(super) const MOST_REFERENCES: usize = 2_000;
/// Maximum number of other files to which all watched files together lead.
pub(super) const MOST_REFERENCES_IN_ALL: usize = 50_000;

/// Maximum length of a chain of links or includes. Git itself follows ten includes (`MAX_INCLUDE_DEPTH`).
pub(super) const LONGEST_CHAIN: usize = 12;

/// Maximum number of entries that a search of the project examines.
pub(super) const MOST_WALKED: usize = 5_000_000;
/// Maximum number of repositories that a search of the project finds.
pub(super) const MOST_REPOSITORIES: usize = 10_000;

/// Maximum time of a search for repositories, in seconds.
pub(super) const LONGEST_WALK: u64 = 60;

/// Maximum depth of a search for repositories. The search holds an open descriptor for each level.
pub(super) const DEEPEST_WALK: usize = 100;

/// Maximum number of directories with git's data in one git directory.
pub(super) const MOST_TREES: usize = 200_000;
/// Maximum depth of directories with git's data. The search holds an open descriptor for each level.
pub(super) const DEEPEST_TREE: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Entries(usize),
    Bytes(usize),
    Depth(usize),
    References(usize),
    Chain,
    Included,
    Trees,
    Walked,
    Repositories,
    Time,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries(most) => write!(f, "this path has more than {most} files"),
            Self::Bytes(most) => write!(f, "this path has more than {} MiB", most >> 20),
            Self::Depth(most) => write!(f, "the directories below this path are more than {most} deep"),
            Self::References(most) => write!(f, "this path leads to more than {most} other paths"),
            Self::Chain => {
                write!(
                    f,
                    "more than {LONGEST_CHAIN} links or includes lead to this path, one after the other"
                )
            }
            Self::Included => {
                f.write_str("this path leads to too many configuration files outside of the project")
            }
            Self::Trees => write!(f, "this path has more than {MOST_TREES} directories"),
            Self::Walked => {
                write!(f, "the project has more than {MOST_WALKED} files, most of them at this path")
            }
            Self::Repositories => {
                write!(
                    f,
                    "the project has more than {MOST_REPOSITORIES} repositories, most of them at this path"
                )
            }
            Self::Time => write!(
                f,
                "to search the project for repositories takes more than {LONGEST_WALK} s, most of them at this path"
            ),
        }
    }
}

#[derive(Debug)]
pub(super) struct PlaceBudget {
    place: PathBuf,
    most_entries: usize,
    entries: usize,
    new: usize,
    bytes: usize,
    in_all: usize,
}

impl PlaceBudget {
    pub(super) fn new() -> Self {
        Self { place: PathBuf::new(), most_entries: MOST_ENTRIES, entries: 0, new: 0, bytes: 0, in_all: 0 }
    }

    pub(super) fn begin(&mut self, place: &Path) {
        let in_all = self.in_all;
        *self = Self { place: place.to_owned(), in_all, ..Self::new() };
    }

    pub(super) fn begin_unknown(&mut self, place: &Path) {
        self.begin(place);
        self.most_entries = MOST_ENTRIES_UNKNOWN;
    }

    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Counts a file or directory of the watched path. Fails if there are then too many.
    pub(super) fn entry(&mut self) -> Result<(), Bound> {
        self.entries += 1;
        if self.entries > self.most_entries { Err(Bound::Entries(self.most_entries)) } else { Ok(()) }
    }

    pub(super) fn is_judged_alone(&mut self) -> bool {
        self.new += 1;
        self.new <= MOST_NEW
    }

    /// Returns the maximum number of bytes that may be kept of the next file.
    pub(super) fn bytes(&self) -> usize {
        let left = MOST_BYTES.saturating_sub(self.bytes);
        LARGEST.min(left).min(MOST_BYTES_IN_ALL.saturating_sub(self.in_all))
    }

    pub(super) fn keep(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.in_all += bytes;
    }

    pub(super) fn bytes_bound(&self) -> Bound {
        let in_all = MOST_BYTES_IN_ALL.saturating_sub(self.in_all) < MOST_BYTES.saturating_sub(self.bytes);
        Bound::Bytes(if in_all { MOST_BYTES_IN_ALL } else { MOST_BYTES })
    }
}
