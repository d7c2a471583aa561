//! Runs a session in this process. The test plays the front end by the session's channels: actions in, events out. The
//! model is a recording, and the worker is a real one.

use std::fs::{DirBuilder, create_dir};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::core::{Agent, AgentConfig, Backoff, RunEnd, RunLimits, Window};
use agent::prompt::PromptEnvironment;
use boundary::monitor::{PrivateTemp, Programs, Spawner, Temps};
use boundary::policy::{Environments, HiddenInodes, Policy};
use boundary::tripwire::Watch;
use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::tools::{Registry, Tool};
use gate::{ApprovalMode, StandingRights};
use ipc::confinement::{Confinement, Environment, TierChoice};
use ipc::id::{AgentId, ApprovalId, ConversationId};
use ipc::rights::{Network, Reach};
use model::provider::{GiveUp, ModelProvider, ProviderError, ReplayProvider, RequestOptions, Tried};
use protocol::approval::ServerRequest;
use protocol::event::EventKind;
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserAction, UserActionKind};
use supervisor::engine::driver::{
    AgentParts, AgentRun, Boundary, ModePlaces, Processes, Session, SessionError, SessionWorker, Shared,
    ToolServer, Turns,
};
use supervisor::journal::session::SessionLog;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::programs::User;
use crate::standing::policy;
use crate::world::World;

/// Maximum wait for an event.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Front end that a test plays.
pub struct FrontEnd {
    id: ConversationId,
    /// Channel for actions. `None` once the front end has disconnected.
    pub actions: Option<mpsc::Sender<UserAction>>,
    events: mpsc::UnboundedReceiver<UiEvent>,
    run: JoinHandle<Result<RunEnd, SessionError>>,
    seen: Vec<String>,
    /// Recorded model of the first agent.
    pub provider: Arc<ReplayProvider>,
    pub agents: Vec<OpenAgent>,
    pub world: World,
}

pub struct OpenAgent {
    pub id: AgentId,
    pub provider: Arc<ReplayProvider>,
    pub temp: PrivateTemp,
}

/// Environment variable with the id of the sessions' first agent. If it is not set, the id is `1` as usual.
pub const FIRST_AGENT: &str = "BAILIWICK_TEST_FIRST_AGENT";

pub fn first_agent() -> AgentId {
    std::env::var(FIRST_AGENT).map_or_else(|_| AgentId::root(), |id| AgentId::from(id.as_str()))
}

/// Settings with which a session starts.
#[derive(Clone, Debug)]
pub struct Beginning {
    pub net: Network,
    pub tier: TierChoice,
    /// Path, in the test's directories, of a copy of another worker program. `None` for the real worker.
    pub worker: Option<&'static str>,
    /// Bash command for a process that the worker starts before it is ready and leaves running. `None` for no such
    /// process.
    pub beside: Option<&'static str>,
    /// Function that turns the recording into the session's model.
    pub model: fn(Arc<ReplayProvider>) -> Arc<dyn ModelProvider>,
    pub mode: ApprovalMode,
    pub approvals: ApprovalSettings,
    pub turns: Turns,
    /// Names and contents of files in the project. If there are any, the tripwire watches the project as in a normal
    /// session.
    pub files: Vec<(&'static str, String)>,
}

impl Default for Beginning {
    /// Returns settings without network, in the best tier that the machine supports.
    fn default() -> Self {
        Self {
            net: Network::Off,
            tier: TierChoice::Best,
            worker: None,
            beside: None,
            model: |recording| recording,
            mode: ApprovalMode::Auto,
            approvals: ApprovalSettings::default(),
            turns: Turns::One,
            files: Vec::new(),
        }
    }
}

struct Never;

impl Backoff for Never {
    fn delay(&self, _: Tried, _: &ProviderError) -> Result<Duration, GiveUp> {
        Err(GiveUp::Pointless)
    }
}

/// Returns the programs that the session uses.
fn programs(world: &World, beginning: &Beginning) -> Programs {
    let ours = crate::Programs::get();
    let mut worker = ours.path("bailiwick-worker");
    if let Some(name) = beginning.worker {
        let place = world.root().join(name);
        crate::programs::copy_program(&worker, &place);
        worker = place;
    }
    if let Some(command) = beginning.beside {
        let directory = world.root().join("programs");
        create_dir(&directory).expect("our own directory");
        worker = crate::programs::worker_with_process(&directory, command);
    }
    Programs { sandbox_exec: ours.path("sandbox-exec"), worker }
}

fn marked_environment(world: &World) -> Environment {
    let set = world.mark().split_once('=').map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    Environment { set: set.into_iter().collect(), ..Environment::default() }
}

fn watch(world: &World) -> Watch {
    Watch::of(world.project())
}

fn private(directory: PathBuf) -> PathBuf {
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).expect("our own directory");
    directory
}

