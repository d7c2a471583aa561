//! Bounds of a look. Each is a place's own, so that no place uses up what another one needs; one that is met at the start is no
//! reason to look at less: the start is refused, and the place named.

use std::fmt;
use std::path::{Path, PathBuf};

/// The largest file whose content is kept: 16 MiB. A larger one is known by its times and size.
pub(super) const LARGEST: usize = 16 << 20;

/// The largest file that is judged by its content: 2 MiB.
pub(super) const LARGEST_JUDGED: usize = 2 << 20;

/// The most bytes that are kept of a place: 64 MiB, and of a root: 512 MiB.
const MOST_BYTES: usize = 64 << 20;
const MOST_BYTES_IN_ALL: usize = 512 << 20;

/// The most files and directories of a place.
const MOST_ENTRIES: usize = 100_000;

/// The same of what has no part in a git directory: git-annex has four for each of its objects.
const MOST_ENTRIES_UNKNOWN: usize = 400_000;

/// The most names in a place that came since the last look and are judged one by one.
const MOST_NEW: usize = 10_000;

/// How deep a watched tree is looked into; each level holds a descriptor.
pub(super) const DEEPEST: usize = 40;

/// The most places that one place leads to, and that all lead to.
pub(super) const MOST_REFERENCES: usize = 2_000;
pub(super) const MOST_REFERENCES_IN_ALL: usize = 50_000;

/// How often what was found may lead on; git follows ten includes (`MAX_INCLUDE_DEPTH`).
pub(super) const LONGEST_CHAIN: usize = 12;

/// The most entries that a walk sees, and the most repositories that it finds.
pub(super) const MOST_WALKED: usize = 5_000_000;
pub(super) const MOST_REPOSITORIES: usize = 10_000;

/// The longest that a walk may take, in seconds.
pub(super) const LONGEST_WALK: u64 = 60;

/// How deep a walk goes; each level holds a descriptor.
pub(super) const DEEPEST_WALK: usize = 100;

/// The most directories of git's data in a place, and how deep they are; each level holds a descriptor.
pub(super) const MOST_TREES: usize = 200_000;
pub(super) const DEEPEST_TREE: usize = 100;

/// A bound that was met.
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

/// What a look may still take of one place.
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

    /// Goes on to another place.
    pub(super) fn begin(&mut self, place: &Path) {
        let in_all = self.in_all;
        *self = Self { place: place.to_owned(), in_all, ..Self::new() };
    }

    /// Goes on to something that has no part in a git directory.
    pub(super) fn begin_unknown(&mut self, place: &Path) {
        self.begin(place);
        self.most_entries = MOST_ENTRIES_UNKNOWN;
    }

    /// The place.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Counts an entry; the bound if it is one too many.
    pub(super) fn entry(&mut self) -> Result<(), Bound> {
        self.entries += 1;
        if self.entries > self.most_entries { Err(Bound::Entries(self.most_entries)) } else { Ok(()) }
    }

    /// Counts a name that came since the last look; false if it is one too many.
    pub(super) fn is_judged_alone(&mut self) -> bool {
        self.new += 1;
        self.new <= MOST_NEW
    }

    /// The largest content that may be kept now.
    pub(super) fn bytes(&self) -> usize {
        let left = MOST_BYTES.saturating_sub(self.bytes);
        LARGEST.min(left).min(MOST_BYTES_IN_ALL.saturating_sub(self.in_all))
    }

    /// Counts what is kept.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.in_all += bytes;
    }

    /// The bound of bytes that a content met.
    pub(super) fn bytes_bound(&self) -> Bound {
        let in_all = MOST_BYTES_IN_ALL.saturating_sub(self.in_all) < MOST_BYTES.saturating_sub(self.bytes);
        Bound::Bytes(if in_all { MOST_BYTES_IN_ALL } else { MOST_BYTES })
    }
}
