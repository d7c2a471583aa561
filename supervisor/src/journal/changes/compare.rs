//! The comparison of two snapshots of the project. It fetches only the contents that the change set needs.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ipc::message::{SnapshotKind, Stamp};
use ipc::path::WirePath;

use super::path::ProjectPath;
use super::renames;
use super::set::{ChangeSet, Delta, FileDifference, State};
use super::snapshot::{Intake, Snapshot, SnapshotFile, SnapshotLimits};

/// The tolerance for inexact clocks of file systems: FAT counts in steps of two seconds.
const CLOCK_MARGIN_NS: i64 = 2_000_000_000;

/// Maximum size in bytes of paths in one `Fetch` call, well below the size limit of a frame.
const FETCH_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub struct Base {
    snapshot: Snapshot,
    /// Time in nanoseconds since the epoch. A file whose stamp is older than this time, and equal in both snapshots,
    /// counts as unchanged.
    settled_before_ns: i64,
}

/// The differences between two snapshots in stamps, sizes and kinds, before any contents are compared.
#[derive(Debug)]
pub struct Comparison<'a> {
    base: &'a Base,
    now: Snapshot,
    fetch: Arc<BTreeSet<ProjectPath>>,
    /// Paths that certainly changed, so that the contents of these files need not be fetched.
    known: BTreeSet<ProjectPath>,
    left_out: Vec<String>,
}

impl Base {
    /// Builds the base for comparisons from a snapshot with contents.
    ///
    /// `asked` is the time at which the snapshot was requested, by the clock that stamps the project's files.
    pub fn new(snapshot: Snapshot, asked: SystemTime) -> Self {
        let since_epoch = asked.duration_since(UNIX_EPOCH).unwrap_or_default();
        let asked_ns = i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX);
        Self { snapshot, settled_before_ns: asked_ns.saturating_sub(CLOCK_MARGIN_NS) }
    }

    /// Builds a base from a snapshot without contents. With such a base, only stamps can be compared.
    pub fn of_stamps(snapshot: Snapshot) -> Self {
        Self { snapshot, settled_before_ns: 0 }
    }

    pub fn len(&self) -> usize {
        self.snapshot.len()
    }

    pub fn is_empty(&self) -> bool {
        self.snapshot.is_empty()
    }

    /// Compares the base with a later snapshot without contents. The `excluded` paths do not belong to the project.
    pub fn compare(&self, now: Snapshot, excluded: &[ProjectPath]) -> Comparison<'_> {
        let mut comparison = Comparison {
            base: self,
            now,
            fetch: Arc::default(),
            known: BTreeSet::new(),
            left_out: Vec::new(),
        };
        let mut fetch = BTreeSet::new();
        comparison.judge_present(excluded, &mut fetch);
        comparison.judge_gone(excluded, &mut fetch);
        comparison.fetch = Arc::new(fetch);
        comparison
    }

    /// Returns the paths that a later snapshot added, removed, or gave another stamp, in order. Contents are not
    /// compared, so a file that was rewritten with the same bytes is included.
    pub fn stamped_since(&self, now: &Snapshot) -> Vec<ProjectPath> {
        let old = &self.snapshot.entries;
        let differs = |path: &&ProjectPath| match (old.get(path), now.entries.get(path)) {
            (Some(old), Some(now)) => old.stamp != now.stamp,
            _ => true,
        };
        let paths: BTreeSet<_> = old.keys().chain(now.entries.keys()).filter(differs).collect();
        paths.into_iter().cloned().collect()
    }

    /// True if nothing changed between two states of a file: they look equal, and the stamp is old enough to show that.
    /// If the content of a state was not recorded, equal stamps are enough.
    fn is_settled(&self, old: &SnapshotFile, now: &SnapshotFile) -> bool {
        let is_proof = self.is_old(&old.stamp) || is_unreadable(old) || is_unreadable(now);
        is_proof && old.stamp == now.stamp && is_same_kind(&old.kind, &now.kind)
    }

    fn is_old(&self, stamp: &Stamp) -> bool {
        stamp.changed_ns < self.settled_before_ns
    }
}

