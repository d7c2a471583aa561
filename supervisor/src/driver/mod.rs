//! Carries out what the core decides: the only place where the pure agent meets streams, workers, timers and the log.
//!
//! One task owns all state. Effects are executed in order, so that what the core logs before a dispatch is in the log
//! before the worker hears of it. Nothing here waits for a person.

mod approvals;
mod changes;
mod digest;
mod effects;
mod finish;
mod happenings;
mod live;
mod modes;
mod observer;
mod one_shot;
mod one_shots;
mod passing;
mod preparations;
mod prepare;
mod start;
mod timers;
mod tripwire;
mod workers;

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use ipc::cost::Usd;
use ipc::event::{EventKind, Observer as Witness, TokenUsage};
use ipc::frontend::{Op, UiEvent, UiEventKind, UserAction, UserActionKind};
use ipc::id::{AgentId, CallId, ConversationId};
use ipc::rights::RightsChange;
use tokio::sync::{mpsc, watch};
use tracing::{Instrument, info_span};

use crate::core::{Agent, ContextItem, EndReason, Input, RequestId, RunEnd};
use crate::monitor::StartError;
use crate::policy::write_root;
use crate::prompt::{Surroundings, environment_context};
use crate::provider::{EventStream, ModelProvider};
use crate::session::{LogError, SessionLog};

use approvals::Approvals;
pub use changes::ChangeTracker;
pub(crate) use digest::ruleset_digest;
use effects::Held;
pub use live::Live;
pub use modes::ModePlaces;
pub use observer::{Observer, ObserverError};
pub use one_shot::{Journal, OneShot, OneShotError, Unlogged};
use one_shots::OneShots;
use passing::Passing;
use preparations::Preparations;
pub use prepare::{PrepareError, prepare};
use timers::Timers;
pub use tripwire::Guard;
pub use workers::SessionWorker;

/// What a session is driven with.
pub struct Driver {
    /// The session.
    pub conversation: ConversationId,
    /// The agent.
    pub agent: Agent,
    /// The model.
    pub provider: Arc<dyn ModelProvider>,
    /// Its worker.
    pub worker: SessionWorker,
    /// The log.
    pub log: SessionLog,
    /// Where events go.
    pub ui: mpsc::UnboundedSender<UiEvent>,
    /// Where the user's actions come from.
    pub actions: Option<mpsc::Receiver<UserAction>>,
    /// The change set, where it is wanted.
    pub changes: Option<ChangeTracker>,
    /// What the host runs later, where an agent may write in the project.
    pub tripwire: Option<Guard>,
    /// Where it is told which worker serves.
    pub live: watch::Sender<Option<Live>>,
    /// What is ready for a change of mode or rights.
    pub modes: ModePlaces,
    /// When the run is over, whatever happens.
    pub deadline: Option<Instant>,
    /// How many turns the user takes.
    pub turns: Turns,
    /// What is running.
    pub running: Running,
}

/// How many turns a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// One: the session ends with it.
    One,
    /// As many as the user likes: the session ends when the user ends it.
    Many,
}

/// What is running at this moment.
#[derive(Default)]
pub struct Running {
    stream: Option<(RequestId, EventStream)>,
    timers: Timers,
    calls: HashMap<CallId, Instant>,
    /// Calls that may write, and what came after them, until the base is taken and the tripwire set.
    held: VecDeque<(CallId, Held)>,
    /// Effects that are worked out.
    preparations: Preparations,
    /// Requests that are waited for.
    approvals: Approvals,
    /// Effects that are carried out.
    one_shots: OneShots,
    /// What passes by on its way to a front end.
    passing: Passing,
    next_own_call: u64,
    /// What the latest worker's ruleset does not enforce.
    missing: Vec<String>,
    /// When the present turn began, of several.
    turn_began: Option<Instant>,
    /// What the turns before the present one came to.
    totals: Totals,
    end: Option<RunEnd>,
}

/// What turns came to.
#[derive(Debug, Default)]
struct Totals {
    steps: u32,
    usage: TokenUsage,
    cost: Usd,
    /// The model's last words.
    text: String,
}

