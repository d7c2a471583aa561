//! Private temp directory and confinement of a sub-agent.

use boundary::monitor::PrivateTemp;
use gate::StandingRights;
use ipc::confinement::Confinement;
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::error::SetupError;
use super::setup::ProjectSandbox;

pub(crate) struct AgentPlace {
    pub temp: PrivateTemp,
    pub confinement: Confinement,
    pub standing: StandingRights,
}

impl ProjectSandbox {
    /// Returns the private temp directory and the confinement of a sub-agent. `rights` includes no temp directory.
    pub(crate) fn sub_agent_place(&self, mut rights: Rights) -> Result<AgentPlace, SetupError> {
        let temp = self.another_temp()?;
        let path = WirePath::from(temp.path());
        rights.write.push(path.clone());
        let rights = rights.normalised();
        let confinement = self.confinement_of_sub_agent(rights.clone(), path.clone());
        let standing = self.standing().of_sub_agent(rights, path);
        Ok(AgentPlace { temp, confinement, standing })
    }
}
