//! Opens a session, in the same way for every front end.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::core::{Agent, AgentConfig, Approver, Backoff, ModelChoice, Planning, RunEnd};
use agent::prompt::{self, Part, Profile};
use boundary::monitor::PrivateTemp;
use gate::StandingRights;
use gate::activity::Activity;
use gate::modes::{Position, Rank, permits};
use gate::tools::{Kit, Registry, task_list};
use ipc::id::{AgentId, ConversationId};
use ipc::path::WirePath;
use ipc::rights::Rights;
use model::provider::{
    self, Connection, GiveUp, ModelProvider, ProviderError, RetryPolicy, Tried, socket_of,
};
use model::recording::{Places, Recorder};
use model::secrets::{ApiKey, KeyError, TakenKeys, find_key};
use protocol::event::{EventKind, PinChange, SessionStarted, ToolPinned};
use protocol::frontend::{UiEvent, UserAction};
use protocol::server_prompt::ServerPrompt;
use tokio::sync::{mpsc, watch};

use super::cut_off_plan::CutOffPlan;
use super::error::OpenError;
use super::fixed_prompt;
use super::handle::Handle;
use super::kept::KeptApprovals;
use super::options::SessionOptions;
use super::past::{Earlier, Past, SessionBegin, first_events};
use super::plan::planner_standing;
use super::plan_files::PlanFiles;
use super::relay_socket;
use super::sub_agents::{SubAgents, served, tool_of};
use crate::engine::driver::{
    self, AgentParts, AgentRun, Boundary, ChangeTracker, Lives, ModePlaces, Rewinder, SessionError,
    SessionWorker, Shared, SnapshotTaker, TripwireWatch, Turns,
};
use crate::engine::live::LiveSocket;
use crate::engine::mcp::{FileServer, McpHost, Offered, SessionServers, tell_prompts};
use crate::engine::place::{Mode, ProjectSandbox};
use crate::journal::changes::{PatchFile, PatchFileError};
use crate::process::directories::Directories;
use crate::process::messages::say;

/// What a session has besides its options.
#[derive(Clone)]
pub(crate) struct SessionDirs {
    /// Our own directories.
    pub directories: Directories,
    /// The keys that were in the environment.
    pub keys: TakenKeys,
}

/// A session that is open and does nothing yet.
pub(crate) struct OpenedSession {
    inner: driver::Session,
    standing: StandingRights,
    activity: Activity,
    places: Places,
    began: Instant,
    prompts: Vec<ServerPrompt>,
    // Removed when the session is over, and not before.
    _observer_temp: PrivateTemp,
    _setup: Arc<ProjectSandbox>,
}

/// A front end's end of a session, for what there is to show.
pub(crate) type SessionEvents = mpsc::UnboundedReceiver<UiEvent>;

/// Opens a session: everything that can be wrong with its options is found here.
pub(crate) fn open(
    mut options: SessionOptions,
    place: SessionDirs,
    began: Instant,
) -> Result<(OpenedSession, Handle, SessionEvents), OpenError> {
    let setup = setup(&mut options, place.directories.clone())?;
    open_in(setup, options, place, began)
}

