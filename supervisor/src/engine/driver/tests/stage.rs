//! Sessions for tests, and their parts.

use std::sync::Arc;
use std::time::Duration;

use agent::core::{Agent, AgentConfig, Backoff, RunEnd, RunLimits, TreeLimits, Window};
use agent::prompt::PromptEnvironment;
use boundary::policy::Environments;
use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::tools::{Kit, Registry};
use gate::{ApprovalMode, StandingRights};
use ipc::confinement::Confinement;
use ipc::id::{AgentId, ConversationId, EventId};
use ipc::rights::Rights;
use model::provider::{GiveUp, ProviderError, RequestOptions, Tried};
use protocol::event::SessionEvent;
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserAction, UserActionKind};
use tempfile::TempDir;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::imagined::Imagined;
use super::model::Scripted;
use crate::engine::driver::{
    AgentParts, AgentRun, Lives, ModePlaces, OpensAgents, Session, SessionError, SessionWorker, Shared, Turns,
};
use crate::journal::session::{Loaded, SessionLog, load};

/// Reproducible random numbers: `SplitMix64`.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(super) fn at(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    pub(super) fn moment(&mut self) -> Duration {
        Duration::from_millis(self.below(20))
    }

    pub(super) fn split(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }
}

struct Never;

impl Backoff for Never {
    fn delay(&self, _: Tried, _: &ProviderError) -> Result<Duration, GiveUp> {
        Err(GiveUp::Pointless)
    }
}

fn surroundings() -> PromptEnvironment {
    PromptEnvironment {
        platform: "Linux".to_owned(),
        date: "2026-11-24".to_owned(),
        activity: Activity::Execute,
        instructions: None,
    }
}

fn standing() -> StandingRights {
    let rights = Rights { read: vec!["/".into()], write: vec!["/p".into()], ..Rights::default() };
    StandingRights::new(rights.normalised(), "/p".into(), None, ApprovalMode::Auto)
}

fn agent(id: &AgentId, standing: StandingRights) -> Agent {
    let kit = Kit { writes: true, fetches: true, delegates: true, plan: None };
    Agent::new(AgentConfig {
        model: "m".to_owned(),
        system: "be good".into(),
        tools: Arc::new(Registry::for_kit(Activity::Execute, kit)),
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
        conversation: "s".into(),
        approvals: ApprovalSettings::default(),
        id: id.clone(),
        activity: Activity::Execute,
        planning: None,
        execution: None,
    })
}

pub(super) fn run(boundary: &Arc<Imagined>, id: &AgentId, model: &Arc<Scripted>, turns: Turns) -> AgentRun {
    run_under(boundary, id, model, turns, standing().rights().clone())
}

pub(super) fn run_under(
    boundary: &Arc<Imagined>,
    id: &AgentId,
    model: &Arc<Scripted>,
    turns: Turns,
    rights: Rights,
) -> AgentRun {
    run_with(
        boundary,
        id,
        model,
        turns,
        if id.is_top_level() {
            standing().with_rights(rights)
        } else {
            standing().with_rights(rights).fixed()
        },
    )
}

/// Returns an agent run in this project directory.
pub(super) fn run_in(
    project: &std::path::Path,
    boundary: &Arc<Imagined>,
    model: &Arc<Scripted>,
    turns: Turns,
) -> AgentRun {
    let project = ipc::path::WirePath::from(project);
    let rights = Rights { read: vec!["/".into()], write: vec![project.clone()], ..Rights::default() };
    let standing = StandingRights::new(rights.normalised(), project, None, ApprovalMode::Auto);
    run_with(boundary, &AgentId::root(), model, turns, standing)
}

fn run_with(
    boundary: &Arc<Imagined>,
    id: &AgentId,
    model: &Arc<Scripted>,
    turns: Turns,
    standing: StandingRights,
) -> AgentRun {
    let confinement = Confinement::new(standing.rights().clone(), standing.project().clone());
    let environments = Environments::new(confinement.environment.clone());
    let mut mode_places = ModePlaces::new(None, environments);
    AgentRun::new(AgentParts {
        agent: agent(id, standing).starting(),
        provider: Arc::clone(model) as _,
        worker: SessionWorker::new(
            Arc::clone(boundary) as _,
            id.clone(),
            mode_places.confine(confinement).unwrap(),
        ),
        live: watch::Sender::new(Lives::new()),
        modes: mode_places,
        surroundings: surroundings(),
        turns,
        models: None,
        server: None,
        place: None,
    })
}

/// A running session of a test.
pub(super) struct Stage {
    began: Instant,
    actions: Option<mpsc::Sender<UserAction>>,
    id: ConversationId,
    events: Mutex<(mpsc::UnboundedReceiver<UiEvent>, Vec<SessionEvent>)>,
    session: JoinHandle<Result<RunEnd, SessionError>>,
    state: TempDir,
}

pub(super) struct Ended {
    pub(super) end: RunEnd,
    pub(super) events: Vec<SessionEvent>,
    pub(super) log: Loaded,
    pub(super) lived: Duration,
}

