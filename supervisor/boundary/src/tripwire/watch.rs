//! The directories that are watched, and what in them may change.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::persons_git::PersonsGit;
use super::root::{self, GIT, Root};
use super::{Around, JournalOptions, WatchState, WatchedRoots, references};

/// The directories to watch, and what in them may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The project, canonical.
    pub project: PathBuf,
    /// Git directories of the project that lie elsewhere, canonical.
    pub git_directories: Vec<PathBuf>,
    /// Other write roots that are repositories, canonical.
    pub repositories: Vec<PathBuf>,
    /// What the user has given away, canonical.
    pub granted: Vec<PathBuf>,
    /// What else in the project is to stay as it is, relative to it; given away or not.
    pub kept: Vec<PathBuf>,
    /// The directories that an agent may write, canonical: a remote there may have hooks that nobody looks at.
    pub writable: Vec<PathBuf>,
    /// The directory for what is moved aside; without one, what has no part in a git directory is removed.
    pub aside: Option<PathBuf>,
    /// The baselines that sessions share; without one, each has its own.
    pub journals: Option<JournalOptions>,
    /// The person's git in the project; without it no commit is known.
    pub git: Option<PersonsGit>,
}

impl Watch {
    /// Of a project, and of nothing else.
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

    /// Adds what the user gave away: another repository is watched as the project is, and of what lies in a watched directory a
    /// change may stay.
    pub fn add_granted(&mut self, paths: &[PathBuf]) {
        let is_outside =
            |path: &&PathBuf| !path.starts_with(&self.project) && !self.project.starts_with(path);
        let others: Vec<_> =
            paths.iter().filter(is_outside).filter(|path| is_repository(path)).cloned().collect();
        self.repositories.extend(others);
        let roots: Vec<_> = self.places().map(Path::to_owned).collect();
        let inside = |path: &&PathBuf| roots.iter().any(|root| path.starts_with(root) && *path != root);
        // A repository in the project is found there, and watched.
        let is_repository =
            |path: &&PathBuf| path.file_name().is_some_and(|name| name != GIT) && is_repository(path);
        let granted: Vec<_> =
            paths.iter().filter(inside).filter(|path| !is_repository(path)).cloned().collect();
        self.granted.extend(granted);
    }

    /// Adds directories that agents may write from now on; a repository outside of what is watched is watched as the project is. True
    /// if one was new.
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

    /// The directories that are watched.
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        let others = self.git_directories.iter().chain(&self.repositories);
        [&self.project].into_iter().chain(others).map(PathBuf::as_path)
    }
}

/// True for a directory that has a repository at its top, or is a bare one.
fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has(GIT) || ["HEAD", "objects", "refs"].into_iter().all(has)
}

impl Watch {
    /// The watched places that exist, for the kernel to protect where it can: everything but links.
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

    /// The watched files that git checks out, and has to be able to: a mount would leave the old ones and have git go on.
    fn tracked(&self, root: &Path, state: &WatchState, given: &Given) -> BTreeSet<PathBuf> {
        let Some(git) = self.git.as_ref().filter(|_| root == self.project) else { return BTreeSet::new() };
        let places = root::to_protect(state, &BTreeSet::new());
        let places: Vec<_> = places.iter().filter(|place| given.may_follow_commits(root, place)).collect();
        git.tracked(root, &places).clone()
    }

    /// The same of the repositories from a number on.
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

    /// The directories and what each is, the project first.
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

/// The places that the user has given away, and those that stay all the same.
#[derive(Debug, Default)]
pub(super) struct Given {
    granted: Box<[PathBuf]>,
    kept: Box<[PathBuf]>,
}

impl Given {
    /// The same beneath a root, relative to it.
    pub(super) fn beneath(&self, root: &Path) -> Self {
        let inside = |places: &[PathBuf]| {
            places.iter().filter_map(|place| place.strip_prefix(root).ok()).map(Path::to_owned).collect()
        };
        Self { granted: inside(&self.granted), kept: inside(&self.kept) }
    }

    /// True if a place beneath a root may become what a commit of the person's holds: no part of a git directory, nothing of ours, and
    /// nothing that is to stay as it is.
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
