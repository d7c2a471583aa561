use std::path::Path;

use boundary::monitor::Programs;
use boundary::policy::{check_reachable, closed_to};
use gate::modes::{ApprovalMode, Position, permits};
use ipc::confinement::Identity;
use ipc::path::WirePath;

use super::error::SetupError;
use super::scope::PlaceScope;
use crate::process::messages::say;

impl PlaceScope {
    /// Returns the programs beside `program`, or beside the running one. Fails if `identity` cannot execute them there.
    pub(super) fn programs(
        &self,
        mode: ApprovalMode,
        identity: Option<Identity>,
        program: Option<&Path>,
    ) -> Result<Programs, SetupError> {
        let programs =
            program.map_or_else(Programs::beside_current_exe, |program| Ok(Programs::beside(program)))?;
        warn_of_writable_programs(&programs, mode, &self.project, &self.write);
        if let Some(identity) = identity {
            check_reachable(&self.project, identity)?;
            check_programs(&programs, identity)?;
        }
        Ok(programs)
    }
}

/// Fails if the user `identity` cannot execute the worker.
fn check_programs(programs: &Programs, identity: Identity) -> Result<(), SetupError> {
    match closed_to(identity, &programs.worker) {
        Some(closed) => {
            Err(SetupError::Programs { program: programs.worker.clone(), uid: identity.uid, closed })
        }
        None => Ok(()),
    }
}

/// Warns if agents can write to the directory of Bailiwick's programs, because the next session executes these.
fn warn_of_writable_programs(programs: &Programs, mode: ApprovalMode, project: &Path, write: &[WirePath]) {
    let place = programs.sandbox_exec.parent().unwrap_or(Path::new("/"));
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let project = permits(Position::FIRST, mode).may_come_to_write().then_some(project);
    let mut roots = project.into_iter().chain(write.iter().map(WirePath::as_path));
    if let Some(root) = roots.find(|root| place.starts_with(root)) {
        say(&format!(
            "note: Bailiwick's own programs are in {}, inside {}, which agents can write; copy the programs elsewhere, or check them before you run them again",
            place.display(),
            root.display()
        ));
    }
}
