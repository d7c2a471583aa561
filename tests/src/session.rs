//! A session by its channel alone, as a front end has it: actions in, events out. The model is a recording, the worker a
//! real one, and the supervisor this very process.

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

/// The longest that an event may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A front end's end of a session.
pub struct FrontEnd {
    id: ConversationId,
    /// Where actions go; a front end that is gone has none.
    pub actions: Option<mpsc::Sender<UserAction>>,
    events: mpsc::UnboundedReceiver<UiEvent>,
    run: JoinHandle<Result<RunEnd, SessionError>>,
    seen: Vec<String>,
    /// The model of the first agent.
    pub provider: Arc<ReplayProvider>,
    /// The agents.
    pub agents: Vec<OpenAgent>,
    /// Where it plays.
    pub world: World,
}

/// An agent of a session that has begun.
pub struct OpenAgent {
    /// Its number.
    pub id: AgentId,
    /// Its model.
    pub provider: Arc<ReplayProvider>,
    /// Its temp.
    pub temp: PrivateTemp,
}

/// Names the first agent of sessions, where it is not the usual one.
pub const FIRST_AGENT: &str = "BAILIWICK_TEST_FIRST_AGENT";

/// The first agent of a session.
pub fn first_agent() -> AgentId {
    std::env::var(FIRST_AGENT).map_or_else(|_| AgentId::root(), |id| AgentId::from(id.as_str()))
}

/// What a session begins with.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The network.
    pub net: Network,
    /// The tier.
    pub tier: TierChoice,
    /// The worker's program, if it is another than the real one: a place in its world, where a copy of it is made.
    pub worker: Option<&'static str>,
    /// What a process does that the worker leaves behind before it serves: a command of bash.
    pub beside: Option<&'static str>,
    /// The model as the session has it, made of the recording.
    pub model: fn(Arc<ReplayProvider>) -> Arc<dyn ModelProvider>,
    /// The approval mode.
    pub mode: ApprovalMode,
    /// How it asks.
    pub approvals: ApprovalSettings,
    /// How many turns there are.
    pub turns: Turns,
    /// What stands in the project at the start: names and contents. With any of it the project is watched as a session of
    /// `bailiwick` watches it.
    pub files: Vec<(&'static str, String)>,
}

impl Default for Beginning {
    /// The network off, the best tier.
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

/// The parts of our programs that a session needs.
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
    let policy = Policy { net: beginning.net, reach, ..policy(world, temp, beginning.mode) };
    let modes = Some(policy.modes());
    let standing = StandingRights::new(policy.standing(), policy.project, Some(policy.temp), policy.mode);
    StandingRights { modes, ..standing }
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

/// What an agent begins with.
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

/// What the agents of a session have in common.
struct Common<'a> {
    world: &'a World,
    beginning: &'a Beginning,
    session: ConversationId,
    state: PathBuf,
    temps: Temps,
    boundary: Arc<dyn Boundary>,
}

impl Common<'_> {
    /// An agent with a temp and an environment of its own.
    fn run(&self, part: Part) -> (AgentRun, OpenAgent) {
        let Part { id, replies, tools, server } = part;
        let Self { world, beginning, .. } = self;
        let temp = PrivateTemp::create(&self.temps, &self.state.join("locks")).expect("a temp directory");
        let standing = standing(world, temp.path(), beginning);
        let environments = Environments::new(marked_environment(world));
        let confinement = Confinement {
            temp: standing.temp.clone(),
            environment: environments.beside(&temp.path().into(), standing.rights.net),
            tier: beginning.tier,
            ..Confinement::new(standing.rights.clone(), standing.project.clone())
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
        });
        let run = match server {
            Some(server) => run.served_by(server),
            None => run,
        };
        (run, OpenAgent { id, provider, temp })
    }
}

impl FrontEnd {
    /// A session that has begun, in a world of its own, with a model that gives these replies.
    pub fn open(replies: impl IntoIterator<Item = String>) -> Self {
        Self::open_with(Beginning::default(), replies)
    }

