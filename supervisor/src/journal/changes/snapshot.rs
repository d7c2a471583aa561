//! Snapshots of the project's files. A worker sends a snapshot in pieces. Each piece is checked when it arrives.

use std::collections::btree_map::Keys;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::iter::Peekable;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use ipc::message::{Chunk, SnapshotEntry, SnapshotKind, Stamp};
use ipc::path::WirePath;

use super::blob::Blob;
use super::path::{PathError, ProjectPath};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLimits {
    pub entries: usize,
    /// Maximum size in bytes of all contents together.
    pub content: u64,
    /// Maximum size in bytes of all paths and link targets together. They are kept in memory.
    pub names: usize,
}

impl Default for SnapshotLimits {
    /// Returns the defaults: a million entries (the Linux kernel has 90,000), 4 GiB of contents, 256 MiB of names.
    fn default() -> Self {
        Self { entries: 1_000_000, content: 4 << 30, names: 256 << 20 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// A path cannot belong to the project.
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("the path {0} came twice in one snapshot")]
    Duplicate(ProjectPath),
    #[error("{inner} cannot be inside {outer}, which is not a directory")]
    Within { inner: ProjectPath, outer: ProjectPath },
    #[error("the path {0} was not requested")]
    Unasked(ProjectPath),
    #[error("the target of link {path} has {len} bytes, not between 1 and 4095")]
    Target { path: ProjectPath, len: usize },
    /// Content bytes arrived without a file, or more than the file's size.
    #[error("{0} bytes came that belong to no file of the snapshot")]
    Surplus(usize),
    #[error("the content of {path} lacks {missing} bytes")]
    Incomplete { path: ProjectPath, missing: u64 },
    /// A piece arrived that belongs to the response to another kind of call.
    #[error("a command's output came within a snapshot")]
    Foreign,
    #[error("the snapshot exceeds its limit of {limit} {of}")]
    TooLarge { limit: u64, of: &'static str },
    #[error("contents of the snapshot could not be saved: {0}")]
    Store(#[source] io::Error),
}

/// The project's files and links at one point in time.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(super) entries: BTreeMap<ProjectPath, SnapshotFile>,
}

impl Snapshot {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the files and links in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&ProjectPath, &SnapshotKind, Stamp)> {
        self.entries.iter().map(|(path, entry)| (path, &entry.kind, entry.stamp))
    }

    pub fn has(&self, path: &ProjectPath) -> bool {
        self.entries.contains_key(path)
    }

    /// Returns the creation time of a file; `None` if it is unknown.
    pub fn born_ns(&self, path: &ProjectPath) -> Option<i64> {
        self.entries.get(path)?.born_ns
    }

    /// Returns the content of a file; `None` if it was not recorded.
    pub fn content(&self, path: &ProjectPath) -> Option<&Blob> {
        self.entries.get(path)?.blob.as_ref()
    }

    /// Returns a search for files and links that stand where other paths need a directory.
    pub fn obstacles(&self) -> Obstacles<'_> {
        Obstacles { left: self.entries.keys().peekable(), above: Vec::new() }
    }
}

/// A search for files and links that stand where other paths need a directory. Looks at each entry of the snapshot only
/// once, however many paths are searched.
pub struct Obstacles<'a> {
    /// The entries of the snapshot that are not before the last searched path in the order of paths.
    left: Peekable<Keys<'a, ProjectPath, SnapshotFile>>,
    /// The entries whose paths are a prefix of the last visited entry's path, the shortest first.
    above: Vec<&'a ProjectPath>,
}

impl<'a> Obstacles<'a> {
    /// Returns the file or link that a path would pass through; `None` without one. Callers must ask for paths in
    /// ascending order.
    pub fn of(&mut self, path: &ProjectPath) -> Option<&'a ProjectPath> {
        while let Some(next) = self.left.next_if(|next| *next < path) {
            while self.above.pop_if(|above| !next.as_bytes().starts_with(above.as_bytes())).is_some() {}
            self.above.push(next);
        }
        let path = path.as_bytes();
        let last = self.above.last().map_or(&[][..], |last| last.as_bytes());
        let common = last.iter().zip(path).take_while(|(one, other)| one == other).count();
        let holds = |above: &&&ProjectPath| {
            let length = above.as_bytes().len();
            length <= common && path.get(length) == Some(&b'/')
        };
        self.above.iter().find(holds).copied()
    }
}

