//! Trees of files: on disk, and as the chunks that a worker would send.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use ipc::message::{Chunk, SnapshotEntry, SnapshotKind, Stamp};
use ipc::path::WirePath;
use supervisor::journal::changes::{Base, ChangeSet, Intake, ProjectPath, Snapshot, SnapshotLimits};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File { bytes: Vec<u8>, executable: bool },
    Link(Vec<u8>),
}

/// Returns a file that is not executable.
pub(crate) fn file(bytes: impl AsRef<[u8]>) -> Node {
    Node::File { bytes: bytes.as_ref().to_vec(), executable: false }
}

pub(crate) fn program(bytes: impl AsRef<[u8]>) -> Node {
    Node::File { bytes: bytes.as_ref().to_vec(), executable: true }
}

/// The nodes of a tree by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<Vec<u8>, Node>);

impl<P: AsRef<[u8]>, const N: usize> From<[(P, Node); N]> for Tree {
    fn from(nodes: [(P, Node); N]) -> Self {
        Self(nodes.into_iter().map(|(path, node)| (path.as_ref().to_vec(), node)).collect())
    }
}

impl Tree {
    /// Puts a node at a path. Removes nodes where the path needs a directory, and all nodes below the path.
    pub(crate) fn put(&mut self, path: &[u8], node: Node) {
        let within = |inner: &[u8], outer: &[u8]| inner.starts_with(&[outer, b"/"].concat());
        self.0.retain(|other, _| !within(other, path) && !within(path, other));
        self.0.insert(path.to_vec(), node);
    }

    pub(crate) fn write(&self, directory: &Path) {
        for (path, node) in &self.0 {
            let path = directory.join(OsStr::from_bytes(path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match node {
                Node::Link(target) => symlink(OsStr::from_bytes(target), path).unwrap(),
                Node::File { bytes, executable } => {
                    fs::write(&path, bytes).unwrap();
                    fs::set_permissions(
                        path,
                        Permissions::from_mode(if *executable { 0o755 } else { 0o644 }),
                    )
                    .unwrap();
                }
            }
        }
    }

    pub(crate) fn read(directory: &Path) -> Self {
        let mut tree = Self::default();
        tree.read_below(directory, directory);
        tree
    }

    fn read_below(&mut self, root: &Path, directory: &Path) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let node = if path.ends_with(".git") {
                continue;
            } else if metadata.is_dir() {
                self.read_below(root, &path);
                continue;
            } else if metadata.is_symlink() {
                Node::Link(fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                Node::File { bytes: fs::read(&path).unwrap(), executable }
            };
            let path = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
            self.0.insert(path.to_vec(), node);
        }
    }

    /// Returns the chunks that a worker would send for this tree, with the contents if `contents` is true.
    pub(crate) fn chunks(&self, contents: bool, stamp: Stamp) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for (path, node) in &self.0 {
            let kind = match node {
                Node::Link(target) => SnapshotKind::Symlink(target.clone().into()),
                Node::File { bytes, executable } => SnapshotKind::File {
                    mode: if *executable { 0o755 } else { 0o644 },
                    size: bytes.len() as u64,
                    omitted: false,
                },
            };
            let entry = SnapshotEntry { path: path.clone().into(), kind, stamp, born_ns: None };
            chunks.push(Chunk::Entries(vec![entry]));
            if let (Node::File { bytes, .. }, true) = (node, contents) {
                chunks.extend(bytes.chunks(7_000).map(|piece| Chunk::Content(piece.to_vec())));
            }
        }
        chunks
    }
}

/// Returns a stamp with a time this number of seconds after the snapshot of the base was requested.
pub(crate) fn stamp(inode: u64, seconds: i64) -> Stamp {
    let changed_ns = (ASKED_S + seconds) * 1_000_000_000;
    Stamp { inode, modified_ns: changed_ns, changed_ns }
}

const ASKED_S: i64 = 1_700_000_000;

pub(crate) fn asked() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(ASKED_S.unsigned_abs())
}

pub(crate) fn take(mut intake: Intake, chunks: impl IntoIterator<Item = Chunk>) -> Snapshot {
    chunks.into_iter().for_each(|chunk| intake.accept(chunk).unwrap());
    intake.finish().unwrap()
}

pub(crate) fn with_contents(chunks: Vec<Chunk>) -> Snapshot {
    take(Intake::of_contents(tempfile::tempfile().unwrap(), SnapshotLimits::default()), chunks)
}

pub(crate) fn manifest(chunks: Vec<Chunk>) -> Snapshot {
    take(Intake::of_manifest(SnapshotLimits::default()), chunks)
}

pub(crate) fn project_path(path: &str) -> ProjectPath {
    WirePath::from(path).try_into().unwrap()
}

/// Returns the change set between two trees. The comparison gets all contents that it asks for.
pub(crate) fn change_set(old: &Tree, new: &Tree, excluded: &[ProjectPath]) -> ChangeSet {
    let base = Base::new(with_contents(old.chunks(true, stamp(1, 0))), asked());
    let comparison = base.compare(manifest(new.chunks(false, stamp(1, 0))), excluded);
    let asked_for: Vec<_> = comparison.fetches().into_iter().flatten().collect();
    let mut wanted = new.clone();
    wanted.0.retain(|path, _| asked_for.iter().any(|asked| asked.as_bytes() == path));
    let intake = comparison.intake(tempfile::tempfile().unwrap(), SnapshotLimits::default());
    let fetched = take(intake, wanted.chunks(true, stamp(1, 0)));
    comparison.resolve(&fetched).unwrap()
}