/// Splits paths into groups, each small enough for one `Fetch` call.
pub fn batches<'a>(paths: impl Iterator<Item = &'a ProjectPath>) -> Vec<Vec<WirePath>> {
    let mut calls = Vec::new();
    let mut bytes = FETCH_BYTES;
    for path in paths {
        let len = path.as_bytes().len();
        if bytes + len > FETCH_BYTES {
            calls.push(Vec::new());
            bytes = 0;
        }
        bytes += len;
        if let Some(call) = calls.last_mut() {
            call.push(path.to_wire());
        }
    }
    calls
}

/// True if both entries are files of the same mode and size, or links with the same target.
fn is_same_kind(old: &SnapshotKind, now: &SnapshotKind) -> bool {
    match (old, now) {
        (SnapshotKind::Symlink(old), SnapshotKind::Symlink(now)) => old.as_bytes() == now.as_bytes(),
        (
            SnapshotKind::File { mode: old_mode, size: old_size, .. },
            SnapshotKind::File { mode, size, .. },
        ) => (old_mode, old_size) == (mode, size),
        _ => false,
    }
}

/// True if an entry has no content that could be fetched: a link, or a file that is too large or could not be read.
const fn is_unreadable(entry: &SnapshotFile) -> bool {
    matches!(entry.kind, SnapshotKind::Symlink(_) | SnapshotKind::File { omitted: true, .. })
}

impl Comparison<'_> {
    /// Returns the paths of the contents to fetch, one group for each `Fetch` call.
    pub fn fetches(&self) -> Vec<Vec<WirePath>> {
        batches(self.fetch.iter())
    }

    /// Returns a receiver for the results of all `Fetch` calls.
    pub fn intake(&self, store: File, limits: SnapshotLimits) -> Intake {
        Intake::of_paths(store, limits, Arc::clone(&self.fetch))
    }

    /// Returns the change set. A fetched content is compared with the file's earlier state. Fails if a content cannot
    /// be read back.
    pub fn resolve(self, fetched: &Snapshot) -> io::Result<ChangeSet> {
        let mut changes = Vec::new();
        let fetched = self.fetch.iter().map(|path| (path, fetched.entries.get(path)));
        let known = self.known.iter().map(|path| (path, self.now.entries.get(path)));
        for (path, now) in fetched.chain(known) {
            let old = self.base.snapshot.entries.get(path);
            if let Some(delta) = Delta::between(old.map(State::from), now.map(State::from))? {
                changes.push(FileDifference { path: path.clone(), delta });
            }
        }
        let mut changes = renames::detect(changes)?;
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ChangeSet::new(changes, self.left_out))
    }

    fn judge_present(&mut self, excluded: &[ProjectPath], fetch: &mut BTreeSet<ProjectPath>) {
        let known: HashSet<_> =
            self.base.snapshot.entries.values().map(|entry| identity(entry.stamp)).collect();
        for (path, now) in &self.now.entries {
            if excluded.contains(path) {
                continue;
            }
            match self.base.snapshot.entries.get(path) {
                Some(old) if self.base.is_settled(old, now) => {}
                None if self.base.is_old(&now.stamp) && !known.contains(&identity(now.stamp)) => {
                    self.left_out.push(format!(
                        "{path} is not in the patch: the file existed before the session, and git ignored it then"
                    ));
                }
                _ if is_unreadable(now) => drop(self.known.insert(path.clone())),
                _ => drop(fetch.insert(path.clone())),
            }
        }
    }

    /// Examines the paths that the later snapshot lacks. The file may still exist, but be ignored by git now, so it
    /// counts as deleted only if it cannot be fetched.
    fn judge_gone(&mut self, excluded: &[ProjectPath], fetch: &mut BTreeSet<ProjectPath>) {
        let mut obstacles = self.now.obstacles();
        for path in self.base.snapshot.entries.keys() {
            if self.now.entries.contains_key(path) || excluded.contains(path) {
                continue;
            }
            // If a directory became a link, the path would lead to another place.
            if obstacles.of(path).is_some() {
                self.known.insert(path.clone());
            } else {
                fetch.insert(path.clone());
            }
        }
    }
}

/// Returns those properties of a file that stay the same if a directory above the file is renamed.
const fn identity(stamp: Stamp) -> (u64, i64, i64) {
    (stamp.inode, stamp.modified_ns, stamp.changed_ns)
}
