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
    /// What exists to protect in repositories that agents may write since the session began.
    pub protected: Vec<WirePath>,
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
    /// Has what the host runs later taken, if it is not yet, before an agent with these rights may write: also in repositories that
    /// no agent could write so far.
    fn watch(&mut self, shared: &mut Shared, rights: &Rights) -> Result<(), SessionError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let known = watch.repositories.len();
        let has_more = watch.widen(rights.write.iter().map(WirePath::as_path));
        let existing = watch.existing_since(known).map_err(SessionError::Tripwire)?;
        self.protected.extend(existing.into_iter().map(WirePath::from));
        match (&shared.tripwire, self.watch_under(rights)) {
            (None, Some(watch)) => {
                let guard = TripwireWatch::start(watch.clone()).map_err(SessionError::Tripwire)?;
                shared.tripwire = Some(guard);
            }
            (Some(guard), Some(watch)) if has_more => guard.widen(watch.clone()),
            _ => {}
        }
        Ok(())
    }
}

impl AgentRun {
    /// The same for the first worker of an agent that starts while a session is under way.
    pub(super) fn watch_under(&mut self, shared: &mut Shared) -> Result<(), SessionError> {
        self.modes.watch(shared, &self.worker.confinement().rights)
    }

    /// Replaces the worker. Where the next one may write in the project, what the host runs later is taken before its first
    /// call that may write.
    pub(super) fn replace_worker(
        &mut self,
        shared: &mut Shared,
        mut rights: Rights,
    ) -> Result<(), SessionError> {
        self.modes.watch(shared, &rights)?;
        if !self.modes.protected.is_empty() {
            rights.protected.extend(self.modes.protected.iter().cloned());
            rights = rights.normalised();
        }
        let present = self.worker.confinement().clone();
        let environment = match &present.temp {
            Some(temp) => self.modes.environments.under(&rights, temp),
            None => present.environment,
        };
        self.worker.replace(Ok(Confinement { rights, environment, ..present }));
        Ok(())
    }
}