    /// The same, with another beginning. What its workers run has the world's mark in its environment.
    pub fn open_with(beginning: Beginning, replies: impl IntoIterator<Item = String>) -> Self {
        Self::begin(&beginning, vec![Part::of(first_agent(), replies)])
    }

    /// The same, with these tools besides, and what serves those of them that no worker serves.
    pub fn open_with_tools(
        beginning: Beginning,
        (tools, server): (Vec<Box<dyn Tool>>, Arc<dyn ToolServer>),
        replies: impl IntoIterator<Item = String>,
    ) -> Self {
        let part = Part { tools, server: Some(server), ..Part::of(first_agent(), replies) };
        Self::begin(&beginning, vec![part])
    }

    /// A session of several agents at the top level, each with the replies of its model.
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

    /// Acts as the user.
    pub async fn act(&self, kind: UserActionKind) {
        self.act_in(&self.id, kind).await;
    }

    /// Acts in a session.
    pub async fn act_in(&self, id: &ConversationId, kind: UserActionKind) {
        self.send(UserAction { conversation_id: id.clone(), agent: None, kind }).await;
    }

    /// Acts as the user, of one agent.
    pub async fn act_of(&self, agent: &AgentId, kind: UserActionKind) {
        self.send(UserAction { conversation_id: self.id.clone(), agent: Some(agent.clone()), kind }).await;
    }

    async fn send(&self, action: UserAction) {
        self.actions.as_ref().expect("it is not gone").send(action).await.expect("a session takes actions");
    }

    /// Says something to the agent.
    pub async fn prompt(&self, text: &str) {
        self.act(UserActionKind::Agent(AgentAction::Prompt { text: text.to_owned(), images: vec![] })).await;
    }

    /// Takes events in until one of them says so.
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

    /// Takes events in until somebody is asked.
    pub async fn asked(&mut self) -> (ApprovalId, ServerRequest) {
        while let Some(event) = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("a request") {
            self.see(&event);
            if let UiEventKind::ApprovalRequested { id, request } = event.kind {
                return (id, *request);
            }
        }
        panic!("nobody is asked: {:#?}", self.seen);
    }

    /// Notes an event; one of another agent than the first begins with its name.
    fn see(&mut self, event: &UiEvent) {
        let line = line(&event.kind);
        self.seen.push(if event.agent == self.agents[0].id {
            line
        } else {
            format!("{}: {line}", event.agent)
        });
    }

    /// What was shown so far.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Lets nobody see anything any more.
    pub fn close_eyes(&mut self) {
        self.events.close();
    }

    /// The world, when the session is over; what is shown meanwhile is lost.
    pub async fn finished(self) -> World {
        let Self { actions, run, world, .. } = self;
        tokio::time::timeout(PATIENCE, run).await.expect("an end").expect("no panic").expect("an end");
        drop(actions);
        world
    }

    /// Everything that was shown until the session's end.
    pub async fn end(self) -> String {
        self.end_in_world().await.0
    }

    /// The same, and the world that it ended in.
    pub async fn end_in_world(mut self) -> (String, World) {
        while let Some(event) = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an end") {
            self.see(&event);
        }
        let end = self.run.await.expect("no panic").expect("an end");
        self.seen.push(format!("= {}", end.reason.as_str()));
        (self.seen.join("\n"), self.world)
    }
}

/// An event as a line, without what differs from run to run.
fn line(kind: &UiEventKind) -> String {
    match kind {
        UiEventKind::TextDelta { text } => format!("text {text:?}"),
        UiEventKind::ThinkingDelta { text } => format!("thinking {text:?}"),
        UiEventKind::OutputDelta { call, text } => format!("output of {call}: {text:?}"),
        UiEventKind::ApprovalRequested { id, request } => format!("asks {id}: {}", request.method()),
        UiEventKind::ApprovalClosed { id } => format!("asks {id} no more"),
        UiEventKind::FileNames { names, .. } => format!("{} files", names.len()),
        UiEventKind::Branch { name } => format!("branch {name:?}"),
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
        other => panic!("{other:?}"),
    }
}
