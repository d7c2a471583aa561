//! Where agents may read and write.

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
use gate::hides_socket;
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

/// Where agents may read and write: what flags, project and machine add up to.
pub(super) struct PlaceScope {
    pub(super) project: PathBuf,
    hidden: HiddenPaths,
    /// Where git has to write outside the project.
    elsewhere: ExternalGitDirs,
    /// The directory of the caches of all levels of rights.
    pub(super) caches: Option<CachesRoot>,
    /// What the user gave away.
    given: Vec<PathBuf>,
    /// What in the project is to stay as it is, relative to it.
    kept: Vec<PathBuf>,
    /// That, to be written in every mode.
    pub(super) write: Vec<WirePath>,
    /// Sockets of other programs that may be reached.
    sockets: Vec<WirePath>,
    /// What git needs, and the caches: to be written in mode `auto`.
    pub(super) auto: Vec<WirePath>,
}

/// The mode of a session, and whether it stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// The mode that it begins with.
    pub first: ApprovalMode,
    /// Whether the user may change it, or approve what only another one has.
    pub may_change: bool,
}

impl Mode {
    /// Returns the scope of an approval mode that cannot change.
    pub(crate) const fn fixed(mode: ApprovalMode) -> Self {
        Self { first: mode, may_change: false }
    }

    /// A mode of a session in which it may change.
    pub(crate) const fn changing(mode: ApprovalMode) -> Self {
        Self { first: mode, may_change: true }
    }

    /// True if the project may come to be written, by the mode or by an answer.
    pub(super) const fn may_write(self) -> bool {
        self.may_change || self.permits().may_come_to_write()
    }

    /// True if commands may run with other rights than those of the start.
    pub(super) const fn has_levels(self) -> bool {
        self.may_change || self.permits().asks()
    }

    /// The widest mode that it may come to.
    pub(super) const fn widest(self) -> ApprovalMode {
        if self.may_change { WIDEST } else { self.first }
    }

    /// True if the widest mode writes the project.
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
        // Each worker is given its own temp back.
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

    /// The directories to watch, if an agent may write in one of them at all.
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

    /// What there is of that which the host runs later, here and where git writes for others.
    pub(super) fn protected(&self, watch: Option<&Watch>) -> io::Result<Vec<WirePath>> {
        let existing = watch.map(Watch::existing).transpose()?.unwrap_or_default();
        // Named whether or not anything is watched yet: an agent may be given the right to write here later.
        let kept = self.kept.iter().map(|path| self.project.join(path));
        let kept: Vec<_> = kept.filter(|path| is_solid(path)).collect();
        Ok(existing.iter().chain(&kept).chain(&self.elsewhere.of_others).map(WirePath::from).collect())
    }

    /// The environments of agents here, of which the user said this much.
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

    /// The rights of what reads here and does nothing else.
    pub(super) fn reading(&self, wanted: &ConfinementOptions) -> Rights {
        let (hidden, limits) = (self.hidden.0.clone(), wanted.limits);
        Rights { read: vec!["/".into()], hidden, limits, ..Rights::default() }.normalised()
    }

    /// The policy, and what keeps the directory of the caches.
    pub(super) fn policy(
        self,
        mode: ApprovalMode,
        wanted: &ConfinementOptions,
        protected: Vec<WirePath>,
        temp: &Path,
    ) -> (Policy, Option<CachesRoot>) {
        let mut hidden = self.hidden.0;
        // Once here, and not whenever rights are made of it.
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

/// A note where a write root holds the places of all levels of rights.
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
    // What the user hides may well lie inside the project; what is hidden by default must not.
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

/// Where git has to write outside the project, and may: nothing that is hidden, and nothing around what is.
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

/// What in the project is to stay as it is, relative to it. What lies elsewhere is nobody's to write anyway.
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

/// The sockets of other programs that may be reached. A flag that cannot be granted ends us; what a file names may be
/// missing on this machine, or its server not be running. No hidden one can be reached.
fn sockets(project: &Path, named: &[NamedPath], hidden: &[WirePath]) -> Result<Vec<WirePath>, SetupError> {
    let open = |found: WirePath| match hides_socket(hidden, &found) {
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

/// The write roots that the settings protect: no flag opens these.
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

/// Whether it is a file or directory itself, and no link on the way leads to it.
fn is_solid(path: &Path) -> bool {
    std::fs::canonicalize(path).is_ok_and(|found| found == path)
}

/// The reason why a place of our own is no write root.
const IN_LEVELS: &str =
    "is in the package caches of this project, from which commands with other access execute files";

/// A flag that cannot be granted ends us; what a file names may be missing on this machine, or in this project. Nothing
/// in the directory of the `levels` can be granted.
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
