//! The fourth step of opening a session: its first agent. If its context continues, it has the logged prompt and tools.

use std::sync::Arc;
use std::time::Duration;

use agent::core::{Agent, AgentConfig, Backoff, ModelChoice};
use agent::prompt::{self, Part, Profile, PromptEnvironment};
use gate::StandingRights;
use gate::activity::Activity;
use gate::modes::{Position, Rank, permits};
use gate::tools::{Kit, Registry, task_list};
use ipc::id::{AgentId, ConversationId};
use model::provider::{GiveUp, ProviderError, RetryPolicy, Tried};
use protocol::event::{EventKind, PinChange, PromptFixed, SessionStarted, ToolPinned};

use super::connected::Connected;
use super::cut_off_plan::CutOffPlan;
use super::fixed_prompt;
use super::options::SessionOptions;
use super::past::{Earlier, Past};
use super::prepared::PreparedSession;
use super::resumed::Resumed;
use super::sub_agents::tool_of;
use crate::engine::driver::Turns;
use crate::engine::mcp::{FileServer, McpHost, Offered, SessionServers};
use crate::engine::place::ProjectSandbox;

/// First agent of a session, none of whose events is logged yet.
pub(super) struct FirstAgent {
    pub(super) config: AgentConfig,
    pub(super) surroundings: PromptEnvironment,
    pub(super) servers: Arc<SessionServers>,
    pub(super) host: Option<Arc<McpHost>>,
}

pub(super) struct FirstEvents {
    pub(super) started: SessionStarted,
    /// System prompt and tools; `None` if they are logged already.
    pub(super) prompt: Option<PromptFixed>,
    /// Events about approved tools of MCP servers.
    pub(super) pinned: Vec<EventKind>,
}

impl FirstAgent {
    /// Creates the agent with the session's MCP servers. Adds notices about these servers to `options`.
    pub(super) fn new(
        prepared: &mut PreparedSession,
        connected: &Connected,
        resumed: &Resumed,
    ) -> (Self, FirstEvents) {
        let PreparedSession { options, setup, standing, planning } = prepared;
        let Resumed { past, site, .. } = resumed;
        let started = session_started(options, standing, connected.provider.name());
        let surroundings = surroundings(options);
        let mut config = first_config(options, standing.clone(), &site.conversation, &surroundings);
        let plan = site.plan.as_ref();
        config.planning = planning.take().map(|planning| CutOffPlan::with_finished(plan, planning));
        let (servers, host) = with_servers(&mut config, options, setup);
        let prompt = fixed_prompt::fix(&mut config, past.as_ref().map_or(&[], Past::events), &started);
        let pinned = pinned(servers.pins.clone(), past.as_ref());
        (Self { config, surroundings, servers, host }, FirstEvents { started, prompt, pinned })
    }
}

/// Returns the agent in the state at the end of the earlier runs.
pub(super) fn restored(config: AgentConfig, earlier: &Earlier) -> Agent {
    let agent = Agent::new(config);
    let Earlier { needed, in_new_context, moved_from } = earlier;
    let events = needed.events.as_slice();
    if events.is_empty() { agent } else { agent.restored(events, *in_new_context).moved(moved_from.as_ref()) }
}

/// Returns the session's MCP servers, and adds the tools of all of them to the first agent.
fn with_servers(
    config: &mut AgentConfig,
    options: &mut SessionOptions,
    setup: &ProjectSandbox,
) -> (Arc<SessionServers>, Option<Arc<McpHost>>) {
    let named: &[_] = if options.profile == Profile::Full { &options.mcp } else { &[] };
    let servers = Arc::new(SessionServers::new(setup, named, &options.file_servers));
    options.notices.extend(servers.notices.iter().cloned());
    options.notices.extend(options.file_servers.iter().map(FileServer::notice));
    if let Some(planning) = &mut config.planning {
        planning.servers = servers.offered().into();
    }
    let host = servers.of_agent(|_| true).map(|Offered { tools, host, servers }| {
        config.tools = Arc::new(config.tools.extended(tools).passing_on(&options.roles, &servers));
        host
    });
    (servers, host)
}

