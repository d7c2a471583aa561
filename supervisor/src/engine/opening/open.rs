//! Opens a session, in the same way for every front end.
//!
//! Each step is a type that holds its results, and needs the results of earlier steps. So the provider and the user's
//! files are opened before the first worker exists, and no agent starts without a log.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agent::core::RunEnd;
use agent::prompt::PromptEnvironment;
use boundary::monitor::PrivateTemp;
use gate::StandingRights;
use gate::activity::Activity;
use ipc::id::{AgentId, ConversationId};
use ipc::rights::Rights;
use model::recording::Places;
use model::secrets::TakenKeys;
use protocol::frontend::UiEvent;
use protocol::server_prompt::ServerPrompt;
use tokio::sync::{mpsc, watch};

use super::connected::Connected;
use super::error::OpenError;
use super::first_agent::{FirstAgent, restored};
use super::handle::Handle;
use super::kept::KeptApprovals;
use super::logged::{Channels, Logged};
use super::options::SessionOptions;
use super::plan_files::PlanFiles;
use super::prepared::PreparedSession;
use super::resumed::{Resumed, Site};
use super::sub_agents::{SubAgents, served};
use crate::engine::driver::{
    self, AgentParts, AgentRun, Boundary, ChangeTracker, Lives, ModePlaces, Rewinder, SessionError,
    SessionWorker, Shared, SnapshotTaker, TripwireWatch, Turns,
};
use crate::engine::live::LiveSocket;
use crate::engine::mcp::tell_prompts;
use crate::engine::place::ProjectSandbox;
use crate::journal::changes::PatchFile;
use crate::process::directories::Directories;
use crate::process::messages::say;

#[derive(Clone)]
pub(crate) struct SessionDirs {
    pub directories: Directories,
    /// API keys that were in the environment.
    pub keys: TakenKeys,
}

/// An open session whose agent has not begun to work.
pub(crate) struct OpenedSession {
    inner: driver::Session,
    standing: StandingRights,
    activity: Activity,
    places: Places,
    began: Instant,
    prompts: Vec<ServerPrompt>,
    // Held until the session is over, and removed then.
    _observer_temp: PrivateTemp,
    _setup: Arc<ProjectSandbox>,
}

pub(crate) type SessionEvents = mpsc::UnboundedReceiver<UiEvent>;

/// Opens a session. Returns an error if its options cannot be used.
pub(crate) fn open(
    options: SessionOptions,
    dirs: SessionDirs,
    began: Instant,
) -> Result<(OpenedSession, Handle, SessionEvents), OpenError> {
    open_prepared(PreparedSession::new(options, dirs.directories.clone())?, dirs, began)
}

/// Opens a session whose sandbox is prepared.
pub(crate) fn open_prepared(
    mut prepared: PreparedSession,
    dirs: SessionDirs,
    began: Instant,
) -> Result<(OpenedSession, Handle, SessionEvents), OpenError> {
    prepared.setup.announce_worker();
    let connected = Connected::new(&prepared, &dirs.keys)?;
    let patch = prepared.patch()?;
    let resumed = Resumed::new(&prepared)?;
    let (first, events) = FirstAgent::new(&mut prepared, &connected, &resumed);
    let logged = Logged::new(&prepared, &connected, events, resumed)?;
    let watched = ProjectWatches::new(&prepared, &logged, patch)?;
    assemble(prepared, connected, first, logged, watched, began)
}

struct ProjectWatches {
    /// Compares the project with its state at the start; `None` if neither a list of changes nor a patch is wanted.
    changes: Option<ChangeTracker>,
    tripwire: Option<TripwireWatch>,
}

impl ProjectWatches {
    /// Begins to take the base snapshot and to set the tripwire, before a worker can write.
    fn new(prepared: &PreparedSession, logged: &Logged, patch: Option<PatchFile>) -> Result<Self, OpenError> {
        let is_followed = patch.is_some() || prepared.options.lists_changes;
        let changes = is_followed.then(|| ChangeTracker::start(logged.site.observer.clone(), patch));
        let tripwire = prepared.setup.watched_at_once().map(TripwireWatch::start).transpose()?;
        Ok(Self { changes, tripwire })
    }
}

