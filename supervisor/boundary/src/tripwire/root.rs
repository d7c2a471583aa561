use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::look::TripwireLook;
use super::references::References;
use super::repository::{Depth, REMOTES};
use super::state::{FileKind, WatchState, WatchedPlace};
use super::watch::Given;
pub(super) use gate::protected::GIT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Project,
    GitDirectory,
}

impl Root {
    pub(super) fn look(
        self,
        root: &OwnedFd,
        references: &References,
        given: &Given,
        before: Option<&WatchState>,
    ) -> WatchState {
        let mut look = TripwireLook::new(before, given);
        look.top(root);
        match self {
            Self::Project => look.project(root),
            Self::GitDirectory => look.git_directory(root, Path::new(""), Depth::OWN),
        }
        look.references(root, references);
        look.state
    }
}

impl TripwireLook<'_> {
    pub(super) fn references(&mut self, root: &OwnedFd, references: &References) {
        for (path, kind) in references {
            // A file that is watched anyway keeps its own check.
            if !self.state.places.contains_key(path) {
                self.budget.begin(path);
                self.watched(root, path, *kind);
            }
        }
    }

    pub(super) fn watched(&mut self, root: &OwnedFd, path: &Path, kind: FileKind) {
        let above = path.parent().unwrap_or(Path::new(""));
        self.within(root, above, |look, held| look.place(held, path.to_owned(), kind));
    }

    /// Opens the directories of a path in turn, and calls `look` in the last. Stops at an entry that is no directory.
    pub(super) fn within(
        &mut self,
        root: &OwnedFd,
        directory: &Path,
        look: impl FnOnce(&mut Self, &OwnedFd),
    ) {
        let mut held: Option<OwnedFd> = None;
        let mut way = PathBuf::new();
        for step in directory {
            way.push(step);
            match self.enter(held.as_ref().unwrap_or(root), &way) {
                Some(directory) => held = Some(directory),
                None => return,
            }
        }
        look(self, held.as_ref().unwrap_or(root));
    }
}

/// Returns the watched files that a read-only mount can protect, relative to the watched directory: not links, and not
/// the `tracked` files, which git must be able to check out.
pub(super) fn to_protect(state: &WatchState, tracked: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let is_whole = |path: &PathBuf| {
        let of_repository = path.parent().is_some_and(|git| state.repositories.contains(git));
        of_repository
            && path.file_name().is_some_and(|name| name == "hooks" || REMOTES.iter().any(|own| name == *own))
    };
    let directories = state.directories.keys().filter(|path| is_whole(path)).cloned();
    let open: BTreeSet<&Path> = tracked.iter().flat_map(|file| file.ancestors()).collect();
    let is_solid = |path: &Path, place: &WatchedPlace| {
        let is_judged_whole = matches!(place.kind, FileKind::Whole | FileKind::Config);
        is_judged_whole && place.is_solid() && !open.contains(path)
    };
    let solid = state.places.iter().filter(|(path, place)| is_solid(path, place));
    // A protected directory covers everything in it.
    let is_held = |path: &Path| {
        let mut above = path.ancestors().skip(1);
        above.any(|above| state.places.get(above).is_some_and(|place| is_solid(above, place)))
    };
    directories.chain(solid.map(|(path, _)| path.clone())).filter(|path| !is_held(path)).collect()
}