/// Why a session could not go on.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The first worker did not start.
    #[error(transparent)]
    NoWorker(#[from] StartError),
    /// The log cannot be written.
    #[error("cannot write the session log: {0}")]
    Log(#[from] LogError),
    /// The project's state cannot be taken, so that there would be no patch.
    #[error(transparent)]
    Changes(#[from] ObserverError),
    /// Files that the host runs later cannot be protected.
    #[error("cannot protect files that programs outside run later: {0}")]
    Tripwire(#[source] io::Error),
    /// A fault of ours.
    #[error("bailiwick has a bug and cannot go on: {0}")]
    Panicked(String),
    /// The core ended without saying how.
    #[error("the agent stopped without a result")]
    NoEnd,
}

impl Driver {
    /// Runs the session to its end; the last event logged is the result, whatever ended it. Only a log that cannot be
    /// written leaves none.
    pub async fn run(self, began: Instant, around: Surroundings) -> Result<RunEnd, DriverError> {
        let session = info_span!("session", id = %self.conversation);
        let agent = info_span!(parent: &session, "agent", id = %AgentId::root());
        Box::pin(self.run_to_its_end(began, around)).instrument(agent).await
    }

    async fn run_to_its_end(mut self, began: Instant, around: Surroundings) -> Result<RunEnd, DriverError> {
        self.running.passing = Passing::new(&self.log);
        if let Err(error) = caught(self.serve(&around)).await {
            self.break_off(error)?;
        }
        let end = self.running.end.take().ok_or(DriverError::NoEnd)?;
        match caught(Box::pin(self.finish(end.clone(), began))).await {
            Err(error @ DriverError::Panicked(_)) => {
                let end = RunEnd { reason: EndReason::Internal, message: Some(error.to_string()), ..end };
                self.log_result(end, began)
            }
            finished => finished,
        }
    }

    /// Serves the agent until its run has an end.
    async fn serve(&mut self, around: &Surroundings) -> Result<(), DriverError> {
        self.start_worker().await?;
        // What the agent is told of its place is what its worker sees.
        let text = environment_context(around, self.agent.standing());
        let mut items = vec![ContextItem { source: "environment".to_owned(), text }];
        items.extend(self.instructions().await?);
        self.feed(Input::Context(items))?;
        while self.running.end.is_none() {
            if let Some(input) = self.next_input().await? {
                self.feed(input)?;
            }
        }
        Ok(())
    }

    /// Ends the run for a reason outside the conversation.
    fn break_off(&mut self, error: DriverError) -> Result<(), DriverError> {
        let reason = match error {
            DriverError::NoWorker(_) => EndReason::NoSandbox,
            DriverError::Changes(_) => {
                // Without a base there is nothing to compare with.
                self.changes = None;
                EndReason::Internal
            }
            DriverError::Tripwire(_) => {
                self.tripwire = None;
                EndReason::NoSandbox
            }
            DriverError::Panicked(_) => EndReason::Internal,
            error @ (DriverError::Log(_) | DriverError::NoEnd) => return Err(error),
        };
        let message = error.to_string();
        let told = || self.feed(Input::Broken { reason, message: message.clone() });
        // The agent may be what panicked, and may do so again.
        let told = panic::catch_unwind(AssertUnwindSafe(told)).unwrap_or_else(|panic| Err(panicked(&*panic)));
        if let (DriverError::Panicked(_), None) = (error, &self.running.end) {
            self.running.end = Some(RunEnd::without_account(reason, message));
            return Ok(());
        }
        told
    }

    /// Waits for whatever happens first.
    async fn next_input(&mut self) -> Result<Option<Input>, DriverError> {
        let Running { stream, timers, preparations, approvals, one_shots, .. } = &mut self.running;
        // The next worker is not there before what ran beside the old one is gone.
        let worker_may_change = !(self.worker.is_being_replaced() && one_shots.any_ends());
        tokio::select! {
            // What the user does comes first, and a stream never starves the rest: it is polled last.
            biased;
            action = next_action(&mut self.actions) => self.op(action),
            () = sleep_until(self.deadline) => {
                self.deadline = None;
                Ok(Some(Input::TimeUp))
            }
            timer = timers.next() => Ok(Some(Input::Timer(timer))),
            base = base_taken(&mut self.changes) => {
                base.or_else(|error| self.give_up_list(error))?;
                self.release()?;
                Ok(None)
            }
            set = tripwire_set(&mut self.tripwire) => {
                set?;
                self.release()?;
                Ok(None)
            }
            over = approvals.next() => Ok(Some(over)),
            told = one_shots.next() => self.on_told(told),
            prepared = preparations.next() => Ok(Some(prepared)),
            happening = self.worker.next(), if worker_may_change => self.on_happening(happening),
            event = next_event(stream) => Ok(event),
        }
    }

    /// Every action becomes one input of the core, but one that names no path; a front end that is gone ends the session.
    fn op(&mut self, action: Option<UserAction>) -> Result<Option<Input>, DriverError> {
        let Some(action) = action else {
            self.actions = None;
            return Ok(Some(Input::FrontEndGone));
        };
        if let UserActionKind::Answer { id, answer } = action.kind {
            self.answer(id, answer, action.conversation_id == self.conversation)?;
            return Ok(None);
        }
        if action.conversation_id != self.conversation {
            tracing::warn!(other = %action.conversation_id, "an action for another session is ignored");
            return Ok(None);
        }
        match resolved(self.worker.confinement().project.as_path(), action.kind) {
            Ok(op) => {
                if matches!(op, Op::UserTurn { .. } | Op::Compact) && !self.agent.is_busy() {
                    self.running.turn_began = Some(Instant::now());
                }
                Ok(Some(Input::Op(op)))
            }
            Err(why) => {
                self.notice("rights_refused", &format!("the rights were not changed: {why}"))?;
                Ok(None)
            }
        }
    }

    /// Gives the core an input and carries out its answer.
    fn feed(&mut self, input: Input) -> Result<(), DriverError> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.agent.handle(input) {
                self.execute(effect, &mut inputs)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, kind: EventKind, observed_by: Witness) -> Result<(), DriverError> {
        let event = self.log.append(&AgentId::root(), observed_by, kind)?;
        self.show(UiEventKind::Logged(Box::new(event)));
        Ok(())
    }

    fn notice(&mut self, code: &str, message: &str) -> Result<(), DriverError> {
        let kind = EventKind::Notice { code: code.to_owned(), message: message.to_owned() };
        self.record(kind, Witness::Supervisor)
    }

    fn show(&mut self, kind: UiEventKind) {
        for kind in self.running.passing.take(kind) {
            // A front end that is gone misses nothing: the log has it all.
            let _ = self.ui.send(UiEvent { conversation_id: self.conversation.clone(), kind });
        }
    }
}

/// The input that an action is, with the path that the user named resolved, once: the core knows nothing of file systems.
fn resolved(project: &Path, kind: UserActionKind) -> Result<Op, String> {
    Ok(match kind {
        UserActionKind::Prompt { text, images } => Op::UserTurn { text, images },
        UserActionKind::SetRights { change: RightsChange::AddWrite { path } } => {
            let root = write_root(project, path.as_path()).map_err(|why| format!("{path} {why}"))?;
            Op::SetRights { change: RightsChange::AddWrite { path: root } }
        }
        // What was removed meanwhile is still named by where it was.
        UserActionKind::SetRights { change: RightsChange::RemoveWrite { path } } => {
            let place = project.join(path.as_path());
            let path = place.canonicalize().unwrap_or(place).into();
            Op::SetRights { change: RightsChange::RemoveWrite { path } }
        }
        UserActionKind::SetRights { change } => Op::SetRights { change },
        // Answers have a way of their own.
        UserActionKind::Answer { id, .. } => {
            return Err(format!("an answer to request {id} changes no right"));
        }
        UserActionKind::SetMode { mode } => Op::SetMode { mode },
        UserActionKind::RevokeGrant { id } => Op::RevokeGrant { id },
        UserActionKind::Compact => Op::Compact,
        UserActionKind::Interrupt => Op::Interrupt,
        UserActionKind::Quit => Op::Shutdown,
        UserActionKind::Terminate => Op::Terminate,
        UserActionKind::HangUp => Op::HangUp,
    })
}

/// Carries something out; a panic of ours is an error like others, so that the session has a result.
async fn caught<T>(work: impl Future<Output = Result<T, DriverError>>) -> Result<T, DriverError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn Any + Send)) -> DriverError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    DriverError::Panicked(text.unwrap_or("it did not say why").to_owned())
}

async fn next_action(actions: &mut Option<mpsc::Receiver<UserAction>>) -> Option<UserAction> {
    match actions {
        Some(actions) => actions.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_event(stream: &mut Option<(RequestId, EventStream)>) -> Option<Input> {
    let Some((request, events)) = stream else { return std::future::pending().await };
    let request = *request;
    match events.next().await {
        Some(Ok(event)) => Some(Input::Stream { request, event }),
        Some(Err(error)) => {
            *stream = None;
            Some(Input::StreamFailed { request, error })
        }
        None => {
            *stream = None;
            None
        }
    }
}

async fn base_taken(changes: &mut Option<ChangeTracker>) -> Result<(), ObserverError> {
    match changes {
        Some(tracker) if tracker.base_is_open() => tracker.base().await,
        _ => std::future::pending().await,
    }
}

async fn tripwire_set(tripwire: &mut Option<Guard>) -> Result<(), DriverError> {
    match tripwire {
        Some(guard) if guard.is_setting() => guard.set().await,
        _ => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
