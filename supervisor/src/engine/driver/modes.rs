//! Environment of a worker and the files that its sandbox protects, which depend on its mode and its write roots.

use std::io;
use std::path::Path;

use boundary::policy::Environments;
use boundary::tripwire::Watch;
use ipc::confinement::Confinement;
use ipc::path::WirePath;
use ipc::rights::{Grant, Rights};

use super::{SessionError, Shared, TripwireWatch};

/// Environments of workers for each level of access, and the files that the tripwire watches.
#[derive(Clone, Debug)]
pub struct ModePlaces {
    watch: Option<Watch>,
    environments: Environments,
    /// Paths in repositories that became writable after the session's start. Workers may not write to these paths.
    protected: Vec<WirePath>,
}

/// Confinement whose writable repositories are watched and protected, since only [`ModePlaces::confine`] creates it.
#[derive(Clone, Debug)]
pub struct WatchedConfinement(Confinement);

impl WatchedConfinement {
    pub(super) const fn get(&self) -> &Confinement {
        &self.0
    }

    /// True if the caches are in the temp directory. This is so at the lowest level of access.
    pub(super) fn has_caches_in_temp(&self) -> bool {
        let Confinement { environment, temp, .. } = &self.0;
        environment.caches.as_ref().zip(temp.as_ref()).is_some_and(|(caches, temp)| caches.is_within(temp))
    }
}

impl ModePlaces {
    /// Creates the value from the files that the tripwire watches and one environment for each level of access.
    pub const fn new(watch: Option<Watch>, environments: Environments) -> Self {
        Self { watch, environments, protected: Vec::new() }
    }

    /// Returns the watched paths; `None` if this access cannot write to any of them.
    pub(crate) fn watch_under(&self, rights: &Rights) -> Option<&Watch> {
        let meets = |root: &WirePath, place: &Path| {
            root.as_path().starts_with(place) || place.starts_with(root.as_path())
        };
        self.watch
            .as_ref()
            .filter(|watch| rights.write.iter().any(|root| watch.places().any(|place| meets(root, place))))
    }

    /// Watches the repositories that this access makes writable. Protects existing files in them that programs outside
    /// the sandbox run later (such as git hooks).
    pub fn confine(&mut self, confinement: Confinement) -> io::Result<WatchedConfinement> {
        let mut rights = confinement.rights;
        if let Some(watch) = &mut self.watch {
            let known = watch.repositories.len();
            watch.widen(rights.write.iter().map(WirePath::as_path));
            self.protected.extend(watch.existing_since(known)?.into_iter().map(WirePath::from));
        }
        if !self.protected.is_empty() {
            rights.protected.extend(self.protected.iter().cloned());
            rights = rights.normalised();
        }
        Ok(WatchedConfinement(Confinement { rights, ..confinement }))
    }

    /// Returns this confinement with the environment for the grant's level of access, but without the grant.
    pub(super) fn approved(&self, standing: &Confinement, grant: &Grant) -> Confinement {
        self.environments.at_level(standing.clone(), Some(grant))
    }

    /// Returns the session's watched paths, including those in repositories that this agent's access added.
    pub(super) const fn watched(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Returns the next worker's confinement. Starts or widens the tripwire if the worker may write in a repository.
    pub(super) fn confine_next(
        &mut self,
        shared: &mut Shared,
        present: &Confinement,
        rights: Rights,
    ) -> Result<WatchedConfinement, SessionError> {
        let next = Confinement { rights, ..present.clone() };
        let confined = self.confine(self.environments.at_level(next, None));
        let confined = confined.map_err(SessionError::Tripwire)?;
        self.watch(shared, &confined.get().rights)?;
        Ok(confined)
    }

    pub(super) fn watch(&self, shared: &mut Shared, rights: &Rights) -> Result<(), SessionError> {
        match (&shared.tripwire, self.watch_under(rights)) {
            (None, Some(watch)) => {
                let guard = TripwireWatch::start(watch.clone()).map_err(SessionError::Tripwire)?;
                shared.tripwire = Some(guard);
            }
            (Some(guard), Some(watch)) => guard.widen(watch.clone()),
            (_, None) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use std::sync::Arc;

    use boundary::monitor::GuestLog;
    use ipc::effect::{Effect, Exec};
    use ipc::id::{AgentId, CallId, Generation};
    use ipc::tool::Access;

    use super::*;
    use crate::engine::driver::one_shot::OneShot;

    fn command() -> Effect {
        Effect::Exec(Exec {
            argv: vec!["true".into()],
            cwd: "/".into(),
            environment: Vec::new(),
            access: Access::Write,
            network: None,
            timeout_ms: 1,
        })
    }

    fn repository(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.join(".git/hooks")).unwrap();
        fs::write(path.join(".git/hooks/pre-push"), "own").unwrap();
        path
    }

    /// Tests three cases: the next generation of a worker, the first worker of a sub-agent, and a grant for one call.
    #[test]
    fn every_repository_that_may_be_written_is_watched_and_protected() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        let project = repository(place.join("project"));
        let [one, other] = ["one", "other"].map(|name| repository(place.join(name)));
        let plain = place.join("plain");
        fs::create_dir(&plain).unwrap();
        let sets: [&[&PathBuf]; 5] =
            [&[&one], &[&one, &other], &[&plain], &[&project, &plain, &other], &[&project]];
        for roots in sets {
            let write: Vec<WirePath> = roots.iter().map(|root| WirePath::from(*root)).collect();
            let repositories: Vec<_> = roots.iter().filter(|root| root.join(".git").exists()).collect();
            let rights = Rights { write: write.clone(), ..Rights::default() };
            let confinement = Confinement::new(rights, WirePath::from(&project));

            let environments = Environments::new(confinement.environment.clone());
            let mut modes = ModePlaces::new(Some(Watch::of(project.clone())), environments);
            let confined = modes.confine(confinement).unwrap();
            let watched: Vec<_> = modes
                .watch_under(&confined.get().rights)
                .map(|watch| watch.places().collect())
                .unwrap_or_default();
            for repository in &repositories {
                assert!(watched.contains(&repository.as_path()), "{repository:?} in {watched:?}");
                let hook = WirePath::from(&repository.join(".git/hooks/pre-push"));
                let is_held = confined.get().rights.protected.iter().any(|place| hook.is_within(place));
                assert!(is_held || **repository == &project, "{:?}", confined.get().rights.protected);
            }

            let grant = Grant { write: write.clone(), ..Grant::default() };
            let shot = OneShot {
                agent: AgentId::root(),
                generation: Generation(1),
                standing: Confinement::new(Rights::default(), WirePath::from(&project)),
                watch: Some(Watch::of(project.clone())),
                asked: grant.clone(),
                granted: grant,
                call: Some(CallId(1)),
                effect: Arc::new(command()),
                guests: GuestLog::default(),
            };
            let protected = shot.confinement().unwrap().rights.protected;
            for repository in repositories {
                let hook = WirePath::from(&repository.join(".git/hooks/pre-push"));
                assert!(protected.iter().any(|place| hook.is_within(place)), "{protected:?}");
            }
        }
    }
}