#[derive(Clone, Debug)]
pub(super) struct SnapshotFile {
    pub(super) kind: SnapshotKind,
    pub(super) stamp: Stamp,
    pub(super) born_ns: Option<i64>,
    /// The content of a file; `None` if it was not recorded.
    pub(super) blob: Option<Blob>,
}

#[derive(Debug)]
pub struct Intake {
    limits: SnapshotLimits,
    store: Option<Arc<File>>,
    only: Option<Arc<BTreeSet<ProjectPath>>>,
    snapshot: Snapshot,
    open: Option<OpenEntry>,
    stored: u64,
    named: usize,
}

#[derive(Debug)]
struct OpenEntry {
    path: ProjectPath,
    entry: SnapshotFile,
    offset: u64,
    missing: u64,
}

impl Intake {
    /// Creates a receiver for a snapshot without contents.
    pub fn of_manifest(limits: SnapshotLimits) -> Self {
        Self {
            limits,
            store: None,
            only: None,
            snapshot: Snapshot::default(),
            open: None,
            stored: 0,
            named: 0,
        }
    }

    /// Creates a receiver for a snapshot with contents. They are written to `store`, an empty file that no agent can
    /// open.
    pub fn of_contents(store: File, limits: SnapshotLimits) -> Self {
        Self { store: Some(Arc::new(store)), ..Self::of_manifest(limits) }
    }

    /// Creates a receiver for the contents of exactly these paths.
    pub fn of_paths(store: File, limits: SnapshotLimits, only: Arc<BTreeSet<ProjectPath>>) -> Self {
        Self { only: Some(only), ..Self::of_contents(store, limits) }
    }

    pub fn accept(&mut self, chunk: Chunk) -> Result<(), IntakeError> {
        match chunk {
            Chunk::Entries(entries) => entries.into_iter().try_for_each(|entry| self.entry(entry)),
            Chunk::Content(bytes) => self.content(&bytes),
            Chunk::Text(_) => Err(IntakeError::Foreign),
        }
    }

    /// Returns the snapshot. Fails if a content is incomplete, or an entry is below a file or link.
    pub fn finish(mut self) -> Result<Snapshot, IntakeError> {
        self.closed()?;
        let mut obstacles = self.snapshot.obstacles();
        for path in self.snapshot.entries.keys() {
            if let Some(outer) = obstacles.of(path) {
                return Err(IntakeError::Within { inner: path.clone(), outer: outer.clone() });
            }
        }
        Ok(self.snapshot)
    }

    fn entry(&mut self, entry: SnapshotEntry) -> Result<(), IntakeError> {
        self.closed()?;
        let path = ProjectPath::try_from(entry.path)?;
        self.admit(&path, &entry.kind)?;
        let due = self.due(&entry.kind);
        let mut entry =
            SnapshotFile { kind: entry.kind, stamp: entry.stamp, born_ns: entry.born_ns, blob: None };
        let Some((store, size)) = self.store.as_ref().zip(due) else {
            self.snapshot.entries.insert(path, entry);
            return Ok(());
        };
        if size > self.limits.content.saturating_sub(self.stored) {
            return Err(IntakeError::TooLarge { limit: self.limits.content, of: "bytes of contents" });
        }
        entry.blob = Some(Blob::new(Arc::clone(store), self.stored, size));
        self.open = Some(OpenEntry { path, entry, offset: self.stored, missing: size });
        self.stored += size;
        self.close_if_complete();
        Ok(())
    }

    /// Returns the number of content bytes that must follow an entry; `None` if the entry has no content.
    fn due(&self, kind: &SnapshotKind) -> Option<u64> {
        match kind {
            SnapshotKind::File { size, omitted: false, .. } if self.store.is_some() => Some(*size),
            SnapshotKind::File { .. } | SnapshotKind::Symlink(_) => None,
        }
    }

