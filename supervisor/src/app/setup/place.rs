//! A session's place: everything made ready, in the order in which it has to be.

use std::os::unix::fs::chown;
use std::path::Path;

use ipc::confinement::{Confinement, Environment, Identity, TierChoice};
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::environment::{environment, home};
use super::error::SetupError;
use super::scope::Scope;
use super::wanted::Wanted;
use crate::app::say;
use crate::directories::Directories;
use crate::gate::{ApprovalMode, Standing};
use crate::monitor::{PrivateTemp, Programs, Spawner, remove_stale};
use crate::policy::{Followed, Policy, foreign_owner, lead_to_caches};
use crate::tripwire::Watch;

/// A session's place: everything about its confinement that flags and machine decide.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Our own directories.
    pub directories: Directories,
    /// The policy.
    pub policy: Policy,
    /// What is watched, where an agent may write in the project.
    pub watch: Option<Watch>,
    /// What passes of the environment.
    pub environment: Environment,
    /// Whether to start although a layer is missing.
    pub allow_degraded: bool,
    /// Which tier is wanted.
    pub tier: TierChoice,
    /// Whom workers run as, where that is not whoever we are.
    pub identity: Option<Identity>,
    /// The programs of the system.
    pub programs: Programs,
    /// The spawn thread.
    pub spawner: Spawner,
    /// The private temp directory; removed with this value.
    pub temp: PrivateTemp,
}

impl Setup {
    /// Resolves everything; makes our directories and the private temp.
    pub(crate) fn new(
        directories: Directories,
        directory: &Path,
        mode: ApprovalMode,
        wanted: &Wanted,
    ) -> Result<Self, SetupError> {
        directories.make()?;
        for leftover in remove_stale(&directories.locks()) {
            say(&format!("note: {leftover}"));
        }
        let owner = foreign_owner(directory);
        let identity = owner.as_ref().map(|owner| owner.identity);
        let scope = Scope::resolve(directory, mode, wanted, &directories, owner.as_ref())?;
        let programs = scope.programs(mode, identity)?;
        let watch = scope.watch(mode);
        let protected = scope.protected(watch.as_ref())?;
        let temp = private_temp(&directories, identity)?;
        let place = scope.caches.clone().unwrap_or_else(|| temp.path().join("caches"));
        let mut environment = environment(&wanted.env, owner.as_ref(), temp.path())?;
        lead_to_caches(&mut environment, &place, home(owner.as_ref()).as_deref());
        environment.caches = scope.caches.as_ref().map(WirePath::from);
        let policy = scope.policy(mode, wanted, protected, temp.path());
        let followed = Followed::of(&policy.standing())?;
        Ok(Self {
            directories,
            watch,
            policy,
            environment,
            identity,
            allow_degraded: wanted.allow_degraded,
            tier: wanted.tier,
            spawner: Spawner::start(programs.sandbox_exec.clone(), followed)?,
            programs,
            temp,
        })
    }

    /// Another private temp directory, for workers of the same user.
    pub(crate) fn another_temp(&self) -> Result<PrivateTemp, SetupError> {
        private_temp(&self.directories, self.identity)
    }

    /// The standing rights of the root agent.
    pub(crate) fn standing(&self) -> Standing {
        let Policy { project, temp, mode, .. } = &self.policy;
        let standing = Standing::new(self.policy.standing(), project.clone(), Some(temp.clone()), *mode);
        Standing { caches: self.environment.caches.clone(), ..standing }
    }

    /// A confinement under these rights, in this place.
    pub(crate) fn confinement(&self, rights: Rights) -> Confinement {
        Confinement {
            temp: Some(self.policy.temp.clone()),
            environment: self.environment.clone(),
            allow_degraded: self.allow_degraded,
            tier: self.tier,
            identity: self.identity,
            ..Confinement::new(rights, self.policy.project.clone())
        }
    }
}

fn private_temp(directories: &Directories, identity: Option<Identity>) -> Result<PrivateTemp, SetupError> {
    let temp = PrivateTemp::create(&directories.locks())?;
    if let Some(Identity { uid, gid }) = identity {
        chown(temp.path(), Some(uid), Some(gid))?;
    }
    Ok(temp)
}
