//! Write roots that no worker could be given, whoever approves them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ipc::plan::Plan;

/// The fault of a write root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RootFault {
    /// Nothing stands there: no rule of the kernel could be about it.
    #[error("write: {} does not exist: make it first, or name the directory it is to lie in", .0.display())]
    Missing(PathBuf),
    /// No link is followed when rules are made, and what it leads to was not judged.
    #[error("write: {} leads through a link to {}: name that place", .0.display(), .1.display())]
    BehindLink(PathBuf, PathBuf),
}

/// The fault of a root, an absolute path, if it has one. A link stands there, whatever it leads to.
pub(super) fn fault_of(root: &Path) -> Option<RootFault> {
    if root.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Some(RootFault::Missing(root.to_owned()));
    }
    let found = root.canonicalize().ok()?;
    (found != root).then(|| RootFault::BehindLink(root.to_owned(), found))
}

/// The first fault of what a plan asks for in this project: its execution could not begin.
pub(crate) fn fault_of_plan(plan: &Plan, project: &Path) -> Option<RootFault> {
    let roots = plan.rights.iter().flat_map(|rights| &rights.write);
    roots.map(|root| project.join(root).components().collect::<PathBuf>()).find_map(|root| fault_of(&root))
}