    fn admit(&mut self, path: &ProjectPath, kind: &SnapshotKind) -> Result<(), IntakeError> {
        if self.snapshot.entries.contains_key(path) {
            return Err(IntakeError::Duplicate(path.clone()));
        }
        if self.only.as_ref().is_some_and(|only| !only.contains(path)) {
            return Err(IntakeError::Unasked(path.clone()));
        }
        if self.snapshot.entries.len() == self.limits.entries {
            return Err(IntakeError::TooLarge { limit: self.limits.entries as u64, of: "entries" });
        }
        self.named += path.as_bytes().len();
        if let SnapshotKind::Symlink(target) = kind {
            self.named += checked_target(path, target)?;
        }
        if self.named > self.limits.names {
            return Err(IntakeError::TooLarge { limit: self.limits.names as u64, of: "bytes of names" });
        }
        Ok(())
    }

    fn content(&mut self, bytes: &[u8]) -> Result<(), IntakeError> {
        let fits = |open: &&mut OpenEntry| bytes.len() as u64 <= open.missing;
        let Some((open, store)) = self.open.as_mut().filter(fits).zip(self.store.as_ref()) else {
            return if bytes.is_empty() { Ok(()) } else { Err(IntakeError::Surplus(bytes.len())) };
        };
        store.write_all_at(bytes, open.offset).map_err(IntakeError::Store)?;
        open.offset += bytes.len() as u64;
        open.missing -= bytes.len() as u64;
        self.close_if_complete();
        Ok(())
    }

    fn close_if_complete(&mut self) {
        if let Some(open) = self.open.take_if(|open| open.missing == 0) {
            self.snapshot.entries.insert(open.path, open.entry);
        }
    }

    fn closed(&mut self) -> Result<(), IntakeError> {
        self.open
            .take()
            .map_or(Ok(()), |open| Err(IntakeError::Incomplete { path: open.path, missing: open.missing }))
    }
}

