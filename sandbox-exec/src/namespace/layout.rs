//! What lies where in the tree of the full tier, as plain data.

use std::path::{Path, PathBuf};

use ipc::confinement::{Confinement, Tier};
use ipc::path::WirePath;

use crate::tree::resolve;

/// Where a private temp directory is mounted.
pub(crate) const TMP: &str = "/tmp";

/// What lies where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// What becomes `/tmp`.
    pub(crate) tmp: Option<PathBuf>,
    /// What is mounted on its own path, the outer before the inner.
    pub(crate) roots: Vec<Root>,
    /// What is covered, if it exists.
    pub(crate) hidden: Vec<PathBuf>,
    /// What cannot be changed inside a root that can, if it exists.
    pub(crate) protected: Vec<Protected>,
}

/// What is mounted on its own path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
}

/// What cannot be changed, and the root that it lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Protected {
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
}

impl Layout {
    /// The layout of a confinement, of which nothing has been taken over into the full tier yet. `program` is what will be
    /// executed, if it is named by its path.
    pub(crate) fn new(confinement: &Confinement, program: Option<&Path>) -> Self {
        let Confinement { rights, temp, project, .. } = confinement;
        let tmp = temp.clone().filter(|_| confinement.has_private_tmp(Tier::Full));
        let written = rights.write.iter().filter(|root| Some(*root) != tmp.as_ref());
        let mut roots: Vec<Root> =
            written.map(|root| Root { path: root.clone().into(), writable: true }).collect();
        if tmp.is_some() {
            let read = rights.read.iter().chain([project]).map(WirePath::as_path);
            for path in read.map(Path::to_owned).chain(program.into_iter().flat_map(names)) {
                let covered = path.starts_with(TMP) && path != Path::new(TMP);
                if covered && !roots.iter().any(|root| path.starts_with(&root.path)) {
                    roots.push(Root { path, writable: false });
                }
            }
        }
        roots.sort();
        let protected = rights.protected.iter().filter_map(|path| {
            let root = rights.write.iter().find(|root| path.is_within(root) && path != *root)?;
            Some(Protected { root: root.clone().into(), path: path.clone().into() })
        });
        Self {
            protected: protected.collect(),
            hidden: hidden(&rights.hidden),
            tmp: tmp.map(Into::into),
            roots,
        }
    }

    /// Whether the program sees what the host has at `path`, and not what a `/tmp` of its own has there.
    pub(crate) fn shows(&self, path: &Path) -> bool {
        let own = self.tmp.is_some() && path.starts_with(TMP);
        !own || self.roots.iter().any(|root| path.starts_with(&root.path))
    }
}

/// A program's own name, and that of the file which it leads to.
fn names(program: &Path) -> [PathBuf; 2] {
    [program.to_owned(), resolve(program)]
}

/// A hidden path is hidden under the name that it was given, and under the one that it resolves to; the outer before the
/// inner, which is then gone.
fn hidden(paths: &[WirePath]) -> Vec<PathBuf> {
    let mut all: Vec<_> =
        paths.iter().flat_map(|path| [path.as_path().to_owned(), resolve(path.as_path())]).collect();
    all.sort();
    all.dedup();
    all
}
