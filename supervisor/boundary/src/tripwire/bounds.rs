//! Limits on the snapshots of watched files. Each limit counts for one watched path alone, so that no path uses up
//! another's share. A session whose first snapshot reaches a limit does not start, and the error names the path.

use std::fmt;
use std::path::{Path, PathBuf};

/// The largest file whose content is kept: 16 MiB. Of larger ones, times and size are compared.
pub(super) const LARGEST: usize = 16 << 20;

/// The largest file whose content is parsed: 2 MiB.
pub(super) const LARGEST_JUDGED: usize = 2 << 20;

/// The most bytes kept of one watched path (64 MiB), and of a whole directory tree (512 MiB).
const MOST_BYTES: usize = 64 << 20;
const MOST_BYTES_IN_ALL: usize = 512 << 20;

/// The most files and directories in one watched path.
const MOST_ENTRIES: usize = 100_000;

/// The most files in a directory of `.git` that git itself does not have: git-annex has four for each object.
const MOST_ENTRIES_UNKNOWN: usize = 400_000;

/// The most new names in one watched directory that are checked one by one.
const MOST_NEW: usize = 10_000;

/// Greatest depth of a watched directory. Each level holds a descriptor.
pub(super) const DEEPEST: usize = 40;

/// The most other files that one watched file refers to, and that all refer to.
pub(super) const MOST_REFERENCES: usize = 2_000;
pub(super) const MOST_REFERENCES_IN_ALL: usize = 50_000;

/// The longest chain of links or includes; git follows ten includes (`MAX_INCLUDE_DEPTH`).
pub(super) const LONGEST_CHAIN: usize = 12;

/// The most entries that a search of the project sees, and the most repositories that it finds.
pub(super) const MOST_WALKED: usize = 5_000_000;
pub(super) const MOST_REPOSITORIES: usize = 10_000;

/// The longest time of a search for repositories, in seconds.
pub(super) const LONGEST_WALK: u64 = 60;

/// Greatest depth of a search for repositories. Each level holds a descriptor.
pub(super) const DEEPEST_WALK: usize = 100;

/// The most data directories in one git directory, and their greatest depth. Each level holds a descriptor.
pub(super) const MOST_TREES: usize = 200_000;
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
            Self::Entries(most) => write!(f, "it holds more than {most} files"),
            Self::Bytes(most) => write!(f, "it holds more than {} MiB", most >> 20),
            Self::Depth(most) => write!(f, "its directories are more than {most} deep"),
            Self::References(most) => write!(f, "it leads to more than {most} places"),
            Self::Chain => {
                write!(f, "more than {LONGEST_CHAIN} links or includes lead there, one after the other")
            }
            Self::Included => f.write_str("it leads to too many configurations outside of the project"),
            Self::Trees => write!(f, "it holds more than {MOST_TREES} directories"),
            Self::Walked => write!(f, "the project holds more than {MOST_WALKED} files, most of them there"),
            Self::Repositories => {
                write!(f, "the project holds more than {MOST_REPOSITORIES} repositories, most of them there")
            }
            Self::Time => write!(
                f,
                "to search the project for repositories takes more than {LONGEST_WALK} s, most of them there"
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

    /// Resets the counters for a path in `.git` that git itself does not have.
    pub(super) fn begin_unknown(&mut self, place: &Path) {
        self.begin(place);
        self.most_entries = MOST_ENTRIES_UNKNOWN;
    }

    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Counts an entry. Fails if the limit of entries is exceeded.
    pub(super) fn entry(&mut self) -> Result<(), Bound> {
        self.entries += 1;
        if self.entries > self.most_entries { Err(Bound::Entries(self.most_entries)) } else { Ok(()) }
    }

    /// Counts a new name. False if there are too many new names to check one by one.
    pub(super) fn is_judged_alone(&mut self) -> bool {
        self.new += 1;
        self.new <= MOST_NEW
    }

    /// Returns the largest number of bytes that may be kept of the next file.
    pub(super) fn bytes(&self) -> usize {
        let left = MOST_BYTES.saturating_sub(self.bytes);
        LARGEST.min(left).min(MOST_BYTES_IN_ALL.saturating_sub(self.in_all))
    }

    /// Counts the bytes of a file that is kept.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.in_all += bytes;
    }

    /// Returns the limit of bytes that was reached: of the path, or of all paths.
    pub(super) fn bytes_bound(&self) -> Bound {
        let in_all = MOST_BYTES_IN_ALL.saturating_sub(self.in_all) < MOST_BYTES.saturating_sub(self.bytes);
        Bound::Bytes(if in_all { MOST_BYTES_IN_ALL } else { MOST_BYTES })
    }
}