fn checked_target(path: &ProjectPath, target: &WirePath) -> Result<usize, IntakeError> {
    // symlink(2): an empty target is ENOENT, one of PATH_MAX or more ENAMETOOLONG.
    let len = target.as_bytes().len();
    if len == 0 || len >= 4096 {
        return Err(IntakeError::Target { path: path.clone(), len });
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: SnapshotLimits = SnapshotLimits { entries: 3, content: 10, names: 20 };

    fn file(path: &str, size: u64) -> Chunk {
        entry(path, SnapshotKind::File { mode: 0o644, size, omitted: false })
    }

    fn entry(path: &str, kind: SnapshotKind) -> Chunk {
        let stamp = Stamp { inode: 1, modified_ns: 0, changed_ns: 0 };
        Chunk::Entries(vec![SnapshotEntry { path: path.into(), kind, stamp, born_ns: None }])
    }

    fn content(bytes: &str) -> Chunk {
        Chunk::Content(bytes.into())
    }

    fn take(mut intake: Intake, chunks: Vec<Chunk>) -> Result<Snapshot, IntakeError> {
        chunks.into_iter().try_for_each(|chunk| intake.accept(chunk))?;
        intake.finish()
    }

    fn with_contents(chunks: Vec<Chunk>) -> Result<Snapshot, IntakeError> {
        take(Intake::of_contents(tempfile::tempfile().unwrap(), SMALL), chunks)
    }

    #[test]
    fn contents_come_together_from_their_pieces() {
        let chunks = vec![
            file("b", 5),
            content("he"),
            content(""),
            content("llo"),
            file("empty", 0),
            content(""),
            entry("a", SnapshotKind::File { mode: 0o755, size: 1 << 40, omitted: true }),
        ];
        let snapshot = with_contents(chunks).unwrap();
        let bytes = |path: &str| {
            let path = ProjectPath::try_from(WirePath::from(path)).unwrap();
            snapshot.entries[&path].blob.as_ref().map(|blob| blob.bytes().unwrap())
        };
        assert_eq!(bytes("b"), Some(b"hello".to_vec()));
        assert_eq!(bytes("empty"), Some(Vec::new()));
        assert_eq!(bytes("a"), None);
    }

    #[test]
    fn every_lie_is_refused_by_name() {
        let link = |target: &str| entry("l", SnapshotKind::Symlink(target.into()));
        for (chunks, expected) in [
            (vec![file("../x", 0)], r#"path "../x" has the forbidden component "..""#),
            (vec![file(".git/config", 0)], r#"path ".git/config" has the forbidden component ".git""#),
            (vec![file("/x", 0)], r#"path "/x" is not relative to the project"#),
            (vec![file("x", 0), file("x", 0)], "the path x came twice in one snapshot"),
            (vec![file("x", 0), file("x/y", 0)], "x/y cannot be inside x, which is not a directory"),
            (vec![link("/"), file("l/etc", 0)], "l/etc cannot be inside l, which is not a directory"),
            (vec![link("")], "the target of link l has 0 bytes, not between 1 and 4095"),
            (vec![file("x", 2), content("abc")], "3 bytes came that belong to no file of the snapshot"),
            (vec![content("abc")], "3 bytes came that belong to no file of the snapshot"),
            (vec![file("x", 2), content("a"), file("y", 0)], "the content of x lacks 1 bytes"),
            (vec![file("x", 2)], "the content of x lacks 2 bytes"),
            (
                vec![file("x", 6), content("123456"), file("y", 5)],
                "the snapshot exceeds its limit of 10 bytes of contents",
            ),
            (vec![file("x", u64::MAX)], "the snapshot exceeds its limit of 10 bytes of contents"),
            (
                vec![file("a", 0), file("b", 0), file("c", 0), file("d", 0)],
                "the snapshot exceeds its limit of 3 entries",
            ),
            (vec![link("a-target-that-is-too-long")], "the snapshot exceeds its limit of 20 bytes of names"),
            (vec![Chunk::Text(b"x".into())], "a command's output came within a snapshot"),
        ] {
            assert_eq!(with_contents(chunks).unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        /// Tests that the search finds what a lookup of each directory above each path finds.
        #[test]
        fn what_is_in_the_way_is_found(
            files in proptest::collection::btree_set("[ab]([ab/-]{0,6}[ab])?", 0..12),
            asked in proptest::collection::btree_set("[ab]([ab/-]{0,8}[ab])?", 0..12),
        ) {
            let paths = |names: BTreeSet<String>| -> BTreeSet<ProjectPath> {
                names.iter().filter_map(|name| WirePath::from(name.as_str()).try_into().ok()).collect()
            };
            let kind = SnapshotKind::File { mode: 0o644, size: 0, omitted: false };
            let stamp = Stamp { inode: 1, modified_ns: 0, changed_ns: 0 };
            let file = SnapshotFile { kind, stamp, born_ns: None, blob: None };
            let entries: BTreeMap<_, _> = paths(files).into_iter().map(|path| (path, file.clone())).collect();
            let snapshot = Snapshot { entries };
            let mut obstacles = snapshot.obstacles();
            for path in paths(asked) {
                let is_there = |above: &ProjectPath| snapshot.has(above);
                prop_assert_eq!(obstacles.of(&path).is_some(), path.ancestors().any(|above| is_there(&above)));
            }
        }
    }

    #[test]
    fn a_manifest_takes_no_contents() {
        let manifest = take(Intake::of_manifest(SMALL), vec![file("x", 1 << 50), file("y", 1)]).unwrap();
        assert_eq!(manifest.len(), 2);
        let error = take(Intake::of_manifest(SMALL), vec![file("x", 1), content("a")]).unwrap_err();
        assert!(matches!(error, IntakeError::Surplus(1)), "{error}");
    }

    #[test]
    fn a_path_that_was_not_asked_for_is_refused() {
        let asked = Arc::new(BTreeSet::from([ProjectPath::try_from(WirePath::from("x")).unwrap()]));
        let intake = || Intake::of_paths(tempfile::tempfile().unwrap(), SMALL, Arc::clone(&asked));
        assert!(take(intake(), vec![file("x", 1), content("a")]).is_ok());
        let error = take(intake(), vec![file("y", 0)]).unwrap_err();
        assert!(matches!(error, IntakeError::Unasked(_)), "{error}");
    }
}