/// Opens a session in its place.
pub(crate) fn open_in(
    setup: Arc<ProjectSandbox>,
    mut options: SessionOptions,
    place: SessionDirs,
    began: Instant,
) -> Result<(OpenedSession, Handle, SessionEvents), OpenError> {
    setup.announce_worker();
    // Opened before the first worker exists, so that no agent can choose what it is.
    let recorder = options.record.as_ref().map(|record| record.open(&options)).transpose()?;
    let connection = connection(&options, &place.keys, recorder.clone(), &setup)?;
    let secret = connection.api_key.clone();
    let provider = provider(&options, &place.keys, connection)?;
    let patch = patch(&options, &setup)?;
    let (standing, planning) = first_rights(&options, setup.standing());
    let mut past = Past::of(options.resume.as_ref(), &standing.project, &setup.directories.state)?;
    let conversation = past.as_ref().map_or_else(new_conversation, Past::session);
    let leftovers = past.as_ref().and_then(Past::leftovers);
    let observer_temp = setup.another_temp()?;
    let boundary = setup.boundary(leftovers);
    let observer = observer(&setup, &boundary, &observer_temp);
    let plan = cut_off_plan(&options, past.as_ref());
    let cut_off = past.as_mut().map(|past| past.close(&setup, &observer, plan.as_ref())).transpose()?;
    let started = session_started(&options, &standing, provider.name());
    let surroundings = surroundings(&options);
    let mut config = first_config(&options, standing.clone(), &conversation, &surroundings);
    config.planning = planning.map(|planning| CutOffPlan::with_finished(plan.as_ref(), planning));
    let (servers, host) = with_servers(&mut config, &mut options, &setup);
    let prompt = fixed_prompt::fix(&mut config, past.as_ref().map_or(&[], Past::events), &started);
    let ((ui, events), (actions, inbox)) = (mpsc::unbounded_channel(), mpsc::channel(16));
    // The log of a session that goes on is locked by now: it is not deleted.
    let more = cut_off.into_iter().flatten().chain(pinned(servers.pins.clone(), past.as_ref()));
    let first = first_events(started, prompt, &options, &setup.directories, more);
    let begins = SessionBegin { state: &setup.directories.state, conversation: &conversation, secret, past };
    let (log, earlier) = begins.log(&first, options.pauses, &ui)?;
    let changes = changes(&options, &observer, patch);
    let tripwire = setup.watched_at_once().map(TripwireWatch::start).transpose()?;
    let (worker, modes) = first_worker(&setup, &boundary, standing.rights.clone())?;
    let (plan_files, plan_records) = PlanFiles::shared(&setup, &conversation, &options, plan.as_ref());
    let (live, live_socket) = live(&setup.directories, &conversation);
    let sub_agents = SubAgents {
        setup: Arc::clone(&setup),
        options: options.clone(),
        provider: Arc::clone(&provider),
        boundary,
        conversation: conversation.clone(),
        surroundings: surroundings.clone(),
        live: live.clone(),
        limits: options.agents,
        plan_files: Arc::clone(&plan_files),
        observer,
        servers,
    };
    let prompts = tell_prompts(host.as_deref(), &ui, &conversation);
    let of_plans = (options.activity == Activity::Plan).then_some(plan_files as _);
    let run = AgentRun::new(AgentParts {
        agent: agent(config, &earlier).starting(),
        provider,
        worker,
        live,
        modes,
        surroundings: surroundings.clone(),
        turns: options.turns,
        models: options.models.clone().map(|models| models as _),
        server: served(of_plans, host),
        place: None,
    });
    let standing = run.agent().standing().clone();
    let places = described(recorder, &options, places(conversation.clone(), &standing, &surroundings));
    let rewinder = rewinder(&options, &setup, &sub_agents.observer, &conversation);
    let shared = Shared::new(conversation.clone(), log, ui, changes, tripwire)
        .holding(live_socket)
        .telling(plan_records)
        .keeping(KeptApprovals::of(&setup))
        .rewound_by(rewinder, options.turns == Turns::Many)
        .watched_by(sub_agents.observer.clone());
    goes_on(plan, &actions, &conversation);
    let deadline = options.timeout.map(|timeout| (began + timeout).into());
    let session = OpenedSession {
        inner: driver::Session::new(shared.within(options.limits), run, inbox, deadline)
            .with_sub_agents(Box::new(sub_agents), options.agents)
            .after(&earlier.agents()),
        standing,
        activity: options.activity,
        places,
        began,
        prompts,
        _observer_temp: observer_temp,
        _setup: setup,
    };
    Ok((session, Handle::new(conversation, actions), events))
}

