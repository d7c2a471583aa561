//! Watches everything in a git directory that git may execute or follow, now or when it continues a paused operation.
//!
//! An allowlist ([`layout`](super::layout)) contains the files that git only reads as data. These may change as long as
//! they are regular files, since `git commit` outside of the sandbox would write through a link.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::beneath;
use super::bounds::{Bound, DEEPEST_TREE, MOST_TREES};
use super::layout::{self, LayoutPart, Operation};
use super::look::TripwireLook;
use super::state::{FileKind, TripwireListing, TripwireRule};

/// Directories that define remotes in addition to the configuration (gitrepository-layout(5)).
pub(super) const REMOTES: &[&str] = &["remotes", "branches"];

/// Limit on the nesting of repositories within a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth {
    most: usize,
    modules: usize,
    /// True if entries that git does not know are recorded. False for a directory that may only look like a repository
    /// and contain other files of the person.
    is_strict: bool,
}

impl Depth {
    /// Limit for the git directory of a watched project.
    pub(super) const OWN: Self = Self { most: 12, modules: 12, is_strict: true };
    /// Limit for other repositories that are found in a project.
    pub(super) const NESTED: Self = Self { most: 6, modules: 6, is_strict: true };
    /// Limit for a directory whose entries are those of a bare repository.
    pub(super) const BARE: Self = Self { most: 6, modules: 6, is_strict: false };

    const fn below(self) -> Option<Self> {
        match self.modules.checked_sub(1) {
            Some(modules) => Some(Self { modules, is_strict: true, ..self }),
            None => None,
        }
    }
}

