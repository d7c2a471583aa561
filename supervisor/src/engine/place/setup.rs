use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::Arc;

use boundary::monitor::{PrivateTemp, Programs, Spawner, Temps, remove_stale};
use boundary::policy::levels::LevelPlaces;
use boundary::policy::{Environments, HiddenInodes, Policy, foreign_owner, users_home};
use boundary::tripwire::{PersonsGit, Watch};
use gate::StandingRights;
use ipc::confinement::{Bounds, Confinement, Identity, TierChoice};
use ipc::devices::Devices;
use ipc::message::Leftovers;
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::caches::CachesRoot;
use super::environment::of_flags;
use super::error::SetupError;
use super::git::ReadingGit;
use super::leftovers::settle;
use super::machine::User;
use super::scope::{Mode, PlaceScope};
use super::unwritable::warn_of_unwritable;
use super::wanted::{Caches, ConfinementOptions};
use crate::engine::driver::{Boundary, ModePlaces, Processes};
use crate::process::directories::Directories;
use crate::process::messages::say;

/// Sandbox of a session, derived from flags and the machine.
#[derive(Debug)]
pub struct ProjectSandbox {
    pub(crate) directories: Directories,
    pub policy: Policy,
    /// Files that the tripwire watches; `None` if agents may write none of them, even later.
    pub watch: Option<Watch>,
    /// True if the user may change the mode.
    may_change: bool,
    environments: Environments,
    /// True if the session may start even if a layer of the sandbox is missing.
    pub(crate) allow_degraded: bool,
    pub(crate) tier: TierChoice,
    bounds: Bounds,
    /// User that workers run as; `None` for the supervisor's user.
    pub(crate) identity: Option<Identity>,
    pub programs: Programs,
    pub(crate) spawner: Spawner,
    /// Devices that the first agent can access. Other agents get none.
    pub(crate) devices: Devices,
    pub(crate) temps: Temps,
    pub temp: PrivateTemp,
    /// Directory of the package caches; `None` without caches. Dropping this removes it if it is for this session
    /// alone.
    caches: Option<CachesRoot>,
}

impl ProjectSandbox {
    /// Creates Bailiwick's own directories and a private temp directory, and derives the sandbox from the options.
    pub(crate) fn new(
        directories: Directories,
        directory: &Path,
        mode: Mode,
        wanted: &ConfinementOptions,
    ) -> Result<Self, SetupError> {
        directories.make()?;
        for leftover in remove_stale(&directories.locks()) {
            say(&format!("note: {leftover}"));
        }
        let owner = foreign_owner(directory);
        let identity = owner.as_ref().map(|owner| owner.identity);
        let temps = Temps::open(&directories.cache, identity.is_some())?;
        if let Some(note) = temps.note() {
            say(&format!("note: {note}"));
        }
        let scope = PlaceScope::resolve(directory, mode, wanted, &directories, &temps, owner.as_ref())?;
        let programs = scope.programs(mode.widest(), identity, wanted.program.as_deref())?;
        if mode.may_write() {
            warn_of_unwritable(&scope.project, identity);
        }
        let mut watch = scope.watch(mode, &directories, wanted.allow_degraded);
        // First, so that restored files are protected like existing ones.
        watch.as_ref().map_or(Ok(()), |watch| settle(watch, wanted.leftovers))?;
        if let Some(watch) = &mut watch {
            let git = reading_git(scope.reading(wanted), wanted, &programs, identity)?;
            watch.git = PersonsGit::ask(Arc::new(git), &watch.project);
        }
        let protected = scope.protected(watch.as_ref())?;
        let temp = private_temp(&temps, &directories, identity)?;
        if let Some(watch) = &mut watch {
            watch.writable.push(temp.path().to_owned());
        }
        let environments = scope.environments(of_flags(&wanted.env)?, owner, wanted.attended);
        let (policy, caches) = scope.policy(mode.first, wanted, protected, temp.path());
        let followed = HiddenInodes::of(&policy.standing_in(mode.widest()), Some(&policy.temp))?;
        if wanted.caches == Caches::OutliveIt {
            let standing = Confinement::new(policy.standing(), policy.project.clone());
            let standing = Confinement { temp: Some(policy.temp.clone()), ..standing };
            let environment = environments.at_level(standing, None).environment;
            environments.builds.notes(&environment).iter().for_each(|note| say(&format!("note: {note}")));
        }
        Ok(Self {
            directories,
            watch,
            policy,
            may_change: mode.may_change,
            environments,
            identity,
            allow_degraded: wanted.allow_degraded,
            tier: wanted.tier,
            bounds: wanted.bounds,
            spawner: Spawner::of_this_process(programs.sandbox_exec.clone(), followed)?,
            programs,
            devices: if wanted.tier == TierChoice::Full { Devices::default() } else { Devices::take() },
            temps,
            temp,
            caches,
        })
    }

