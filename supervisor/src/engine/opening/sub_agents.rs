//! Opens sub-agents of a session, each with its own access, sandbox and context window.

use std::sync::Arc;

use agent::core::{Agent, AgentConfig, ModelChoice, NewAgent, Planning, Purpose, RunLimits, TreeLimits};
use agent::prompt::{self, Part, PromptEnvironment};
use gate::StandingRights;
use gate::activity::Activity;
use gate::roles::Role;
use gate::tools::{Kit, PlanTool, Registry};
use ipc::id::{AgentId, ConversationId};
use model::provider::ModelProvider;
use tokio::sync::watch;

use super::first_agent::{Jittered, agent_config};
use super::options::SessionOptions;
use super::root_fault::{RootFault, fault_of};
use super::step_changes::StepChanges;
use crate::engine::driver::{
    AgentParts, AgentRun, Boundary, Lives, Models, NotOpened, OpenedAgent, OpensAgents, SessionWorker,
    SnapshotTaker, ToolServer, Turns, rights_digest,
};
use crate::engine::mcp::{BesideServers, McpHost, Offered, SessionServers};
use crate::engine::place::{AgentPlace, ProjectSandbox};

/// Default maximum number of replies of a sub-agent in one turn. Planners and executors have no default.
const USUAL_STEPS: u32 = 200;

pub(super) struct SubAgents {
    pub(super) setup: Arc<ProjectSandbox>,
    pub(super) options: SessionOptions,
    pub(super) provider: Arc<dyn ModelProvider>,
    pub(super) boundary: Arc<dyn Boundary>,
    pub(super) conversation: ConversationId,
    pub(super) surroundings: PromptEnvironment,
    pub(super) live: watch::Sender<Lives>,
    pub(super) limits: TreeLimits,
    pub(super) plan_files: Arc<dyn ToolServer>,
    /// Observer for snapshots of the project between the steps of a plan.
    pub(super) observer: SnapshotTaker,
    /// MCP servers of the session. Planners and executors get all, other sub-agents those in the call that starts them.
    pub(super) servers: Arc<SessionServers>,
}

impl OpensAgents for SubAgents {
    fn planning(&self, ceiling: StandingRights) -> Option<Planning> {
        let servers = self.servers.offered().into();
        Some(Planning { servers, ..self.options.plan.planning(ceiling) })
    }

    fn open(&mut self, id: &AgentId, agent: &NewAgent) -> Result<OpenedAgent, NotOpened> {
        let role = agent.spawn.role.as_ref().and_then(|name| self.options.roles.get(name));
        let ModelChoice { name: model, max_tokens, options: asked, sees_images, prices, window } =
            self.model(agent, role)?;
        match agent.rights.write.iter().find_map(|root| fault_of(root.as_path())) {
            Some(fault @ (RootFault::Missing(_) | RootFault::Unknown(..))) => {
                return Err(fault.to_string().into());
            }
            Some(fault @ RootFault::BehindLink(..)) => return Err(NotOpened::Denied(fault.to_string())),
            None => {}
        }
        let place = self.setup.sub_agent_place(agent.rights.clone());
        let AgentPlace { temp, confinement, standing } =
            place.map_err(|error| format!("cannot prepare the sandbox of the sub-agent: {error}"))?;
        let rights_digest = rights_digest(&confinement);
        let part = part(&agent.purpose);
        let kit = Kit {
            writes: !agent.rights.write.is_empty(),
            fetches: agent.rights.net.reaches_out(),
            delegates: self.may_delegate(id),
            plan: part.map(tool_of),
        };
        let (planning, execution) = match &agent.purpose {
            Purpose::Task(_) => (None, None),
            Purpose::Planner(planning) => (Some((**planning).clone()), None),
            Purpose::Executor(execution) => (None, Some((**execution).clone())),
        };
        let activity = agent.purpose.activity();
        let named = |name: &str| agent.spawn.servers.iter().any(|server| server.name == name);
        let offered = self.servers.of_agent(|name| part.is_some() || named(name));
        let (tools, host) = self.tools(activity, kit, role, offered);
        let surroundings = PromptEnvironment { activity, ..self.surroundings.clone() };
        let config = AgentConfig {
            model: model.clone(),
            system: prompt::for_sub_agent(kit.delegates, role, part),
            tools: Arc::new(tools),
            options: asked,
            max_tokens,
            sees_images,
            prices,
            window,
            limits: limits(agent.spawn.max_steps, part, role, self.options.plan.limits(part)),
            backoff: Box::new(Jittered(self.options.model.retries)),
            id: id.clone(),
            activity,
            planning,
            execution,
            ..agent_config(&self.options, standing, &self.conversation, &surroundings)
        };
        let mut mode_places = self.setup.mode_places();
        let confined = mode_places.confine(confinement).map_err(|error| error.to_string())?;
        let other: Option<Arc<dyn ToolServer>> = match part {
            Some(Part::Planner) => Some(Arc::clone(&self.plan_files)),
            Some(Part::Executor) => Some(Arc::new(StepChanges::new(self.observer.clone()))),
            None => None,
        };
        let run = AgentRun::new(AgentParts {
            agent: Agent::new(config).starting(),
            provider: Arc::clone(&self.provider),
            worker: SessionWorker::new(Arc::clone(&self.boundary), id.clone(), confined),
            live: self.live.clone(),
            modes: mode_places,
            surroundings,
            turns: Turns::One,
            models: None,
            server: served(other, host),
            place: Some(Box::new(temp)),
        });
        Ok(OpenedAgent { run, model, rights_digest })
    }
}