fn standing(world: &World, temp: &Path, beginning: &Beginning) -> StandingRights {
    let reach = Reach { host: true, ..Reach::default() };
    let policy = Policy { net: beginning.net.clone(), reach, ..policy(world, temp, beginning.mode) };
    let modes = Some(policy.modes());
    let standing = StandingRights::new(policy.standing(), policy.project, Some(policy.temp), policy.mode);
    standing.with_modes(modes)
}

fn surroundings() -> PromptEnvironment {
    PromptEnvironment {
        platform: "Linux".to_owned(),
        date: "2026-11-21".to_owned(),
        activity: Activity::Execute,
        instructions: None,
    }
}

fn agent(
    id: &AgentId,
    standing: StandingRights,
    session: &ConversationId,
    approvals: ApprovalSettings,
    tools: Vec<Box<dyn Tool>>,
) -> Agent {
    let tools = Registry::for_activity(Activity::Execute).with(tools);
    Agent::new(AgentConfig {
        model: "recorded".to_owned(),
        system: "system".into(),
        tools: Arc::new(tools.expect("names of their own")),
        max_tokens: 1000,
        window: Window::default(),
        sees_images: true,
        prices: None,
        surroundings: surroundings(),
        options: RequestOptions::default(),
        fails_when_denied: true,
        answer: None,
        limits: RunLimits::default(),
        backoff: Box::new(Never),
        standing,
        conversation: session.clone(),
        approvals,
        id: id.clone(),
        activity: Activity::Execute,
        planning: None,
        execution: None,
    })
}

struct Part {
    id: AgentId,
    replies: Vec<String>,
    tools: Vec<Box<dyn Tool>>,
    server: Option<Arc<dyn ToolServer>>,
}

impl Part {
    fn of(id: AgentId, replies: impl IntoIterator<Item = String>) -> Self {
        Self { id, replies: replies.into_iter().collect(), tools: Vec::new(), server: None }
    }
}

/// Settings that all agents of a session share.
struct Common<'a> {
    world: &'a World,
    beginning: &'a Beginning,
    session: ConversationId,
    state: PathBuf,
    temps: Temps,
    boundary: Arc<dyn Boundary>,
}

impl Common<'_> {
    /// Creates one of the session's agents, with a private temp directory and an environment of its own.
    fn run(&self, part: Part) -> (AgentRun, OpenAgent) {
        let Part { id, replies, tools, server } = part;
        let Self { world, beginning, .. } = self;
        let temp = PrivateTemp::create(&self.temps, &self.state.join("locks")).expect("a temp directory");
        let standing = standing(world, temp.path(), beginning);
        let environments = Environments::new(marked_environment(world));
        let confinement = Confinement {
            temp: standing.temp().cloned(),
            environment: environments.beside(&temp.path().into(), &standing.rights().net),
            tier: beginning.tier,
            ..Confinement::new(standing.rights().clone(), standing.project().clone())
        };
        let provider = Arc::new(ReplayProvider::new(replies));
        let mut modes = ModePlaces::new((!beginning.files.is_empty()).then(|| watch(world)), environments);
        let confined = modes.confine(confinement).expect("a place that exists");
        let run = AgentRun::new(AgentParts {
            agent: agent(&id, standing, &self.session, beginning.approvals.clone(), tools).starting(),
            provider: (beginning.model)(Arc::clone(&provider)),
            worker: SessionWorker::new(Arc::clone(&self.boundary), id.clone(), confined),
            live: watch::Sender::default(),
            modes,
            surroundings: surroundings(),
            turns: beginning.turns,
            models: None,
            server,
            place: None,
        });
        (run, OpenAgent { id, provider, temp })
    }
}

impl FrontEnd {
    /// Starts a session with a model that gives these replies.
    pub fn open(replies: impl IntoIterator<Item = String>) -> Self {
        Self::open_with(Beginning::default(), replies)
    }

    /// Starts a session with the settings `beginning`. The session's processes have the test's mark in their
    /// environment.
    pub fn open_with(beginning: Beginning, replies: impl IntoIterator<Item = String>) -> Self {
        Self::begin(&beginning, vec![Part::of(first_agent(), replies)])
    }

    /// Starts a session with additional tools, and with the code for those that no worker executes.
    pub fn open_with_tools(
        beginning: Beginning,
        (tools, server): (Vec<Box<dyn Tool>>, Arc<dyn ToolServer>),
        replies: impl IntoIterator<Item = String>,
    ) -> Self {
        let part = Part { tools, server: Some(server), ..Part::of(first_agent(), replies) };
        Self::begin(&beginning, vec![part])
    }

