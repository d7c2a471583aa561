//! From two snapshots to a change set, fetching no more contents than needed.

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

/// Tolerance for a file system's clock and its resolution: FAT counts in steps of two seconds.
const CLOCK_MARGIN_NS: i64 = 2_000_000_000;

/// The most bytes of paths that one `Fetch` names, well below a frame's cap.
const FETCH_BYTES: usize = 1 << 20;

/// The project as it was at the session's start.
#[derive(Debug)]
pub struct Base {
    snapshot: Snapshot,
    /// Stamps of this time or later prove nothing: a later change can have left the same ones.
    settled_before_ns: i64,
}

/// Differences of the project, as far as its manifest shows them.
#[derive(Debug)]
pub struct Comparison<'a> {
    base: &'a Base,
    now: Snapshot,
    fetch: Arc<BTreeSet<ProjectPath>>,
    /// Paths that changed for certain, or not in their content.
    known: BTreeSet<ProjectPath>,
    left_out: Vec<String>,
}

impl Base {
    /// The base from a snapshot with contents that was asked for at `asked`, before anything of it was read.
    ///
    /// `asked` is a time of the clock that stamps the project's files.
    pub fn new(snapshot: Snapshot, asked: SystemTime) -> Self {
        let since_epoch = asked.duration_since(UNIX_EPOCH).unwrap_or_default();
        let asked_ns = i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX);
        Self { snapshot, settled_before_ns: asked_ns.saturating_sub(CLOCK_MARGIN_NS) }
    }

    /// A base without contents: it has stamps only.
    pub fn of_stamps(snapshot: Snapshot) -> Self {
        Self { snapshot, settled_before_ns: 0 }
    }

    pub fn len(&self) -> usize {
        self.snapshot.len()
    }

    pub fn is_empty(&self) -> bool {
        self.snapshot.is_empty()
    }

    /// Compares with a later manifest; the `excluded` paths are not part of the project.
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

    /// The paths whose kind or stamp is another in a later manifest, and those that came or went, in order. Contents are not compared: a
    /// file that was written with the bytes that it had is one of them.
    pub fn stamped_since(&self, now: &Snapshot) -> Vec<ProjectPath> {
        let old = &self.snapshot.entries;
        let differs = |path: &&ProjectPath| match (old.get(path), now.entries.get(path)) {
            (Some(old), Some(now)) => old.stamp != now.stamp,
            _ => true,
        };
        let paths: BTreeSet<_> = old.keys().chain(now.entries.keys()).filter(differs).collect();
        paths.into_iter().cloned().collect()
    }

    /// True if both look equal, and the stamp is old enough to prove it. A content that was not recorded has
    /// only its stamp.
    fn is_settled(&self, old: &SnapshotFile, now: &SnapshotFile) -> bool {
        let is_proof = self.is_old(&old.stamp) || is_unreadable(old) || is_unreadable(now);
        is_proof && old.stamp == now.stamp && is_same_kind(&old.kind, &now.kind)
    }

    fn is_old(&self, stamp: &Stamp) -> bool {
        stamp.changed_ns < self.settled_before_ns
    }
}

/// Paths in parts of which each fits into one `Fetch`.
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

/// True if both have the same type, mode and size, or target. A manifest does not record which contents are
/// unavailable.
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

/// True if there is no content to fetch: of links, and of files that are too large or could not be read.
const fn is_unreadable(entry: &SnapshotFile) -> bool {
    matches!(entry.kind, SnapshotKind::Symlink(_) | SnapshotKind::File { omitted: true, .. })
}

impl Comparison<'_> {
    /// Returns the contents to fetch: the paths of one `Fetch` call each.
    pub fn fetches(&self) -> Vec<Vec<WirePath>> {
        batches(self.fetch.iter())
    }

    /// Takes in what the `Fetch` calls bring, of all of them one after the other.
    pub fn intake(&self, store: File, limits: SnapshotLimits) -> Intake {
        Intake::of_paths(store, limits, Arc::clone(&self.fetch))
    }

    /// The change set. What was fetched is later than the manifest, and therefore right.
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
                        "{path} is not in the patch: it was there before the session, and git ignored it then"
                    ));
                }
                _ if is_unreadable(now) => drop(self.known.insert(path.clone())),
                _ => drop(fetch.insert(path.clone())),
            }
        }
    }

    /// A path that the manifest lacks may only be ignored now: it is gone if it cannot be fetched.
    fn judge_gone(&mut self, excluded: &[ProjectPath], fetch: &mut BTreeSet<ProjectPath>) {
        let mut obstacles = self.now.obstacles();
        for path in self.base.snapshot.entries.keys() {
            if self.now.entries.contains_key(path) || excluded.contains(path) {
                continue;
            }
            // Where a directory became a link, the path would lead elsewhere.
            if obstacles.of(path).is_some() {
                self.known.insert(path.clone());
            } else {
                fetch.insert(path.clone());
            }
        }
    }
}

/// Returns the facts of a file that survive the renaming of one of its directories.
const fn identity(stamp: Stamp) -> (u64, i64, i64) {
    (stamp.inode, stamp.modified_ns, stamp.changed_ns)
}