impl OpenedSession {
    /// What its agent may do when it begins.
    pub(crate) const fn standing(&self) -> &StandingRights {
        &self.standing
    }

    /// What its first agent is there for.
    pub(crate) const fn activity(&self) -> Activity {
        self.activity
    }

    /// What another run of the same task has otherwise.
    pub(crate) const fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn prompts(&self) -> &[ServerPrompt] {
        &self.prompts
    }

    /// Where it is logged.
    pub(crate) fn log_path(&self) -> &Path {
        self.inner.shared().log.path()
    }

    pub(crate) async fn run(self) -> Result<RunEnd, SessionError> {
        Box::pin(self.inner.run(self.began.into())).await
    }
}

/// Describes the run in its recording, if it is recorded.
fn described(recorder: Option<Recorder>, options: &SessionOptions, places: Places) -> Places {
    if let (Some(recorder), Some(record)) = (recorder, options.record.clone()) {
        record.describe(&recorder, options, places.clone());
    }
    places
}

/// The file of the patch, which stands open before anything is done.
/// The worker of the first agent, and what it may become.
fn first_worker(
    setup: &ProjectSandbox,
    boundary: &Arc<dyn Boundary>,
    rights: Rights,
) -> io::Result<(SessionWorker, ModePlaces)> {
    let mut modes = setup.mode_places();
    let confinement = modes.confine(setup.confinement(rights))?;
    Ok((SessionWorker::new(Arc::clone(boundary), AgentId::root(), confinement), modes))
}

fn patch(options: &SessionOptions, setup: &ProjectSandbox) -> Result<Option<PatchFile>, PatchFileError> {
    let file = options.patch.as_deref().map(PatchFile::open).transpose()?;
    Ok(file.map(|file| file.of_project(setup.standing().project.as_path())))
}

/// The place of the session, where no agent reaches the socket of a relay.
pub(crate) fn setup(
    options: &mut SessionOptions,
    directories: Directories,
) -> Result<Arc<ProjectSandbox>, OpenError> {
    options.model.check(&options.limits)?;
    let setup = ProjectSandbox::new(directories, &options.directory, mode(options), &options.wanted)?;
    options.approvals.kept_in = Some(KeptApprovals::of(&setup).file());
    if let Some(socket) = options.base_url.as_deref().and_then(socket_of) {
        let socket = relay_socket::check_now(&setup, socket)?;
        options.base_url = Some(format!("unix:{}", socket.display()));
    }
    Ok(Arc::new(setup))
}

/// Who asks may be given more by an answer, and who has many turns may change the mode.
const fn mode(options: &SessionOptions) -> Mode {
    let agent = Position { activity: options.activity, rank: Rank::Top };
    let approves_plan = match options.activity {
        Activity::Plan => permits(agent, options.mode).keeps_approvals(),
        Activity::Execute => false,
    };
    match options.turns {
        Turns::Many => Mode::changing(options.mode),
        Turns::One if approves_plan || permits(Position::FIRST, options.mode).asks() => {
            Mode::changing(options.mode)
        }
        Turns::One => Mode::fixed(options.mode),
    }
}

/// The lives of its agents, and the socket where the session says who it is; a session without one is one all the same.
fn live(
    directories: &Directories,
    conversation: &ConversationId,
) -> (watch::Sender<Lives>, Option<LiveSocket>) {
    let (live, seen) = watch::channel(Lives::new());
    let opened = LiveSocket::open(directories, conversation, seen);
    let socket = opened
        .map_err(|error| {
            say(&format!("note: `bailiwick audit --probe` cannot examine this session: {error}"));
        })
        .ok();
    (live, socket)
}

/// The plan whose execution goes on: where the first agent makes plans, and somebody decides on them.
fn cut_off_plan(options: &SessionOptions, past: Option<&Past>) -> Option<CutOffPlan> {
    let decides = options.turns == Turns::Many || matches!(options.plan.approver, Approver::Flags { .. });
    past.filter(|_| options.activity == Activity::Plan && decides)
        .and_then(|past| CutOffPlan::of(past.events()))
}

