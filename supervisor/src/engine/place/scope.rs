//! Paths that agents may read and write, derived from flags, the project and the machine.

use std::io;
use std::path::{Component, Path, PathBuf};

use boundary::monitor::Temps;
use boundary::policy::levels::LevelPlaces;
use boundary::policy::{
    BuildRoots, Builds, Commands, Defaults, Environments, ExternalGitDirs, Fetched, HiddenPaths, Host, Owner,
    Policy, ProjectError, allowed_socket, configured_socket, configured_write_root, open_project, ssh_agent,
    warning_of_home, write_root,
};
use boundary::tripwire::{JournalOptions, Watch};
use gate::judgement::sockets;
use gate::modes::{ApprovalMode, Permits, Position, WIDEST, permits};
use ipc::confinement::Environment;
use ipc::path::WirePath;
use ipc::rights::Rights;
use nix::unistd::geteuid;

use super::caches::{CachesRoot, CachesWanted};
use super::environment::home;
use super::error::SetupError;
use super::wanted::{ConfinementOptions, NamedPath};
use crate::process::directories::Directories;
use crate::process::messages::{say, tell};
use crate::settings::config::ConfigOrigin;

pub(super) struct PlaceScope {
    pub(super) project: PathBuf,
    hidden: HiddenPaths,
    /// Directories of the project's git repository that are outside the project.
    elsewhere: ExternalGitDirs,
    pub(super) caches: Option<CachesRoot>,
    /// Directories besides the project that the user made writable.
    given: Vec<PathBuf>,
    /// Paths that agents must not change, relative to the project.
    kept: Vec<PathBuf>,
    /// Write roots of every mode: the directories `given`.
    pub(super) write: Vec<WirePath>,
    /// Sockets of other programs that agents may connect to.
    sockets: Vec<WirePath>,
    /// Directories that agents may write in mode `auto`: git directories and caches that stay after the session.
    pub(super) auto: Vec<WirePath>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// Mode at the start of the session.
    pub first: ApprovalMode,
    /// True if the user may change the mode during the session, or approve access that only another mode gives.
    pub may_change: bool,
}

impl Mode {
    pub(crate) const fn fixed(mode: ApprovalMode) -> Self {
        Self { first: mode, may_change: false }
    }

    pub(crate) const fn changing(mode: ApprovalMode) -> Self {
        Self { first: mode, may_change: true }
    }

    /// True if agents may get write access to the project, by the mode or by an approval.
    pub(super) const fn may_write(self) -> bool {
        self.may_change || self.permits().may_come_to_write()
    }

    /// True if commands may get more access than they have at the start.
    pub(super) const fn has_levels(self) -> bool {
        self.may_change || self.permits().asks()
    }

    /// Returns the mode with the most access that the session may change to.
    pub(super) const fn widest(self) -> ApprovalMode {
        if self.may_change { WIDEST } else { self.first }
    }

    /// True if agents may write to the project in the mode with the most access that the session may change to.
    pub(super) const fn comes_to_be_written(self) -> bool {
        permits(Position::FIRST, self.widest()).writes_project()
    }

    const fn permits(self) -> Permits {
        permits(Position::FIRST, self.first)
    }
}

