use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::persons_git::PersonsGit;
use super::root::{self, GIT, Root};
use super::{Around, JournalOptions, WatchState, WatchedRoots, references};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub project: PathBuf,
    pub git_directories: Vec<PathBuf>,
    /// Canonical paths of writable directories other than the project that are repositories.
    pub repositories: Vec<PathBuf>,
    /// Canonical paths at which agents may change any file: the tripwire undoes no change there.
    pub granted: Vec<PathBuf>,
    /// Paths, relative to the project, at which changes are undone even if they are in a directory of `granted`.
    pub kept: Vec<PathBuf>,
    /// Canonical paths to which agents may write. A remote at such a path may have hooks that are not watched.
    pub writable: Vec<PathBuf>,
    /// Directory to which changed files are moved. If `None`, entries that git itself does not have are removed.
    pub aside: Option<PathBuf>,
    /// Journals of the recorded state, which sessions share. If `None`, each session records the state by itself.
    pub journals: Option<JournalOptions>,
    /// The person's git repository in the project. If `None`, no change is accepted because of a commit.
    pub git: Option<PersonsGit>,
}

impl Watch {
    pub const fn of(project: PathBuf) -> Self {
        Self {
            project,
            git_directories: Vec::new(),
            repositories: Vec::new(),
            granted: Vec::new(),
            kept: Vec::new(),
            writable: Vec::new(),
            aside: None,
            journals: None,
            git: None,
        }
    }

    /// Adds paths to `granted`. A repository among them outside of the project is watched like the project instead.
    pub fn add_granted(&mut self, paths: &[PathBuf]) {
        let is_outside =
            |path: &&PathBuf| !path.starts_with(&self.project) && !self.project.starts_with(path);
        let others: Vec<_> =
            paths.iter().filter(is_outside).filter(|path| is_repository(path)).cloned().collect();
        self.repositories.extend(others);
        let roots: Vec<_> = self.places().map(Path::to_owned).collect();
        let inside = |path: &&PathBuf| roots.iter().any(|root| path.starts_with(root) && *path != root);
        // A repository in the project is found by the search.
        let is_repository =
            |path: &&PathBuf| path.file_name().is_some_and(|name| name != GIT) && is_repository(path);
        let granted: Vec<_> =
            paths.iter().filter(inside).filter(|path| !is_repository(path)).cloned().collect();
        self.granted.extend(granted);
    }

    /// Adds directories to which agents may write from now on. A repository among them is watched like the project.
    /// Returns true if any directory is new.
    pub fn widen<'a>(&mut self, roots: impl Iterator<Item = &'a Path>) -> bool {
        let is_new = |path: &&Path| !self.writable.iter().any(|known| known == path);
        let new: Vec<_> = roots.filter(is_new).map(Path::to_owned).collect();
        let is_outside = |path: &&PathBuf| {
            let meets = |place: &Path| path.starts_with(place) || place.starts_with(path);
            !self.places().any(meets)
        };
        let repositories: Vec<_> =
            new.iter().filter(is_outside).filter(|path| is_repository(path)).cloned().collect();
        self.repositories.extend(repositories);
        let has_more = !new.is_empty();
        self.writable.extend(new);
        has_more
    }

    pub fn places(&self) -> impl Iterator<Item = &Path> {
        let others = self.git_directories.iter().chain(&self.repositories);
        [&self.project].into_iter().chain(others).map(PathBuf::as_path)
    }
}

fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has(GIT) || ["HEAD", "objects", "refs"].into_iter().all(has)
}

impl Watch {
    /// Returns the existing watched files that read-only mounts can protect: all except links.
    pub fn existing(&self) -> io::Result<Vec<PathBuf>> {
        let mut roots = self.roots()?;
        references::follow(&mut roots, self.git.as_ref().map(PersonsGit::sources));
        let mut existing = Vec::new();
        let given = self.given();
        for WatchedRoots { path, state, .. } in &roots {
            let tracked = self.tracked(path, state, &given);
            existing.extend(root::to_protect(state, &tracked).into_iter().map(|inside| path.join(inside)));
        }
        existing.retain(|path| !given.has(path));
        Ok(existing)
    }

    /// Returns the watched files that git must be able to check out. With a mount on such a file, a checkout would
    /// fail.
    fn tracked(&self, root: &Path, state: &WatchState, given: &Given) -> BTreeSet<PathBuf> {
        let Some(git) = self.git.as_ref().filter(|_| root == self.project) else { return BTreeSet::new() };
        let places = root::to_protect(state, &BTreeSet::new());
        let places: Vec<_> = places.iter().filter(|place| given.may_follow_commits(root, place)).collect();
        git.tracked(root, &places).clone()
    }

    /// Returns the same as [`Watch::existing`], but only for the repositories from index `known` on.
    pub fn existing_since(&self, known: usize) -> io::Result<Vec<PathBuf>> {
        let mut new = self.repositories.iter().skip(known).cloned();
        let Some(project) = new.next() else { return Ok(Vec::new()) };
        Self { repositories: new.collect(), granted: self.granted.clone(), ..Self::of(project) }.existing()
    }

    pub(super) fn given(&self) -> Given {
        let kept = self.kept.iter().map(|path| self.project.join(path)).collect();
        Given { granted: self.granted.clone().into(), kept }
    }

    pub(super) fn around(&self) -> Around {
        Around {
            given: self.given(),
            searched: [&self.project].into_iter().chain(&self.repositories).cloned().collect(),
            writable: self.writable.clone(),
            aside: self.aside.clone(),
            git: self.git.clone(),
        }
    }

    pub(super) fn places_by_root(&self) -> impl Iterator<Item = (Root, &Path)> {
        let elsewhere = self.git_directories.iter().map(|path| (Root::GitDirectory, path.as_path()));
        let projects = [&self.project].into_iter().chain(&self.repositories);
        let mut projects = projects.map(|path| (Root::Project, path.as_path()));
        projects.next().into_iter().chain(elsewhere).chain(projects)
    }

    fn roots(&self) -> io::Result<Vec<WatchedRoots>> {
        let given = self.given();
        let kept = |index: usize| if index == 0 { self.kept.as_slice() } else { &[] };
        let roots = self.places_by_root().enumerate();
        roots
            .map(|(index, (root, path))| WatchedRoots::taken(root, path, kept(index), given.beneath(path)))
            .collect()
    }
}

/// Paths at which agents may change any file, and the exceptions below these paths.
#[derive(Debug, Default)]
pub(super) struct Given {
    granted: Box<[PathBuf]>,
    kept: Box<[PathBuf]>,
}

impl Given {
    /// Returns those paths and exceptions that are in the watched directory `root`, relative to `root`.
    pub(super) fn beneath(&self, root: &Path) -> Self {
        let inside = |places: &[PathBuf]| {
            places.iter().filter_map(|place| place.strip_prefix(root).ok()).map(Path::to_owned).collect()
        };
        Self { granted: inside(&self.granted), kept: inside(&self.kept) }
    }

    /// True if a file may take on its content in one of the person's commits. False in git directories, for Bailiwick's
    /// own files, and for exceptions.
    pub(super) fn may_follow_commits(&self, root: &Path, inside: &Path) -> bool {
        let path = root.join(inside);
        let is_ours = |name: &OsStr| name.as_bytes().to_ascii_lowercase().starts_with(b".bailiwick");
        !inside.iter().any(|name| name == GIT)
            && !inside.iter().next().is_some_and(is_ours)
            && !self.kept.iter().any(|kept| path.starts_with(kept) || kept.starts_with(&path))
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        within(&self.granted) && !within(&self.kept)
    }
}