impl TripwireLook<'_> {
    pub(super) fn git_directory(&mut self, git: &OwnedFd, path: &Path, depth: Depth) {
        self.state.repositories.insert(path.to_owned());
        self.place(git, path.join("config"), FileKind::Config);
        self.place(git, path.join("config.worktree"), FileKind::Config);
        self.place(git, path.join("commondir"), FileKind::CommonDirectory);
        for name in REMOTES {
            self.part(path, name);
            self.each(git, path.join(name));
        }
        self.part(path, "hooks");
        self.hooks(git, path.join("hooks"));
        self.worktrees(git, path.join("worktrees"), depth);
        self.modules(git, path.join("modules"), depth);
        self.layout(git, path, depth);
    }

    fn part(&mut self, git: &Path, name: &str) {
        self.begin_data(&git.join(name));
    }

    fn begin_data(&mut self, path: &Path) {
        self.budget.begin(path);
        self.trees = 0;
    }

    fn each(&mut self, git: &OwnedFd, path: PathBuf) {
        let Some(directory) = self.enter(git, &path) else { return };
        for (name, _) in self.entries(&directory, &path, TripwireListing::Whole) {
            self.place(&directory, path.join(name), FileKind::Whole);
        }
    }

    fn hooks(&mut self, git: &OwnedFd, path: PathBuf) {
        let Some(hooks) = self.enter(git, &path) else { return };
        for (name, _) in self.entries(&hooks, &path, TripwireListing::Hooks) {
            self.place(&hooks, path.join(name), FileKind::Hook);
        }
    }

    fn worktrees(&mut self, git: &OwnedFd, path: PathBuf, depth: Depth) {
        let Some(below) = depth.below() else { return self.beyond(git, &path, Bound::Depth(depth.most)) };
        let Some(worktrees) = self.enter(git, &path) else { return };
        self.budget.begin(&path);
        for (name, _) in self.entries(&worktrees, &path, TripwireListing::Repositories) {
            let path = path.join(name);
            // Without its `commondir`, a worktree's directory is a git directory like any other.
            if let Some(worktree) = self.enter(&worktrees, &path) {
                self.git_directory(&worktree, &path, below);
            }
        }
    }

    /// Records the repositories of submodules. Names may contain slashes, so each directory is a repository or contains
    /// some.
    fn modules(&mut self, at: &OwnedFd, path: PathBuf, depth: Depth) {
        let Some(depth) = depth.below() else { return self.beyond(at, &path, Bound::Depth(depth.most)) };
        let Some(modules) = self.enter(at, &path) else { return };
        self.budget.begin(&path);
        for (name, _) in self.entries(&modules, &path, TripwireListing::Repositories) {
            let path = path.join(name);
            let Some(module) = self.enter(&modules, &path) else { continue };
            let is_repository = beneath::stat(&module, OsStr::new("HEAD")).is_ok();
            let depth = Depth { is_strict: is_repository, ..depth };
            self.git_directory(&module, &path, depth);
            if !is_repository {
                drop(module);
                self.modules(&modules, path, depth);
            }
        }
    }

    /// Records the entries at the top of a git directory that are not watched by name. Those unknown to git come last.
    fn layout(&mut self, git: &OwnedFd, path: &Path, depth: Depth) {
        self.budget.begin(path);
        let entries = self.entries(git, path, TripwireListing::GitDirectory);
        let mut unknown = Vec::new();
        for (name, _) in entries {
            let place = path.join(&name);
            match layout::part(&name) {
                LayoutPart::Watched => {}
                LayoutPart::Data => self.place(git, place, FileKind::Whole),
                LayoutPart::Judged(kind) => self.place(git, place, kind),
                LayoutPart::Tree => {
                    self.begin_data(&place);
                    self.data(git, place, DEEPEST_TREE);
                }
                LayoutPart::Objects => self.objects(git, place),
                LayoutPart::Paused(operation) => {
                    self.begin_data(&place);
                    self.paused(git, place, operation);
                }
                LayoutPart::Unknown => unknown.push((name, place)),
            }
        }
        for (name, place) in unknown {
            self.unknown(git, &name, place, depth);
        }
    }

    fn unknown(&mut self, git: &OwnedFd, name: &OsStr, place: PathBuf, depth: Depth) {
        // The directory may be a submodule whose name begins with that of another one.
        let head =
            beneath::open_directory(git, name).and_then(|found| beneath::stat(&found, OsStr::new("HEAD")));
        let is_module = place.components().any(|step| step.as_os_str() == "modules") && head.is_ok();
        if depth.is_strict && !is_module {
            self.budget.begin_unknown(&place);
            self.place(git, place, FileKind::Unknown);
        }
    }

    /// Records the special entries (neither file nor directory) in a directory of git's data and in those below it.
    fn data(&mut self, at: &OwnedFd, path: PathBuf, depth: usize) {
        self.trees += 1;
        if self.trees > MOST_TREES {
            let place = if self.is_first() { self.budget.place().to_owned() } else { path };
            return self.beyond(at, &place, Bound::Trees);
        }
        if depth == 0 {
            return self.beyond(at, &path, Bound::Depth(DEEPEST_TREE));
        }
        let unread = self.state.unread.len();
        let entered = self.enter(at, &path);
        // No agent of the same user can write where this process cannot read.
        self.state.unread.truncate(unread);
        let Some(directory) = entered else { return };
        for name in self.special_to_places(&directory, &path) {
            self.data(&directory, path.join(name), depth - 1);
        }
    }

    /// Records the special entries (neither file nor directory) of a directory. Returns its subdirectories.
    fn special_to_places(&mut self, directory: &OwnedFd, path: &Path) -> Vec<OsString> {
        let (special, directories) = self.special_and_directories(directory, path);
        for name in special {
            self.place(directory, path.join(name), FileKind::Whole);
        }
        directories
    }

    fn objects(&mut self, git: &OwnedFd, path: PathBuf) {
        self.begin_data(&path);
        let Some(objects) = self.enter(git, &path) else { return };
        for name in self.special_to_places(&objects, &path) {
            if name == "info" {
                let path = path.join(name);
                if let Some(info) = self.enter(&objects, &path) {
                    for name in ["alternates", "http-alternates"] {
                        self.place(&info, path.join(name), FileKind::State(TripwireRule::Alternates));
                    }
                }
                self.data(&objects, path, DEEPEST_TREE);
            } else if name == "pack" {
                self.data(&objects, path.join(name), DEEPEST_TREE);
            }
        }
    }

    fn paused(&mut self, git: &OwnedFd, path: PathBuf, operation: Operation) {
        let Some(directory) = self.enter(git, &path) else { return };
        for (name, file_type) in self.entries(&directory, &path, TripwireListing::Whole) {
            match layout::kind_in(operation, &name) {
                Some(kind) => self.place(&directory, path.join(name), kind),
                None if file_type.is_some_and(|kind| kind.is_file()) => {}
                None => self.place(&directory, path.join(name), FileKind::Whole),
            }
        }
    }
}