impl PlaceScope {
    pub(super) fn resolve(
        directory: &Path,
        mode: Mode,
        wanted: &ConfinementOptions,
        directories: &Directories,
        temps: &Temps,
        owner: Option<&Owner>,
    ) -> Result<Self, SetupError> {
        let [home, runtime] = ["HOME", "XDG_RUNTIME_DIR"].map(std::env::var_os);
        let host = Host::probe(home, runtime, owner.and_then(|owner| owner.home.clone()));
        let (project, hidden) = resolve(directory, &host, directories, &wanted.hide)?;
        let foreign = owner.is_some();
        let caches = CachesWanted { mode, caches: wanted.caches, project: &project, foreign };
        let caches = CachesRoot::make(caches, directories, temps)?;
        let cache = std::fs::canonicalize(&directories.cache);
        let in_cache = |path: &&Path| cache.as_ref().is_ok_and(|cache| path.starts_with(cache));
        // Each worker can access its own temp directory.
        let hidden = hidden.around_own(caches.as_ref().map(CachesRoot::path).filter(in_cache), temps.path());
        let given = write_roots(&project, &wanted.write, caches.as_ref().map(CachesRoot::path))?;
        let sockets = sockets(&project, &wanted.sockets, &hidden.0)?;
        let elsewhere = elsewhere(mode, &project, &hidden);
        let lasting = caches.as_ref().and_then(CachesRoot::lasting);
        let auto = elsewhere.directory.as_deref().into_iter().chain(lasting).map(WirePath::from).collect();
        let write = given.clone();
        let given = given.into_iter().map(PathBuf::from).collect();
        let kept = kept(&project, &wanted.protect);
        tell(&overruled(&project, &wanted.write, &wanted.protect));
        tell(
            &caches
                .as_ref()
                .and_then(|caches| around_caches(&write, caches.path()))
                .into_iter()
                .collect::<Vec<_>>(),
        );
        Ok(Self { project, hidden, elsewhere, caches, given, kept, write, sockets, auto })
    }

    /// Returns the files that the tripwire watches; `None` if agents may write none of them, even later.
    pub(super) fn watch(&self, mode: Mode, directories: &Directories, allow_shared: bool) -> Option<Watch> {
        let Self { project, elsewhere, given, caches, .. } = self;
        let git_directories: Vec<_> = elsewhere.directory.iter().cloned().collect();
        let mut watch = Watch { git_directories, kept: self.kept.clone(), ..Watch::of(project.to_owned()) };
        watch.add_granted(given);
        watch.aside = Some(directories.aside().join(project.file_name().unwrap_or_default()));
        watch.journals = Some(JournalOptions { directory: directories.baselines(), allow_shared });
        let caches = caches.as_ref().map(|caches| caches.path().to_owned());
        watch.writable =
            given.iter().chain(&caches).chain([project]).chain(&elsewhere.directory).cloned().collect();
        let meets = |path: &PathBuf| path.starts_with(project) || project.starts_with(path);
        let may_write = mode.may_write() || !watch.repositories.is_empty() || given.iter().any(meets);
        may_write.then_some(watch)
    }

    /// Returns paths that agents must not change: existing files that programs outside the sandbox run later, the paths
    /// `kept`, and the git directories of other worktrees.
    pub(super) fn protected(&self, watch: Option<&Watch>) -> io::Result<Vec<WirePath>> {
        let existing = watch.map(Watch::existing).transpose()?.unwrap_or_default();
        // Included even if nothing is watched yet, since an agent may get write access later.
        let kept = self.kept.iter().map(|path| self.project.join(path));
        let kept: Vec<_> = kept.filter(|path| is_solid(path)).collect();
        Ok(existing.iter().chain(&kept).chain(&self.elsewhere.of_others).map(WirePath::from).collect())
    }

    /// Returns the environments of all levels. `said` has variables of flags; `attended` is true at a user's terminal.
    pub(super) fn environments(
        &self,
        said: Environment,
        owner: Option<Owner>,
        attended: bool,
    ) -> Environments {
        let home = home(owner.as_ref());
        let around = BuildRoots { project: &self.project, write: &self.given, home: home.as_deref() };
        let builds = Builds::find(|name| std::env::var_os(name), &said, around);
        let fetched = Fetched::find(home.as_deref(), std::env::var_os("GOPROXY"));
        let as_root = owner.is_none() && geteuid().is_root();
        let is_hidden = |path: &Path| {
            let path = WirePath::from(path);
            self.hidden.0.iter().any(|place| path.is_within(place))
        };
        let commands = Commands { attended, as_root };
        let defaults = Defaults::find(|name| std::env::var_os(name), commands, is_hidden);
        let identity = owner.as_ref().map(|owner| owner.identity);
        let places = self.caches.as_ref().map(|root| LevelPlaces::new(root.path().to_owned(), identity));
        let ssh_agent = ssh_agent(|name| std::env::var_os(name));
        Environments { said, owner, builds, fetched, defaults: Some(defaults), ssh_agent, places }
    }