    /// Starts a session with several top-level agents, each with the replies of its model.
    pub fn open_several(beginning: &Beginning, agents: Vec<(AgentId, Vec<String>)>) -> Self {
        Self::begin(beginning, agents.into_iter().map(|(id, replies)| Part::of(id, replies)).collect())
    }

    fn begin(beginning: &Beginning, parts: Vec<Part>) -> Self {
        let world = World::new(User::Myself);
        let state = private(world.own().join("state"));
        create_dir(state.join("locks")).expect("our own directory");
        let temps = Temps::open(&world.own().join("cache"), false).expect("a directory of temps");
        for (name, content) in &beginning.files {
            world.file(name, content);
        }
        let programs = programs(&world, beginning);
        let spawner =
            Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default()).expect("a spawner");
        let boundary = Processes::shared(spawner, programs, None, None);
        let id = ConversationId("ours".to_owned());
        let log = SessionLog::create(&state, &id).expect("a log");
        let common = Common { world: &world, beginning, session: id.clone(), state, temps, boundary };
        let (runs, agents): (Vec<_>, Vec<_>) = parts.into_iter().map(|part| common.run(part)).unzip();
        let (ui, events) = mpsc::unbounded_channel();
        let (actions, inbox) = mpsc::channel(16);
        let mut runs = runs.into_iter();
        let first = runs.next().expect("an agent");
        let shared = Shared::new(id.clone(), log, ui, None, None);
        let session = runs.fold(Session::new(shared, first, inbox, None), Session::with);
        let run = tokio::spawn(session.run(Instant::now().into()));
        let provider = Arc::clone(&agents[0].provider);
        Self { id, actions: Some(actions), events, run, seen: Vec::new(), provider, agents, world }
    }

    pub async fn act(&self, kind: UserActionKind) {
        self.act_in(&self.id, kind).await;
    }

    pub async fn act_in(&self, id: &ConversationId, kind: UserActionKind) {
        self.send(UserAction { conversation_id: id.clone(), agent: None, kind }).await;
    }

    pub async fn act_of(&self, agent: &AgentId, kind: UserActionKind) {
        self.send(UserAction { conversation_id: self.id.clone(), agent: Some(agent.clone()), kind }).await;
    }

    async fn send(&self, action: UserAction) {
        self.actions.as_ref().expect("it is not gone").send(action).await.expect("a session takes actions");
    }

    pub async fn prompt(&self, text: &str) {
        self.act(UserActionKind::Agent(AgentAction::Prompt { text: text.to_owned(), images: vec![] })).await;
    }

    pub async fn until(&mut self, wanted: &str) {
        while let Some(event) = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect(wanted) {
            assert_eq!(event.conversation_id, self.id);
            self.see(&event);
            if self.seen.last().is_some_and(|line| line.contains(wanted)) {
                return;
            }
        }
        panic!("{wanted}: not among {:#?}", self.seen);
    }

    /// Receives events up to the next approval request, and returns that.
    pub async fn asked(&mut self) -> (ApprovalId, ServerRequest) {
        while let Some(event) = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("a request") {
            self.see(&event);
            if let UiEventKind::ApprovalRequested { id, request } = event.kind {
                return (id, *request);
            }
        }
        panic!("nobody is asked: {:#?}", self.seen);
    }

    /// Records an event as a line. If the event is of another agent than the first, the line begins with that agent's
    /// id.
    fn see(&mut self, event: &UiEvent) {
        let line = line(&event.kind);
        self.seen.push(if event.agent == self.agents[0].id {
            line
        } else {
            format!("{}: {line}", event.agent)
        });
    }

    /// Returns the lines of all events that were received.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    pub fn close_eyes(&mut self) {
        self.events.close();
    }

    /// Waits for the end of the session, and returns its directories. Drops the remaining events.
    pub async fn finished(self) -> World {
        let Self { actions, run, world, .. } = self;
        tokio::time::timeout(PATIENCE, run).await.expect("an end").expect("no panic").expect("an end");
        drop(actions);
        world
    }

    /// Returns the lines of all events up to the end of the session.
    pub async fn end(self) -> String {
        self.end_in_world().await.0
    }

    /// Returns the lines of all events up to the end of the session, and the session's directories.
    pub async fn end_in_world(mut self) -> (String, World) {
        while let Some(event) = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an end") {
            self.see(&event);
        }
        let end = self.run.await.expect("no panic").expect("an end");
        self.seen.push(format!("= {}", end.reason.as_str()));
        (self.seen.join("\n"), self.world)
    }
}