/// Has a plan executed further. Nobody else has the channel yet: there is room in it.
fn goes_on(plan: Option<CutOffPlan>, actions: &mpsc::Sender<UserAction>, conversation: &ConversationId) {
    if let Some(plan) = plan {
        let _ = actions.try_send(plan.goes_on(conversation));
    }
}

/// Returns the servers of MCP of a session, and adds all of them to its first agent.
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

/// Follows the changes of a session that lists them or writes a patch.
fn changes(
    options: &SessionOptions,
    observer: &SnapshotTaker,
    patch: Option<PatchFile>,
) -> Option<ChangeTracker> {
    (patch.is_some() || options.lists_changes).then(|| ChangeTracker::start(observer.clone(), patch))
}

/// The events of the tools that the session goes by, unless an earlier run of it went by the same.
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

fn new_conversation() -> ConversationId {
    ConversationId(uuid::Uuid::now_v7().to_string())
}

/// The rights of the first agent, within those that the session may have.
fn first_rights(options: &SessionOptions, ceiling: StandingRights) -> (StandingRights, Option<Planning>) {
    match options.activity {
        Activity::Plan => (planner_standing(&ceiling), Some(options.plan.planning(ceiling))),
        Activity::Execute => (ceiling, None),
    }
}

fn agent(config: AgentConfig, earlier: &Earlier) -> Agent {
    let agent = Agent::new(config);
    let Earlier { needed, in_new_context, moved_from } = earlier;
    let events = needed.events.as_slice();
    if events.is_empty() { agent } else { agent.restored(events, *in_new_context).moved(moved_from.as_ref()) }
}

/// The first agent of a session, with the duties that no other one has: an answer that fits a schema, and a list of
/// its tasks.
fn first_config(
    options: &SessionOptions,
    standing: StandingRights,
    conversation: &ConversationId,
    surroundings: &prompt::PromptEnvironment,
) -> AgentConfig {
    let mut config = agent_config(options, standing, conversation, surroundings);
    config.answer.clone_from(&options.answer);
    if options.activity == Activity::Execute && options.profile == Profile::Full {
        config.tools = Arc::new(config.tools.extended(vec![task_list()]));
    }
    config
}