    /// Returns access to read everything but hidden paths, and to write nothing.
    pub(super) fn reading(&self, wanted: &ConfinementOptions) -> Rights {
        let (hidden, limits) = (self.hidden.0.clone(), wanted.limits);
        Rights { read: vec!["/".into()], hidden, limits, ..Rights::default() }.normalised()
    }

    /// Returns the access policy, and the value that owns the directory of the caches; `None` if there are no caches.
    pub(super) fn policy(
        self,
        mode: ApprovalMode,
        wanted: &ConfinementOptions,
        protected: Vec<WirePath>,
        temp: &Path,
    ) -> (Policy, Option<CachesRoot>) {
        let mut hidden = self.hidden.0;
        // Sorted once, and not for each access that is derived from the policy.
        hidden.sort();
        let policy = Policy {
            project: self.project.into(),
            temp: temp.into(),
            mode,
            net: wanted.net.clone(),
            reach: wanted.reach,
            write: self.write,
            sockets: self.sockets,
            auto: self.auto,
            hidden,
            protected,
            limits: wanted.limits,
        };
        (policy, self.caches)
    }
}

/// Returns a warning if a writable directory contains the package caches of all access levels.
fn around_caches(write: &[WirePath], caches: &Path) -> Option<String> {
    let root = write.iter().find(|root| caches.starts_with(root.as_path()))?;
    Some(format!(
        "{root} contains the package caches: agents could change files there that commands with more access execute"
    ))
}

fn resolve(
    directory: &Path,
    host: &Host,
    directories: &Directories,
    hide: &[NamedPath],
) -> Result<(PathBuf, HiddenPaths), SetupError> {
    let canonical = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    // Paths that the user hides may be in the project; paths that are hidden by default may not.
    let defaults = HiddenPaths::new(host, &directories.own(), &canonical);
    let roots: Vec<PathBuf> = defaults.0.iter().map(|path| path.as_path().to_owned()).collect();
    let project = open_project(directory, host, &roots).map_err(|error| match error {
        ProjectError::Hidden { path, why, place, .. } => {
            let variable = directories.chosen_by(&place, |name| std::env::var_os(name));
            ProjectError::Hidden { path, why, place, variable }
        }
        error => error,
    })?;
    let hide: Vec<_> = hide.iter().map(|named| project.join(&named.path)).collect();
    Ok((project, defaults.with(&hide)))
}

/// Returns the git directories outside the project, except those in a hidden path and those that contain one.
fn elsewhere(mode: Mode, project: &Path, hidden: &HiddenPaths) -> ExternalGitDirs {
    if !mode.comes_to_be_written() {
        return ExternalGitDirs::default();
    }
    let mut elsewhere = ExternalGitDirs::of(project);
    let meets_hidden = |directory: &Path| {
        hidden
            .0
            .iter()
            .any(|path| path.as_path().starts_with(directory) || directory.starts_with(path.as_path()))
    };
    if elsewhere.directory.as_deref().is_some_and(meets_hidden) {
        elsewhere = ExternalGitDirs::default();
    }
    if let Some(note) = &elsewhere.note {
        say(&format!("note: {note}"));
    }
    elsewhere
}

/// Returns the named paths that are in the project, relative to it. Warns of all other paths.
fn kept(project: &Path, named: &[NamedPath]) -> Vec<PathBuf> {
    let mut kept = Vec::new();
    for NamedPath { path, origin } in named {
        let inside: Option<PathBuf> =
            project.join(path).strip_prefix(project).ok().map(|path| path.components().collect());
        let is_plain = |path: &PathBuf| path.components().all(|step| matches!(step, Component::Normal(_)));
        match inside.filter(|path| is_plain(path) && path.file_name().is_some()) {
            Some(path) => kept.push(path),
            None => say(&format!(
                "note: {origin}: {:?} is not protected: name a path inside the project",
                path.display()
            )),
        }
    }
    kept
}