/// Returns an event as a line, without data that differs from run to run.
fn line(kind: &UiEventKind) -> String {
    match kind {
        UiEventKind::TextDelta { text } => format!("text {text:?}"),
        UiEventKind::ThinkingDelta { text } => format!("thinking {text:?}"),
        UiEventKind::OutputDelta { call, text } => format!("output of {call}: {text:?}"),
        UiEventKind::ApprovalRequested { id, request } => format!("asks {id}: {}", request.method()),
        UiEventKind::ApprovalClosed { id } => format!("asks {id} no more"),
        UiEventKind::FileNames { names, .. } => format!("{} files", names.len()),
        UiEventKind::Branch { name } => format!("branch {name:?}"),
        UiEventKind::ServerPrompts { prompts } => format!("{} prompts", prompts.len()),
        UiEventKind::PromptExpanded(expanded) => format!("prompt {:?}", expanded.text),
        UiEventKind::RewindPreview(preview) => format!("rewind of {} files", preview.files.len()),
        UiEventKind::LogPaused { last, .. } => format!("the log is paused behind {last}"),
        UiEventKind::LogGoesOn => "the log goes on".to_owned(),
        UiEventKind::SpentBefore { accounts } => format!("{} agents spent something before", accounts.len()),
        UiEventKind::Logged(event) => format!("{} {}", event.id, logged(&event.kind)),
    }
}

fn logged(kind: &EventKind) -> String {
    match kind {
        EventKind::WorkerStarted(started) => format!("worker {} started", started.generation),
        EventKind::RightsChanged(changed) => {
            let rights = changed.rights.value().expect("rights as a value");
            format!("rights changed for worker {}: net {}", changed.generation, rights.net)
        }
        EventKind::WorkerEnded { generation, reason } => format!("worker {generation} ended: {reason}"),
        EventKind::ContextAdded { source, .. } => format!("context from {source}"),
        EventKind::PromptFixed(prompt) => format!("prompt with {} tools", prompt.tools.len()),
        EventKind::UserMessage { text, .. } => format!("user {text:?}"),
        EventKind::ModelRequested { step, attempt } => format!("request {step}.{attempt}"),
        EventKind::AssistantMessage(message) => format!("reply ({})", message.stop_reason),
        EventKind::ModelFailed { kind, .. } => format!("failed: {kind}"),
        EventKind::ToolCallStarted { call, name, .. } => format!("call {call}: {name}"),
        EventKind::ToolCallFinished { call, status, .. } => format!("call {call} {status}"),
        EventKind::Notice { code, message } => format!("notice {code}: {message}"),
        EventKind::ApprovalRequested { id, request } => {
            format!("approval {id} of call {}", request.call_id())
        }
        EventKind::ApprovalAnswered(answered) => {
            let cause = answered.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
            format!("call {} {} by {:?}{cause}", answered.call, answered.decision.as_str(), answered.by)
        }
        EventKind::GrantAdded(grant) => format!("grant {}: {}", grant.id, grant.covers),
        EventKind::GrantRevoked { id } => format!("grant {id} revoked"),
        EventKind::TurnAllowed(allowed) => format!("all is allowed with call {}", allowed.call),
        EventKind::TurnAllowanceEnded { cause } => format!("all is allowed no more: {cause:?}"),
        EventKind::ModeChanged { mode } => format!("mode {mode}"),
        EventKind::ModelChanged(changed) => format!("model {}", changed.to),
        EventKind::TurnFinished(turn) => format!("turn {}", turn.reason),
        EventKind::Result(result) => format!("result {} {}", result.exit_code, result.reason),
        EventKind::Denied { call: Some(call), denial, .. } => {
            format!("call {call} denied: {}", denial.operation)
        }
        EventKind::Denied { call: None, denial, .. } => format!("beside the calls {denial}"),
        EventKind::Restored { places, .. } => format!("restored {}", places.len()),
        EventKind::SubAgentSpawned(spawned) => spawned.to_string(),
        EventKind::SubAgentResult(result) => format!("sub-agent {} {}", result.agent, result.status),
        EventKind::WriteTurnAwaited(waits) => waits.to_string(),
        EventKind::WriteTurnTaken(taken) => taken.to_string(),
        EventKind::PlanCreated(plan) => format!("plan of {} steps", plan.plan.steps.len()),
        EventKind::PlanApproved(plan) => format!("plan approved by {:?}", plan.by),
        EventKind::PlanStepStatus(step) => step.to_string(),
        EventKind::TasksUpdated(tasks) => tasks.to_string(),
        other => panic!("{other:?}"),
    }
}
