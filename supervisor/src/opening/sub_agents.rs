//! Sub-agents of a session: each an agent like the first, with rights, a place and a window of its own.

use std::io::ErrorKind;
use std::sync::Arc;

use ipc::id::{AgentId, ConversationId};
use ipc::path::WirePath;
use tokio::sync::watch;

use super::open::{Jittered, agent_config};
use super::options::SessionOptions;
use crate::core::{Agent, AgentConfig, ModelChoice, NewAgent, RunLimits, TreeLimits};
use crate::driver::{
    AgentParts, AgentRun, Boundary, Lives, Models, OpenedAgent, OpensAgents, SessionWorker, Turns,
    rights_digest,
};
use crate::place::{AgentPlace, Setup};
use crate::prompt::{self, Surroundings};
use crate::provider::ModelProvider;
use crate::roles::Role;
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
        let role = agent.spawn.role.as_ref().and_then(|name| self.options.roles.get(name));
        let ModelChoice { name: model, max_tokens, options: asked, sees_images, prices, window } =
            self.model(agent, role)?;
        if let Some(missing) = agent.rights.write.iter().find(|root| is_missing(root)) {
            return Err(format!(
                "write: {missing} does not exist: make it first, or name the directory it is to lie in"
            ));
        }
        let place = self.setup.sub_agent_place(agent.rights.clone());
        let AgentPlace { temp, confinement, standing } =
            place.map_err(|error| format!("a place for it could not be made: {error}"))?;
        let rights_digest = rights_digest(&confinement);
        let kit = Kit { writes: !agent.rights.write.is_empty(), delegates: self.may_delegate(id) };
        let config = AgentConfig {
            model: model.clone(),
            system: prompt::for_sub_agent(kit.delegates, role),
            tools: Arc::new(self.tools(kit, role)),
            options: asked,
            max_tokens,
            sees_images,
            prices,
            window,
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
    /// The model that was asked for, that of the role, or the session's own.
    fn model(&self, agent: &NewAgent, role: Option<&Role>) -> Result<ModelChoice, String> {
        let SessionOptions { model, window, agent_models, models, .. } = &self.options;
        let of_role = role.and_then(|role| role.model.as_ref());
        let wanted = agent.spawn.model.as_ref().or(of_role).filter(|wanted| **wanted != model.name);
        let Some(wanted) = wanted else { return Ok(model.choice(*window)) };
        if of_role != Some(wanted) && !agent_models.contains(wanted) {
            let known: Vec<_> =
                std::iter::once(&model.name).chain(agent_models).map(String::as_str).collect();
            return Err(format!(
                "the user allows no sub-agent the model {wanted}: one of {}",
                known.join(", ")
            ));
        }
        let models = models.as_ref().ok_or_else(|| format!("this session has one model, {}", model.name))?;
        models.choose(wanted)
    }

    fn tools(&self, kit: Kit, role: Option<&Role>) -> Registry {
        let tools = Registry::for_kit(self.surroundings.activity, kit).with_roles(&self.options.roles);
        match role.and_then(|role| role.tools.as_ref()) {
            Some(names) => tools.only(names),
            None => tools,
        }
    }

    fn may_delegate(&self, id: &AgentId) -> bool {
        id.level() < self.limits.depth as usize
    }
}

/// True where nothing stands: no rule of the kernel could be about it. A link stands there, whatever it leads to.
fn is_missing(root: &WirePath) -> bool {
    root.as_path().symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}
