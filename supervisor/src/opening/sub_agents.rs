//! Sub-agents of a session: each an agent like the first, with rights, a place and a window of its own.

use std::sync::Arc;

use ipc::id::{AgentId, ConversationId};
use tokio::sync::watch;

use super::open::{Jittered, agent_config};
use super::options::SessionOptions;
use crate::core::{Agent, AgentConfig, NewAgent, RunLimits, TreeLimits};
use crate::driver::{
    AgentParts, AgentRun, Boundary, Lives, OpenedAgent, OpensAgents, SessionWorker, Turns, rights_digest,
};
use crate::place::{AgentPlace, Setup};
use crate::prompt::{self, Surroundings};
use crate::provider::ModelProvider;
use crate::tools::{Kit, Registry};

/// Makes the sub-agents of one session.
pub(super) struct SubAgents {
    pub(super) setup: Arc<Setup>,
    pub(super) options: SessionOptions,
    pub(super) provider: Arc<dyn ModelProvider>,
    pub(super) boundary: Arc<dyn Boundary>,
    pub(super) conversation: ConversationId,
    pub(super) surroundings: Surroundings,
    pub(super) live: watch::Sender<Lives>,
    pub(super) limits: TreeLimits,
}

impl OpensAgents for SubAgents {
    fn open(&mut self, id: &AgentId, agent: &NewAgent) -> Result<OpenedAgent, String> {
        let model = self.model(agent)?;
        let place = self.setup.sub_agent_place(agent.rights.clone());
        let AgentPlace { temp, confinement, standing } =
            place.map_err(|error| format!("a place for it could not be made: {error}"))?;
        let rights_digest = rights_digest(&confinement);
        let kit = Kit { writes: !agent.rights.write.is_empty(), delegates: self.may_delegate(id) };
        let config = AgentConfig {
            system: prompt::for_sub_agent(kit.delegates),
            tools: Arc::new(Registry::for_kit(self.surroundings.activity, kit)),
            limits: RunLimits { max_steps: agent.spawn.max_steps, ..RunLimits::default() },
            backoff: Box::new(Jittered(self.options.model.retries)),
            id: id.clone(),
            ..agent_config(&self.options, standing, &self.conversation, &self.surroundings)
        };
        let run = AgentRun::new(AgentParts {
            agent: Agent::new(config).starting(),
            provider: Arc::clone(&self.provider),
            worker: SessionWorker::new(Arc::clone(&self.boundary), id.clone(), confinement),
            live: self.live.clone(),
            modes: self.setup.mode_places(),
            surroundings: self.surroundings.clone(),
            turns: Turns::One,
        });
        Ok(OpenedAgent { run: run.in_place(Box::new(temp)), model, rights_digest })
    }
}

impl SubAgents {
    /// The model of a sub-agent: the session's own.
    fn model(&self, agent: &NewAgent) -> Result<String, String> {
        let own = &self.options.model.name;
        match &agent.spawn.model {
            Some(other) if other != own => {
                Err(format!("the user allows no other model than {own}: leave out `model`"))
            }
            _ => Ok(own.clone()),
        }
    }

    fn may_delegate(&self, id: &AgentId) -> bool {
        id.level() < self.limits.depth as usize
    }
}