/// The first agent of a session; every other one differs from it in what its place and its task are.
pub(super) fn agent_config(
    options: &SessionOptions,
    standing: StandingRights,
    conversation: &ConversationId,
    surroundings: &prompt::PromptEnvironment,
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

/// True if the first agent can ever reach a host: it may now, somebody may answer its questions, or the person may
/// change its rights. A tool that never works would only cost tokens.
fn can_fetch(options: &SessionOptions, standing: &StandingRights) -> bool {
    let agent = Position { activity: options.activity, rank: Rank::Top };
    let may_ask = permits(agent, options.mode).asks() && options.approvals.answerer;
    standing.rights.net.reaches_out() || may_ask || options.turns == Turns::Many
}

/// The provider's policy, with jitter: a fleet that failed together does not come back together.
pub(super) struct Jittered(pub(super) RetryPolicy);

impl Backoff for Jittered {
    fn delay(&self, tried: Tried, error: &ProviderError) -> Result<Duration, GiveUp> {
        // A byte of a fresh random identifier is as good as any generator here.
        let [random, ..] = uuid::Uuid::new_v4().into_bytes();
        self.0.delay(tried, error, f64::from(random) / f64::from(u8::MAX))
    }
}

fn surroundings(options: &SessionOptions) -> prompt::PromptEnvironment {
    let name = nix::sys::utsname::uname();
    let word = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let platform = name.map_or_else(
        |_| "Linux".to_owned(),
        |name| format!("{} {} {}", word(name.sysname()), word(name.release()), word(name.machine())),
    );
    let date = jiff::Zoned::now().date().to_string();
    let instructions = options.instructions.clone();
    prompt::PromptEnvironment { platform, date, activity: options.activity, instructions }
}

/// What another run of the same task has otherwise.
fn places(
    conversation: ConversationId,
    standing: &StandingRights,
    surroundings: &prompt::PromptEnvironment,
) -> Places {
    Places {
        project: standing.project.clone(),
        temp: standing.temp.clone(),
        home: std::env::home_dir().map(Into::into),
        conversation,
        date: surroundings.date.clone(),
        platform: surroundings.platform.clone(),
    }
}

/// The way to the provider, with its key, if there is one.
fn connection(
    options: &SessionOptions,
    keys: &TakenKeys,
    recorder: Option<Recorder>,
    setup: &ProjectSandbox,
) -> Result<Connection, OpenError> {
    let SessionOptions { provider: kind, base_url, model, .. } = options;
    let variable = kind.key_variable();
    if base_url.as_deref().and_then(socket_of).is_some() {
        // The relay has the key: none is looked for here, and none is sent to it.
        let connection = kind.connection(base_url.clone(), None, "the relay's key".to_owned());
        let chosen_by = model.chosen_by.clone();
        return Ok(Connection { recorder, chosen_by, timeouts: model.timeouts, ..connection });
    }
    let file = setup.directories.key_file(kind.vendor());
    let needs_key = kind.needs_key(base_url.as_deref().unwrap_or(kind.base_url()));
    let connection = match find_key(keys.of(*kind), variable, &file) {
        Ok(ApiKey { secret, origin, credential }) => {
            Connection { credential, ..kind.connection(base_url.clone(), Some(secret), origin) }
        }
        Err(KeyError::Missing { .. }) if !needs_key => {
            kind.connection(base_url.clone(), None, variable.to_owned())
        }
        Err(error) => return Err(error.into()),
    };
    let chosen_by = model.chosen_by.clone();
    Ok(Connection { recorder, chosen_by, timeouts: model.timeouts, ..connection })
}

/// The one place where providers are made.
fn provider(
    options: &SessionOptions,
    keys: &TakenKeys,
    connection: Connection,
) -> Result<Arc<dyn ModelProvider>, OpenError> {
    let opened = provider::open(options.provider, connection, options.model.facts.api_version)?;
    for notice in opened.notices.iter().chain(&keys.notice(options.provider)) {
        say(notice);
    }
    Ok(opened.provider)
}

/// Takes the files of a session back that a person is in for many turns.
fn rewinder(
    options: &SessionOptions,
    setup: &ProjectSandbox,
    observer: &SnapshotTaker,
    session: &ConversationId,
) -> Option<Rewinder> {
    let state = setup.directories.state.clone();
    options.keeps_files.then(|| Rewinder::new(observer.clone(), state, session.clone()))
}

/// Looks at the project, with a private temp directory of its own.
pub fn observer(setup: &ProjectSandbox, boundary: &Arc<dyn Boundary>, temp: &PrivateTemp) -> SnapshotTaker {
    let temp = WirePath::from(temp.path());
    let confinement = setup.confinement_beside(setup.policy.observer(temp.clone()), temp);
    SnapshotTaker {
        boundary: Arc::clone(boundary),
        agent: AgentId::root(),
        confinement,
        store: setup.directories.state.clone(),
    }
}

fn session_started(options: &SessionOptions, standing: &StandingRights, provider: &str) -> SessionStarted {
    let address = options.base_url.as_deref().unwrap_or_else(|| options.provider.base_url());
    SessionStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: standing.project.clone(),
        activity: options.activity,
        mode: standing.mode,
        model: options.model.name.clone(),
        provider: provider.to_owned(),
        base_url: Some(address.trim_end_matches('/').to_owned()),
        rights: standing.summary().into(),
        resumed: options.resume.is_some(),
    }
}
