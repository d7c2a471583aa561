//! What changes around a worker when its mode or its write roots do.

use std::path::Path;

use ipc::confinement::Confinement;
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::{AgentRun, SessionError, Shared, TripwireWatch};
use crate::policy::Environments;
use crate::tripwire::Watch;

/// What a session has ready for every mode that it may come to.
#[derive(Clone, Debug)]
pub struct ModePlaces {
    /// What is watched as soon as an agent may write in the project.
    pub watch: Option<Watch>,
    /// The environments of agents by their rights.
    pub environments: Environments,
}

impl ModePlaces {
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

impl ModePlaces {
    /// Has what the host runs later taken, if it is not yet, before an agent with these rights may write.
    fn watch(&self, shared: &mut Shared, rights: &Rights) -> Result<(), SessionError> {
        if shared.tripwire.is_none()
            && let Some(watch) = self.watch_under(rights)
        {
            shared.tripwire = Some(TripwireWatch::start(watch.clone()).map_err(SessionError::Tripwire)?);
        }
        if let Some(guard) = &shared.tripwire {
            guard.widen(rights.write.iter().map(|root| root.as_path().to_owned()).collect());
        }
        Ok(())
    }
}

impl AgentRun {
    /// The same for the first worker of an agent that starts while a session is under way.
    pub(super) fn watch_under(&self, shared: &mut Shared) -> Result<(), SessionError> {
        self.modes.watch(shared, &self.worker.confinement().rights)
    }

    /// Replaces the worker. Where the next one may write in the project, what the host runs later is taken before its first
    /// call that may write.
    pub(super) fn replace_worker(&mut self, shared: &mut Shared, rights: Rights) -> Result<(), SessionError> {
        self.modes.watch(shared, &rights)?;
        let present = self.worker.confinement().clone();
        let environment = match &present.temp {
            Some(temp) => self.modes.environments.under(&rights, temp),
            None => present.environment,
        };
        self.worker.replace(Ok(Confinement { rights, environment, ..present }));
        Ok(())
    }
}
