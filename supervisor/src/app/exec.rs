//! `bailiwick exec`: one task to its end, without a terminal.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipc::event::{EventKind, Observer as Witness, SessionStarted};
use ipc::frontend::{UserAction, UserActionKind};
use ipc::id::{AgentId, ConversationId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::args::ExecArgs;
use super::exit::Exit;
use super::output::Printer;
use super::setup::Setup;
use crate::changes::PatchFile;
use crate::core::{Agent, AgentConfig, Backoff, RunLimits};
use crate::directories::Directories;
use crate::driver::{ChangeTracker, Driver, Guard, Observer, Running, SessionWorker};
use crate::gate::{Activity, Standing};
use crate::monitor::PrivateTemp;
use crate::prompt;
use crate::provider::anthropic::{self, Anthropic};
use crate::provider::{ModelProvider, ProviderError, RetryPolicy};
use crate::secrets::{TakenKeys, find_key};
use crate::session::SessionLog;
use crate::tools::Registry;

/// The most tokens of one reply (WIRE R9: always sent, and big, with streaming).
const REPLY_TOKENS: u32 = 32_000;

/// The one activity there is so far.
const ACTIVITY: Activity = Activity::Execute;

/// What a run has besides its arguments.
pub(super) struct Place {
    /// Our own directories.
    pub directories: Directories,
    /// The keys that were in the environment.
    pub keys: TakenKeys,
}

/// What ended a run before it began, and how to exit.
struct Refusal(Exit, String);

impl Refusal {
    fn usage(error: impl ToString) -> Self {
        Self(Exit::Usage, error.to_string())
    }

    fn internal(error: impl ToString) -> Self {
        Self(Exit::Internal, error.to_string())
    }
}

/// Runs the task.
pub(super) async fn run(args: ExecArgs, place: Place) -> Exit {
    let began = Instant::now();
    match prepare(&args, place, began) {
        Ok(prepared) => Box::pin(prepared.run(began)).await,
        Err(Refusal(exit, message)) => {
            super::complain(&message);
            exit
        }
    }
}

struct Prepared {
    driver: Driver,
    printer: Printer,
    surroundings: prompt::Surroundings,
    actions: mpsc::Sender<UserAction>,
    prompt: String,
    // Removed when the run is over, and not before.
    _temps: [PrivateTemp; 2],
}

fn prepare(args: &ExecArgs, place: Place, began: Instant) -> Result<Prepared, Refusal> {
    let prompt = prompt_text(args.prompt.as_deref())?;
    let setup = Setup::new(place.directories, &args.directory, args.mode.into(), &args.confinement);
    let setup = setup.map_err(|error| Refusal(error.exit(), error.to_string()))?;
    let provider = provider(args, place.keys, &setup)?;
    // Opened before the first worker exists, so that no agent can choose what it is.
    let patch = args.patch.as_deref().map(PatchFile::open).transpose().map_err(Refusal::usage)?;
    let standing = setup.standing();
    let conversation = ConversationId(uuid::Uuid::now_v7().to_string());
    let mut log = SessionLog::create(&setup.directories.state, &conversation).map_err(Refusal::internal)?;
    let started = session_started(args, &standing, provider.name());
    let first = log
        .append(&AgentId::root(), Witness::Supervisor, EventKind::SessionStarted(started))
        .map_err(Refusal::internal)?;
    let (ui, events) = mpsc::unbounded_channel();
    let _ = ui.send(ipc::frontend::UiEvent {
        conversation_id: conversation.clone(),
        kind: ipc::frontend::UiEventKind::Logged(Box::new(first)),
    });
    let (actions, inbox) = mpsc::channel(16);
    let observer_temp = setup.another_temp().map_err(Refusal::internal)?;
    let changes = patch.map(|patch| ChangeTracker::start(observer(&setup, &observer_temp), patch));
    let tripwire = setup.watch.clone().map(Guard::start).transpose().map_err(Refusal::internal)?;
    let worker = SessionWorker::new(
        setup.spawner.clone(),
        setup.programs.clone(),
        AgentId::root(),
        setup.confinement(standing.rights.clone()),
    );
    let agent = Agent::new(AgentConfig {
        model: args.model.clone(),
        system: prompt::SYSTEM.into(),
        tools: Arc::new(Registry::builtin()),
        max_tokens: REPLY_TOKENS,
        limits: RunLimits { max_steps: args.max_steps, max_tokens: args.max_tokens },
        backoff: Box::new(Jittered(RetryPolicy::default())),
        standing,
        id: AgentId::root(),
        activity: ACTIVITY,
    });
    let driver = Driver {
        conversation,
        agent,
        provider,
        worker,
        log,
        ui,
        actions: Some(inbox),
        changes,
        tripwire,
        deadline: args.timeout.map(|seconds| began + Duration::from_secs(seconds)),
        running: Running::default(),
    };
    let printer = Printer::start(args.output, events).map_err(Refusal::internal)?;
    let surroundings = surroundings();
    Ok(Prepared { driver, printer, surroundings, actions, prompt, _temps: [setup.temp, observer_temp] })
}

impl Prepared {
    async fn run(self, began: Instant) -> Exit {
        let conversation = self.driver.conversation.clone();
        let act = |kind| UserAction { conversation_id: conversation.clone(), kind };
        let _ = self.actions.send(act(UserActionKind::Prompt { text: self.prompt })).await;
        tokio::spawn(signals(self.actions, conversation.clone()));
        let ended = Box::pin(self.driver.run(began, self.surroundings)).await;
        self.printer.finish().await;
        match ended {
            Ok(end) => Exit::from(end.reason),
            Err(error) => {
                super::complain(&error);
                Exit::Internal
            }
        }
    }
}

/// The provider's policy, with jitter: a fleet that failed together does not come back together.
struct Jittered(RetryPolicy);

impl Backoff for Jittered {
    fn delay(&self, attempt: u32, error: &ProviderError) -> Option<Duration> {
        // A byte of a fresh random identifier is as good as any generator here.
        let [random, ..] = uuid::Uuid::new_v4().into_bytes();
        self.0.delay(attempt, error, f64::from(random) / f64::from(u8::MAX))
    }
}

/// Turns signals into what the user would do: SIGINT interrupts, SIGTERM and SIGHUP end the session.
async fn signals(actions: mpsc::Sender<UserAction>, conversation_id: ConversationId) {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return;
    };
    loop {
        let kind = tokio::select! {
            _ = interrupt.recv() => UserActionKind::Interrupt,
            _ = terminate.recv() => UserActionKind::Quit,
            _ = hangup.recv() => UserActionKind::Quit,
        };
        let action = UserAction { conversation_id: conversation_id.clone(), kind };
        if actions.send(action).await.is_err() {
            return;
        }
    }
}

