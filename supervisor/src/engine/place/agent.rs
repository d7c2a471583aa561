//! The place of one agent: a private temp directory, an environment and a confinement of its own.

use boundary::monitor::PrivateTemp;
use gate::{ApprovalMode, StandingRights};
use ipc::confinement::Confinement;
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::error::SetupError;
use super::setup::ProjectSandbox;

pub(crate) struct AgentPlace {
    /// The directory that is its own; removed with this value.
    pub temp: PrivateTemp,
    /// The confinement of its worker.
    pub confinement: Confinement,
    pub standing: StandingRights,
}

impl ProjectSandbox {
    /// A place for a sub-agent with these rights, which name no temp directory. It has none of the devices that the
    /// session's first agent has.
    pub(crate) fn sub_agent_place(&self, mut rights: Rights) -> Result<AgentPlace, SetupError> {
        let temp = self.another_temp()?;
        let path = WirePath::from(temp.path());
        rights.write.push(path.clone());
        let rights = rights.normalised();
        let confinement = self.confinement_of_sub_agent(rights.clone(), path.clone());
        let first = self.standing();
        // Nobody is asked for it, so that what is beyond its rights is denied.
        let standing = StandingRights::new(rights, first.project, Some(path), ApprovalMode::Deny);
        let standing =
            StandingRights { caches: first.caches, machine: first.machine, is_fixed: true, ..standing };
        Ok(AgentPlace { temp, confinement, standing })
    }
}
