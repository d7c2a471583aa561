//! What changes around a worker when its mode or its write roots do.

use std::path::Path;

use ipc::approval::ApprovalMode;
use ipc::confinement::{Confinement, Environment};
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::{Driver, DriverError, Guard};
use crate::tripwire::Watch;

/// What a session has ready for every mode that it may come to.
#[derive(Clone, Debug, Default)]
pub struct ModePlaces {
    /// What is watched as soon as an agent may write in the project.
    pub watch: Option<Watch>,
    /// The environment by mode; absent where it is always the same.
    pub environments: Option<Environments>,
}

/// The environment, which leads to other caches where the project may be built without asking.
#[derive(Clone, Debug)]
pub struct Environments {
    /// In mode `auto`.
    pub auto: Environment,
    /// In every other.
    pub otherwise: Environment,
}

impl ModePlaces {
    fn environment(&self, mode: ApprovalMode) -> Option<&Environment> {
        self.environments.as_ref().map(|environments| match mode {
            ApprovalMode::Auto => &environments.auto,
            ApprovalMode::Ask | ApprovalMode::Deny => &environments.otherwise,
        })
    }

    /// What is to be watched under these rights.
    pub(crate) fn watch_under(&self, rights: &Rights) -> Option<&Watch> {
        let meets = |root: &WirePath, place: &Path| {
            root.as_path().starts_with(place) || place.starts_with(root.as_path())
        };
        self.watch
            .as_ref()
            .filter(|watch| rights.write.iter().any(|root| watch.places().any(|place| meets(root, place))))
    }
}

impl Driver {
    /// Replaces the worker. Where the next one may write in the project, what the host runs later is taken before its first
    /// call that may write.
    pub(super) fn replace_worker(&mut self, rights: Rights, mode: ApprovalMode) -> Result<(), DriverError> {
        if self.tripwire.is_none()
            && let Some(watch) = self.modes.watch_under(&rights)
        {
            self.tripwire = Some(Guard::start(watch.clone()).map_err(DriverError::Tripwire)?);
        }
        if let Some(guard) = &mut self.tripwire {
            guard.widen(rights.write.iter().map(|root| root.as_path().to_owned()).collect());
        }
        let present = self.worker.confinement().clone();
        let environment = self.modes.environment(mode).unwrap_or(&present.environment).clone();
        self.worker.replace(Ok(Confinement { rights, environment, ..present }));
        Ok(())
    }
}