impl SubAgents {
    /// Returns the model that the call names, or else that of the role or plan, or else the session's.
    fn model(&self, agent: &NewAgent, role: Option<&Role>) -> Result<ModelChoice, String> {
        let SessionOptions { model, window, agent_models, models, .. } = &self.options;
        let of_role = role.and_then(|role| role.model.as_ref());
        let of_role = of_role.or_else(|| self.options.plan.model(part(&agent.purpose)));
        let wanted = agent.spawn.model.as_ref().or(of_role).filter(|wanted| **wanted != model.name);
        let Some(wanted) = wanted else { return Ok(model.choice(*window)) };
        if of_role != Some(wanted) && !agent_models.contains(wanted) {
            let known: Vec<_> =
                std::iter::once(&model.name).chain(agent_models).map(String::as_str).collect();
            return Err(format!(
                "sub-agents cannot use the model {wanted}; the user allows: {}",
                known.join(", ")
            ));
        }
        let models =
            models.as_ref().ok_or_else(|| format!("this session can use only the model {}", model.name))?;
        models.choose(wanted)
    }

    /// Returns an agent's tools, and the host of its MCP servers; `None` if it has no servers.
    fn tools(
        &self,
        activity: Activity,
        kit: Kit,
        role: Option<&Role>,
        offered: Option<Offered>,
    ) -> (Registry, Option<Arc<McpHost>>) {
        let roles = &self.options.roles;
        let tools = Registry::for_kit(activity, kit).with_roles(roles);
        match (role.and_then(|role| role.tools.as_ref()), offered) {
            (Some(names), _) => (tools.only(names), None),
            (None, None) => (tools, None),
            (None, Some(Offered { tools: of_servers, host, servers })) => {
                (tools.extended(of_servers).passing_on(roles, &servers), Some(host))
            }
        }
    }

    fn may_delegate(&self, id: &AgentId) -> bool {
        id.level() < self.limits.depth as usize
    }
}

/// Combines two tool servers into one; `None` if there is neither.
pub(super) fn served(
    other: Option<Arc<dyn ToolServer>>,
    servers: Option<Arc<McpHost>>,
) -> Option<Arc<dyn ToolServer>> {
    match (other, servers) {
        (Some(other), Some(servers)) => Some(Arc::new(BesideServers { servers, other })),
        (None, Some(servers)) => Some(servers),
        (other, None) => other,
    }
}

/// Returns a sub-agent's limits: the lowest of those in the parent's call, in its role and for its part in a plan.
fn limits(max_steps: Option<u32>, part: Option<Part>, role: Option<&Role>, of_part: RunLimits) -> RunLimits {
    let of_role = role.and_then(|role| role.max_steps);
    // A sub-agent needs a limit, since no user watches it.
    let usual = part.is_none().then_some(USUAL_STEPS);
    RunLimits {
        max_steps: max_steps.into_iter().chain(of_role).min().or(usual),
        max_usd: of_part.max_usd.into_iter().chain(role.and_then(|role| role.max_usd)).min(),
        ..of_part
    }
}

const fn part(purpose: &Purpose) -> Option<Part> {
    match purpose {
        Purpose::Task(_) => None,
        Purpose::Planner(_) => Some(Part::Planner),
        Purpose::Executor(_) => Some(Part::Executor),
    }
}

pub(super) const fn tool_of(part: Part) -> PlanTool {
    match part {
        Part::Planner => PlanTool::Write,
        Part::Executor => PlanTool::Report,
    }
}