/// Returns an event for each server with approved tools, unless an earlier run logged the same digest.
fn pinned(pins: Vec<ToolPinned>, past: Option<&Past>) -> Vec<EventKind> {
    let past = past.map_or(&[][..], Past::events);
    let before = |server: &str| {
        past.iter().rev().find_map(|event| match &event.kind {
            EventKind::ToolPinned(pin) if pin.server == server && pin.change != PinChange::Withheld => {
                Some(pin)
            }
            _ => None,
        })
    };
    let event = |pin: ToolPinned| match before(&pin.server) {
        Some(before) if before.digest == pin.digest => None,
        Some(_) => Some(EventKind::ToolPinned(ToolPinned { change: PinChange::Changed, ..pin })),
        None => Some(EventKind::ToolPinned(pin)),
    };
    pins.into_iter().filter_map(event).collect()
}

/// Returns the configuration of the first agent, with the answer schema and task list that no sub-agent has.
fn first_config(
    options: &SessionOptions,
    standing: StandingRights,
    conversation: &ConversationId,
    surroundings: &PromptEnvironment,
) -> AgentConfig {
    let mut config = agent_config(options, standing, conversation, surroundings);
    config.answer.clone_from(&options.answer);
    if options.activity == Activity::Execute && options.profile == Profile::Full {
        config.tools = Arc::new(config.tools.extended(vec![task_list()]));
    }
    config
}

/// Returns the configuration from which the first agent's and all sub-agents' configurations are derived.
pub(super) fn agent_config(
    options: &SessionOptions,
    standing: StandingRights,
    conversation: &ConversationId,
    surroundings: &PromptEnvironment,
) -> AgentConfig {
    let part = (surroundings.activity == Activity::Plan).then_some(Part::Planner);
    let profile = options.profile;
    let delegates = options.agents.depth > 0 && profile == Profile::Full;
    let fetches = can_fetch(options, &standing);
    let kit = Kit { writes: true, fetches, delegates, plan: part.map(tool_of) };
    let tools = Registry::for_kit(surroundings.activity, kit).with_roles(&options.roles);
    let tools = match profile.tools() {
        Some(names) => tools.only(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
        None => tools,
    };
    let ModelChoice { name, max_tokens, options: asked, sees_images, prices, window } =
        options.model.choice(options.window);
    AgentConfig {
        model: name,
        system: prompt::for_first_agent(profile, kit.delegates, part),
        tools: Arc::new(tools),
        options: asked,
        max_tokens,
        window,
        sees_images,
        prices,
        surroundings: surroundings.clone(),
        limits: options.limits,
        fails_when_denied: options.fails_when_denied,
        answer: None,
        backoff: Box::new(Jittered(options.model.retries)),
        standing,
        conversation: conversation.clone(),
        approvals: options.approvals.clone(),
        id: AgentId::root(),
        activity: surroundings.activity,
        planning: None,
        execution: None,
    }
}

/// True if the first agent can access a host, at once or after an approval or change of access. If false, the tool that
/// fetches pages would only cost tokens.
fn can_fetch(options: &SessionOptions, standing: &StandingRights) -> bool {
    let agent = Position { activity: options.activity, rank: Rank::Top };
    let may_ask = permits(agent, options.mode).asks() && options.approvals.answerer;
    standing.rights().net.reaches_out() || may_ask || options.turns == Turns::Many
}

/// Retry policy with random delays, so that sessions that failed together do not retry together.
pub(super) struct Jittered(pub(super) RetryPolicy);

impl Backoff for Jittered {
    fn delay(&self, tried: Tried, error: &ProviderError) -> Result<Duration, GiveUp> {
        // A byte of a new random id is random enough here.
        let [random, ..] = uuid::Uuid::new_v4().into_bytes();
        self.0.delay(tried, error, f64::from(random) / f64::from(u8::MAX))
    }
}

fn surroundings(options: &SessionOptions) -> PromptEnvironment {
    let name = nix::sys::utsname::uname();
    let word = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let platform = name.map_or_else(
        |_| "Linux".to_owned(),
        |name| format!("{} {} {}", word(name.sysname()), word(name.release()), word(name.machine())),
    );
    let date = jiff::Zoned::now().date().to_string();
    let instructions = options.instructions.clone();
    PromptEnvironment { platform, date, activity: options.activity, instructions }
}

fn session_started(options: &SessionOptions, standing: &StandingRights, provider: &str) -> SessionStarted {
    let address = options.base_url.as_deref().unwrap_or_else(|| options.provider.base_url());
    SessionStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: standing.project().clone(),
        activity: options.activity,
        mode: standing.mode(),
        model: options.model.name.clone(),
        provider: provider.to_owned(),
        base_url: Some(address.trim_end_matches('/').to_owned()),
        rights: standing.summary().into(),
        resumed: options.resume.is_some(),
    }
}