fn assemble(
    prepared: PreparedSession,
    connected: Connected,
    first: FirstAgent,
    logged: Logged,
    watched: ProjectWatches,
    began: Instant,
) -> Result<(OpenedSession, Handle, SessionEvents), OpenError> {
    let PreparedSession { options, setup, standing, .. } = prepared;
    let FirstAgent { config, surroundings, servers, host } = first;
    let Logged { log, earlier, site, channels } = logged;
    let Site { conversation, boundary, observer, observer_temp, plan } = site;
    let (worker, modes) = first_worker(&setup, &boundary, standing.rights().clone())?;
    let (plan_files, plan_records) = PlanFiles::shared(&setup, &conversation, &options, plan.as_ref());
    let (live, live_socket) = live(&setup.directories, &conversation);
    let prompts = tell_prompts(host.as_deref(), &channels.ui, &conversation);
    let of_plans = (options.activity == Activity::Plan).then(|| Arc::clone(&plan_files));
    let run = AgentRun::new(AgentParts {
        agent: restored(config, &earlier).starting(),
        provider: Arc::clone(&connected.provider),
        worker,
        live: live.clone(),
        modes,
        surroundings: surroundings.clone(),
        turns: options.turns,
        models: options.models.clone().map(|models| models as _),
        server: served(of_plans, host),
        place: None,
    });
    let standing = run.agent().standing().clone();
    let places = places(conversation.clone(), &standing, &surroundings);
    let sub_agents = SubAgents {
        setup: Arc::clone(&setup),
        options: options.clone(),
        provider: Arc::clone(&connected.provider),
        boundary,
        conversation: conversation.clone(),
        surroundings,
        live,
        limits: options.agents,
        plan_files,
        observer: observer.clone(),
        servers,
    };
    connected.describe(&options, places.clone());
    if let Some(plan) = plan {
        channels.go_on(plan, &conversation);
    }
    let Channels { ui, events, actions, inbox } = channels;
    let shared = Shared::new(conversation.clone(), log, ui, watched.changes, watched.tripwire)
        .holding(live_socket)
        .telling(plan_records)
        .keeping(KeptApprovals::of(&setup))
        .rewound_by(rewinder(&options, &setup, &observer, &conversation), options.turns == Turns::Many)
        .watched_by(observer)
        .within(options.limits);
    let deadline = options.timeout.map(|timeout| (began + timeout).into());
    let session = OpenedSession {
        inner: driver::Session::new(shared, run, inbox, deadline)
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
    /// Returns the access of the first agent at the start.
    pub(crate) const fn standing(&self) -> &StandingRights {
        &self.standing
    }

    pub(crate) const fn activity(&self) -> Activity {
        self.activity
    }

    /// Returns the paths and times that differ between two runs of the same task. Recordings need them.
    pub(crate) const fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn prompts(&self) -> &[ServerPrompt] {
        &self.prompts
    }

    pub(crate) fn log_path(&self) -> &Path {
        self.inner.shared().log.path()
    }

    pub(crate) async fn run(self) -> Result<RunEnd, SessionError> {
        Box::pin(self.inner.run(self.began.into())).await
    }
}

/// Returns the worker of the first agent, and the environments for later changes of its access.
fn first_worker(
    setup: &ProjectSandbox,
    boundary: &Arc<dyn Boundary>,
    rights: Rights,
) -> io::Result<(SessionWorker, ModePlaces)> {
    let mut modes = setup.mode_places();
    let confinement = modes.confine(setup.confinement(rights))?;
    Ok((SessionWorker::new(Arc::clone(boundary), AgentId::root(), confinement), modes))
}

/// Returns the channel that publishes running workers, and the socket that reports them; `None` if that failed.
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

fn places(
    conversation: ConversationId,
    standing: &StandingRights,
    surroundings: &PromptEnvironment,
) -> Places {
    Places {
        project: standing.project().clone(),
        temp: standing.temp().cloned(),
        home: std::env::home_dir().map(Into::into),
        conversation,
        date: surroundings.date.clone(),
        platform: surroundings.platform.clone(),
    }
}

/// Returns the value that keeps copies of files for rewinds; `None` if the session keeps no copies.
fn rewinder(
    options: &SessionOptions,
    setup: &ProjectSandbox,
    observer: &SnapshotTaker,
    session: &ConversationId,
) -> Option<Rewinder> {
    let state = setup.directories.state.clone();
    options.keeps_files.then(|| Rewinder::new(observer.clone(), state, session.clone()))
}