/// Returns the sockets that agents may connect to. A socket that is hidden or cannot be allowed is an error in a flag,
/// and is skipped in a settings file, because it may be missing on this machine.
fn sockets(project: &Path, named: &[NamedPath], hidden: &[WirePath]) -> Result<Vec<WirePath>, SetupError> {
    let open = |found: WirePath| match sockets::hides_socket(hidden, &found) {
        Some(root) => Err(format!("is inside {root}, which is hidden: no socket there can be allowed")),
        None => Ok(found),
    };
    let mut sockets = Vec::new();
    for NamedPath { path, origin } in named {
        match origin {
            ConfigOrigin::Flag(flag) => {
                let found = allowed_socket(project, path).and_then(open);
                sockets.push(found.map_err(|why| SetupError::Path { flag, path: path.clone(), why })?);
            }
            _ => match configured_socket(project, path).and_then(open) {
                Ok(socket) => sockets.push(socket),
                Err(why) => say(&format!("note: {origin}: {:?} {why}", path.display())),
            },
        }
    }
    Ok(sockets)
}

/// Returns notes on directories that a flag or setting would make writable, but that are in a protected path.
fn overruled(project: &Path, write: &[NamedPath], closed: &[NamedPath]) -> Vec<String> {
    let note = |NamedPath { path, origin }: &NamedPath| {
        let root = project.join(path).canonicalize().ok()?;
        let covers = |named: &&NamedPath| {
            let place = project.join(&named.path);
            place.starts_with(project) && is_solid(&place) && root.starts_with(&place)
        };
        let by = closed.iter().find(covers)?;
        let by = format!("{} protects {:?}", by.origin, by.path.display());
        Some(match origin {
            ConfigOrigin::Flag(flag) => format!("{flag} {:?} has no effect: {by}", path.display()),
            _ => format!("{origin}: {:?} is not made writable: {by}", path.display()),
        })
    };
    write.iter().filter_map(note).collect()
}

/// True if the path exists and no part of it is a link.
fn is_solid(path: &Path) -> bool {
    std::fs::canonicalize(path).is_ok_and(|found| found == path)
}

/// Reason why a directory in the package caches cannot be made writable.
const IN_LEVELS: &str =
    "is in the package caches of this project, from which commands with other access execute files";

/// Returns the directories that the user made writable, none in the caches `levels`. A directory that cannot be allowed
/// is an error in a flag, and is skipped in a settings file, because it may be missing on this machine.
fn write_roots(
    project: &Path,
    named: &[NamedPath],
    levels: Option<&Path>,
) -> Result<Vec<WirePath>, SetupError> {
    let is_of_levels = |root: &WirePath| levels.is_some_and(|levels| root.as_path().starts_with(levels));
    let mut roots = Vec::new();
    for NamedPath { path, origin } in named {
        match origin {
            ConfigOrigin::Flag(flag) => {
                let refused = |why| SetupError::Path { flag, path: path.clone(), why };
                let root = write_root(project, path).map_err(|error| refused(error.hinted()))?;
                if is_of_levels(&root) {
                    return Err(refused(IN_LEVELS.to_owned()));
                }
                roots.push(root);
            }
            _ => match configured_write_root(project, path) {
                Ok(root) if is_of_levels(&root) => {
                    say(&format!(
                        "note: {origin}: {:?} is not made writable: it {IN_LEVELS}",
                        path.display()
                    ));
                }
                Ok(root) => roots.push(root),
                Err(why) => {
                    say(&format!("note: {origin}: {:?} is not made writable: it {why}", path.display()));
                }
            },
        }
    }
    tell(&roots.iter().filter_map(warning_of_home).collect::<Vec<_>>());
    Ok(roots)
}