fn surroundings() -> prompt::Surroundings {
    let name = nix::sys::utsname::uname();
    let word = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let platform = name.map_or_else(
        |_| "Linux".to_owned(),
        |name| format!("{} {} {}", word(name.sysname()), word(name.release()), word(name.machine())),
    );
    let date = jiff::Zoned::now().date().to_string();
    prompt::Surroundings { platform, date, activity: ACTIVITY }
}

/// A prompt that was given never waits for standard input.
fn prompt_text(argument: Option<&str>) -> Result<String, Refusal> {
    let text = match argument {
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().take(4 << 20).read_to_string(&mut text);
            read.map_err(|error| {
                Refusal::usage(format!("cannot read the task from standard input: {error}"))
            })?;
            text
        }
        Some(text) => text.to_owned(),
        None => String::new(),
    };
    if text.trim().is_empty() {
        return Err(Refusal::usage(
            "no task given\n  next: bailiwick exec \"fix the failing test\", or - to read it",
        ));
    }
    Ok(text)
}

fn provider(args: &ExecArgs, keys: TakenKeys, setup: &Setup) -> Result<Arc<dyn ModelProvider>, Refusal> {
    let file = setup.directories.key_file("anthropic");
    let key = find_key(keys.anthropic, "ANTHROPIC_API_KEY", &file).map_err(Refusal::usage)?;
    let from_environment = || std::env::var("ANTHROPIC_BASE_URL").ok().filter(|url| !url.is_empty());
    let base_url = args.base_url.clone().or_else(from_environment);
    let mut config = anthropic::Config::new(Some(key.secret));
    config.key_origin = key.origin;
    if let Some(base_url) = base_url {
        config.base_url = base_url;
    }
    let provider = Anthropic::new(config).map_err(Refusal::usage)?;
    for notice in provider.notices() {
        super::say(notice);
    }
    Ok(Arc::new(provider))
}

fn observer(setup: &Setup, temp: &PrivateTemp) -> Observer {
    let mut confinement = setup.confinement(setup.policy.observer(temp.path().into()));
    confinement.temp = Some(temp.path().into());
    Observer {
        spawner: setup.spawner.clone(),
        programs: setup.programs.clone(),
        agent: AgentId::root(),
        confinement,
        store: setup.directories.state.clone(),
    }
}

fn session_started(args: &ExecArgs, standing: &Standing, provider: &str) -> SessionStarted {
    SessionStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: standing.project.clone(),
        activity: ACTIVITY.as_str().to_owned(),
        mode: standing.mode.as_str().to_owned(),
        model: args.model.clone(),
        provider: provider.to_owned(),
        rights: standing.line(),
    }
}
