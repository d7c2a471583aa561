//! Where agents may read and write.

use std::io;
use std::path::{Path, PathBuf};

use ipc::path::WirePath;
use ipc::rights::Network;

use super::error::SetupError;
use super::place::Caches;
use crate::app::args::ConfinementArgs;
use crate::app::say;
use crate::directories::Directories;
use crate::gate::ApprovalMode;
use crate::policy::{Elsewhere, HiddenPaths, Host, Owner, Policy, make_caches, open_project, write_root};
use crate::tripwire::Watch;

/// Where agents may read and write: what flags, project and machine add up to.
pub(super) struct Scope {
    pub(super) project: PathBuf,
    hidden: HiddenPaths,
    /// Where git has to write outside the project.
    elsewhere: Elsewhere,
    /// The project's caches, where they outlive the session.
    pub(super) caches: Option<PathBuf>,
    /// What the user gave away.
    given: Vec<PathBuf>,
    /// That, what git needs, and the caches.
    pub(super) write: Vec<WirePath>,
}

impl Scope {
    pub(super) fn resolve(
        directory: &Path,
        mode: ApprovalMode,
        caches: Caches,
        args: &ConfinementArgs,
        directories: &Directories,
        owner: Option<&Owner>,
    ) -> Result<Self, SetupError> {
        let host = Host::probe(std::env::var_os("HOME"), owner.and_then(|owner| owner.home.clone()));
        let (project, hidden) = resolve(directory, &host, directories, &args.hide)?;
        let caches = match caches {
            Caches::OutliveIt => lasting_caches(mode, directories, &project, owner),
            Caches::EndWithIt => None,
        };
        let hidden = match &caches {
            Some(own) => hidden.around_caches(own),
            None => hidden,
        };
        let given = args.write.iter().map(|path| writable(&project, path)).collect::<Result<Vec<_>, _>>()?;
        let elsewhere = elsewhere(mode, &project, &hidden);
        let beside = elsewhere.directory.iter().chain(&caches).map(WirePath::from);
        let write = given.iter().cloned().chain(beside).collect();
        let given = given.into_iter().map(PathBuf::from).collect();
        Ok(Self { project, hidden, elsewhere, caches, given, write })
    }

    /// What is watched, if an agent may write in the project at all. Only what the user gives away *inside* a watched root
    /// is given away.
    pub(super) fn watch(&self, mode: ApprovalMode) -> Option<Watch> {
        let Self { project, elsewhere, given, .. } = self;
        let meets = |path: &PathBuf| path.starts_with(project) || project.starts_with(path);
        if mode != ApprovalMode::Auto && !given.iter().any(meets) {
            return None;
        }
        let git_directories: Vec<_> = elsewhere.directory.iter().cloned().collect();
        let inside = |path: &PathBuf, root: &Path| path.starts_with(root) && path != root;
        let granted = given.iter().filter(|path| {
            inside(path, project) || git_directories.iter().any(|directory| inside(path, directory))
        });
        let granted = granted.cloned().collect();
        Some(Watch { project: project.to_owned(), git_directories, granted })
    }

    /// What there is of that which the host runs later, here and where git writes for others.
    pub(super) fn protected(&self, watch: Option<&Watch>) -> io::Result<Vec<WirePath>> {
        let existing = watch.map(Watch::existing).transpose()?.unwrap_or_default();
        Ok(existing.iter().chain(&self.elsewhere.of_others).map(WirePath::from).collect())
    }

    pub(super) fn policy(
        self,
        mode: ApprovalMode,
        args: &ConfinementArgs,
        protected: Vec<WirePath>,
        temp: &Path,
    ) -> Policy {
        Policy {
            project: self.project.into(),
            temp: temp.into(),
            mode,
            net: Network::from(args.net),
            reach: args.reach(),
            write: self.write,
            hidden: self.hidden.0,
            protected,
        }
    }
}

fn resolve(
    directory: &Path,
    host: &Host,
    directories: &Directories,
    hide: &[PathBuf],
) -> Result<(PathBuf, HiddenPaths), SetupError> {
    let canonical = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    // What the user hides may well lie inside the project; what is hidden by default must not.
    let defaults = HiddenPaths::new(host, directories, &canonical, &[]);
    let roots: Vec<PathBuf> = defaults.0.into_iter().map(PathBuf::from).collect();
    let project = open_project(directory, host, &roots)?;
    let hide: Vec<_> = hide.iter().map(|path| project.join(path)).collect();
    let hidden = HiddenPaths::new(host, directories, &project, &hide);
    Ok((project, hidden))
}

/// The project's caches, where they outlive the session: an agent that may not change the project has none to build, and
/// another user does not get into our cache directory, as root must make nothing in that user's own.
fn lasting_caches(
    mode: ApprovalMode,
    directories: &Directories,
    project: &Path,
    owner: Option<&Owner>,
) -> Option<PathBuf> {
    if mode != ApprovalMode::Auto || owner.is_some() {
        return None;
    }
    match make_caches(&directories.cache, project) {
        Ok(place) => Some(place),
        Err(error) => {
            let cache = directories.cache.display();
            say(&format!("note: caches of this session end with it: {cache}: {error}"));
            None
        }
    }
}

/// Where git has to write outside the project, and may: nothing that is hidden, and nothing around what is.
fn elsewhere(mode: ApprovalMode, project: &Path, hidden: &HiddenPaths) -> Elsewhere {
    if mode != ApprovalMode::Auto {
        return Elsewhere::default();
    }
    let mut elsewhere = Elsewhere::of(project);
    let meets_hidden = |directory: &Path| {
        hidden
            .0
            .iter()
            .any(|path| path.as_path().starts_with(directory) || directory.starts_with(path.as_path()))
    };
    if elsewhere.directory.as_deref().is_some_and(meets_hidden) {
        elsewhere = Elsewhere::default();
    }
    if let Some(note) = &elsewhere.note {
        say(&format!("note: {note}"));
    }
    elsewhere
}

fn writable(project: &Path, path: &Path) -> Result<WirePath, SetupError> {
    write_root(project, path).map_err(|why| SetupError::Path { flag: "--write", path: path.to_owned(), why })
}