impl Stage {
    /// Starts a session with these agents at the top level.
    pub(super) fn open(runs: Vec<AgentRun>, deadline: Option<Duration>) -> Self {
        let mut runs = runs.into_iter();
        let first = runs.next().unwrap();
        let deadline = deadline.map(|after| Instant::now() + after);
        Self::begin(|shared, inbox| runs.fold(Session::new(shared, first, inbox, deadline), Session::with))
    }

    /// Starts a session in which three attempts to write the event `at` fail because the disk is full.
    pub(super) fn open_full(first: AgentRun, at: EventId) -> Self {
        let log = |log: SessionLog| log.holding_lines().full_at(at, 3);
        Self::begin_with(log, |shared, inbox| Session::new(shared, first, inbox, None))
    }

    /// Starts a session whose disk is full for the first `calls` attempts to sync the log.
    pub(super) fn open_unsynced(first: AgentRun, calls: u64) -> Self {
        let log = |log: SessionLog| log.holding_lines().unsynced_for(calls);
        Self::begin_with(log, |shared, inbox| Session::new(shared, first, inbox, None))
    }

    /// Waits until half a retry interval after the session pauses. Returns the number of events in the log file.
    pub(super) async fn paused(&self) -> usize {
        let mut events = self.events.lock().await;
        let (inbox, logged) = &mut *events;
        loop {
            match inbox.recv().await.expect("a session that is paused").kind {
                UiEventKind::Logged(event) => logged.push(*event),
                UiEventKind::LogPaused { .. } => break,
                _ => {}
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        load(&self.state.path().join("sessions/s.jsonl")).unwrap().tree.len()
    }

    pub(super) fn open_tree(first: AgentRun, opener: Box<dyn OpensAgents>, limits: TreeLimits) -> Self {
        Self::begin(|shared, inbox| Session::new(shared, first, inbox, None).with_sub_agents(opener, limits))
    }

    fn begin(session: impl FnOnce(Shared, mpsc::Receiver<UserAction>) -> Session) -> Self {
        Self::begin_with(|log| log, session)
    }

    fn begin_with(
        log: impl FnOnce(SessionLog) -> SessionLog,
        session: impl FnOnce(Shared, mpsc::Receiver<UserAction>) -> Session,
    ) -> Self {
        let state = tempfile::tempdir().unwrap();
        let id = ConversationId::from("s");
        let log = log(SessionLog::create(state.path(), &id).unwrap());
        let (ui, events) = mpsc::unbounded_channel();
        let (actions, inbox) = mpsc::channel(64);
        let shared = Shared::new(id.clone(), log, ui, None, None);
        let began = Instant::now();
        let session = tokio::spawn(session(shared, inbox).run(began));
        let events = (events, Vec::new()).into();
        Self { began, actions: Some(actions), id, events, session, state }
    }

    pub(super) async fn event(&self, is: impl Fn(&SessionEvent) -> bool) {
        let mut events = self.events.lock().await;
        let (inbox, logged) = &mut *events;
        loop {
            if let UiEventKind::Logged(event) = inbox.recv().await.expect("a session that goes on").kind {
                let found = is(&event);
                logged.push(*event);
                if found {
                    return;
                }
            }
        }
    }

    pub(super) async fn act(&self, agent: Option<&AgentId>, kind: UserActionKind) {
        let action = UserAction { conversation_id: self.id.clone(), agent: agent.cloned(), kind };
        // An error means that the session is over.
        let _ = self.actions.as_ref().unwrap().send(action).await;
    }

    pub(super) async fn prompt(&self, agent: Option<&AgentId>, text: &str) {
        self.act(agent, UserActionKind::Agent(AgentAction::Prompt { text: text.to_owned(), images: vec![] }))
            .await;
    }

    pub(super) fn without_user(self) -> Self {
        Self { actions: None, ..self }
    }

    pub(super) async fn end(self) -> Ended {
        let Self { began, actions, events, session, state, .. } = self;
        let (mut events, mut logged) = events.into_inner();
        let end = session.await.unwrap().unwrap();
        drop(actions);
        let lived = began.elapsed();
        while let Some(event) = events.recv().await {
            if let UiEventKind::Logged(event) = event.kind {
                logged.push(*event);
            }
        }
        let log = load(&state.path().join("sessions/s.jsonl")).unwrap();
        Ended { end, events: logged, log, lived }
    }
}

impl Ended {
    /// Returns an agent's events without result and times. They are sorted, because parallel work ends in any order.
    pub(super) fn of(&self, agent: &AgentId) -> Vec<String> {
        let events = self.events.iter().filter(|event| event.agent == *agent);
        let kinds = events.map(|event| serde_json::to_value(&event.kind).unwrap());
        let mut lines: Vec<_> = kinds.filter(|kind| kind["type"] != "result").map(timeless).collect();
        lines.sort();
        lines
    }

    pub(super) fn types(&self) -> Vec<String> {
        let kinds = self.events.iter().map(|event| serde_json::to_value(&event.kind).unwrap());
        kinds.map(|kind| kind["type"].as_str().unwrap().to_owned()).collect()
    }
}

fn timeless(mut kind: serde_json::Value) -> String {
    if let Some(data) = kind["data"].as_object_mut() {
        data.retain(|name, _| !name.ends_with("_ms") && !name.ends_with("_us"));
    }
    kind.to_string()
}