    /// Creates another private temp directory, for workers of the same user.
    pub(crate) fn another_temp(&self) -> Result<PrivateTemp, SetupError> {
        private_temp(&self.temps, &self.directories, self.identity)
    }

    /// Returns the standing access of the first agent.
    pub fn standing(&self) -> StandingRights {
        let Policy { project, temp, mode, .. } = &self.policy;
        let machine = User::of(self.identity).machine(&self.policy.hidden);
        let levels = self.caches.as_ref().map(CachesRoot::path).map(WirePath::from);
        StandingRights::new(self.policy.standing(), project.clone(), Some(temp.clone()), *mode)
            .with_caches(self.caches.as_ref().and_then(CachesRoot::lasting).map(WirePath::from))
            .with_reach(self.policy.reach)
            .with_modes(self.may_change.then(|| self.policy.modes()))
            .on_machine(machine, users_home().map(Into::into), levels)
    }

    /// Returns the watched files if the first worker may write one of them; `None` if it may write none.
    pub(crate) fn watched_at_once(&self) -> Option<Watch> {
        self.mode_places().watch_under(&self.policy.standing()).cloned()
    }

    /// Returns the value of a variable that a flag sets; `None` if no flag does.
    pub(crate) fn variable(&self, name: &str) -> Option<&[u8]> {
        let set = &self.environments.said.set;
        set.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_slice())
    }

    pub(crate) fn mode_places(&self) -> ModePlaces {
        let (watch, environments) = (self.watch.clone(), self.environments.clone());
        ModePlaces::new(watch, environments)
    }

    /// Starts sandbox-exec early to save time: it waits for the first worker. Called only if a worker will start.
    pub(crate) fn announce_worker(&self) {
        self.spawner.prepare(vec![self.programs.worker.clone().into_os_string()]);
    }

    /// Returns the confinement of the first agent.
    pub fn confinement(&self, rights: Rights) -> Confinement {
        let temp = self.policy.temp.clone();
        let confinement = self.environments.at_level(self.confinement_beside(rights, temp), None);
        Confinement { devices: self.devices.places(), ..confinement }
    }

    /// Returns the confinement of a sub-agent whose private temp directory is `temp`.
    pub(super) fn confinement_of_sub_agent(&self, rights: Rights, temp: WirePath) -> Confinement {
        self.environments.at_level(self.confinement_beside(rights, temp), None)
    }

    pub fn boundary(&self, leftovers: Option<Leftovers>) -> Arc<dyn Boundary> {
        Processes::shared(self.spawner.clone(), self.programs.clone(), leftovers, self.places())
    }

    /// Returns the cache directories of the access levels; `None` if there are none.
    pub(crate) fn places(&self) -> Option<LevelPlaces> {
        self.environments.places.clone()
    }

    /// Returns the confinement of a worker that serves no agent. It has the temp directory `temp` and no devices.
    pub(crate) fn confinement_beside(&self, rights: Rights, temp: WirePath) -> Confinement {
        Confinement {
            environment: self.environments.beside(&temp, &rights.net),
            temp: Some(temp),
            allow_degraded: self.allow_degraded,
            tier: self.tier,
            identity: self.identity,
            bounds: self.bounds,
            ..Confinement::new(rights, self.policy.project.clone())
        }
    }
}

/// Returns the user's git in a read-only sandbox.
fn reading_git(
    rights: Rights,
    wanted: &ConfinementOptions,
    programs: &Programs,
    identity: Option<Identity>,
) -> Result<ReadingGit, SetupError> {
    let followed = HiddenInodes::of(&rights, None)?;
    let spawner = Spawner::of_this_process(programs.sandbox_exec.clone(), followed)?;
    let (tier, allow_degraded) = (wanted.tier, wanted.allow_degraded);
    let confinement = Confinement { tier, allow_degraded, identity, ..Confinement::new(rights, "/".into()) };
    Ok(ReadingGit::new(spawner, confinement))
}

fn private_temp(
    temps: &Temps,
    directories: &Directories,
    identity: Option<Identity>,
) -> Result<PrivateTemp, SetupError> {
    let temp = PrivateTemp::create(temps, &directories.locks())?;
    if let Some(Identity { uid, gid }) = identity {
        chown(temp.path(), Some(uid), Some(gid))?;
    }
    Ok(temp)
}
