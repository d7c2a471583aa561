//! Carries out what the core decides: the only place where the pure agent meets streams, workers, timers and the log.
//!
//! One task owns all state. Effects are executed in order, so that what the core logs before a dispatch is in the log
//! before the worker hears of it. Nothing here waits for a person.

mod changes;
mod observer;
mod timers;
mod workers;

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use ipc::event::{EventKind, Observer as Witness, RunResult, WorkerStarted};
use ipc::frontend::{Op, UiEvent, UiEventKind, UserAction};
use ipc::id::{AgentId, CallId, ConversationId};
use ipc::message::{Chunk, Outcome, Work};
use ipc::tool::{ReadFile, ToolCall, ToolOutput};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tracing::{Instrument, info_span};

use crate::core::{Agent, ContextItem, Effect, EndReason, Input, RequestId, RunEnd};
use crate::monitor::{StartError, WorkerEvent};
use crate::provider::{EventStream, ModelProvider};
use crate::session::{LogError, SessionLog};

pub use changes::ChangeTracker;
pub use observer::{Observer, ObserverError};
use timers::Timers;
pub use workers::SessionWorker;
use workers::{Cancelled, Happening};

/// The project's own instructions, read by the worker like any file.
const INSTRUCTIONS: &str = "AGENTS.md";

/// The longest that the reading of [`INSTRUCTIONS`] may hold a run: a worker that was taken over need not answer.
const INSTRUCTIONS_TIME: Duration = Duration::from_secs(10);

/// The most lines of [`INSTRUCTIONS`] that the model is given.
const INSTRUCTION_LINES: u64 = 400;

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
    /// When the run is over, whatever happens.
    pub deadline: Option<Instant>,
    /// What is running.
    pub running: Running,
}

/// What is running at this moment.
#[derive(Default)]
pub struct Running {
    stream: Option<(RequestId, EventStream)>,
    timers: Timers,
    calls: HashMap<CallId, Instant>,
    /// Calls that may write, and what came after them, until the base is taken.
    held: VecDeque<(CallId, ToolCall)>,
    next_own_call: u64,
    end: Option<RunEnd>,
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
    /// The core ended without saying how.
    #[error("the agent stopped without a result")]
    NoEnd,
}

/// Calls of the supervisor itself are numbered from here; the core numbers its own from 1.
const OWN_CALLS: u64 = 1 << 63;

impl Driver {
    /// Runs one user turn to its end; the last event logged is the result, whatever ended it. Only a log that cannot be
    /// written leaves none.
    pub async fn run(self, began: Instant, context: ContextItem) -> Result<RunEnd, DriverError> {
        let session = info_span!("session", id = %self.conversation);
        let agent = info_span!(parent: &session, "agent", id = %AgentId::root());
        self.run_to_its_end(began, context).instrument(agent).await
    }

    async fn run_to_its_end(mut self, began: Instant, context: ContextItem) -> Result<RunEnd, DriverError> {
        if let Err(error) = self.serve(context).await {
            self.break_off(error)?;
        }
        match self.running.end.take() {
            Some(end) => self.finish(end, began).await,
            None => Err(DriverError::NoEnd),
        }
    }

    /// Serves the agent until its run has an end.
    async fn serve(&mut self, context: ContextItem) -> Result<(), DriverError> {
        self.start_worker().await?;
        let mut items = vec![context];
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
            error @ (DriverError::Log(_) | DriverError::NoEnd) => return Err(error),
        };
        self.feed(Input::Broken { reason, message: error.to_string() })
    }

    async fn start_worker(&mut self) -> Result<(), DriverError> {
        self.worker.start();
        match self.worker.next().await {
            Happening::NotStarted(error, _) => Err(error.into()),
            Happening::Started | Happening::Event(_) => self.log_worker(),
        }
    }

    fn log_worker(&mut self) -> Result<(), DriverError> {
        let Some(worker) = self.worker.serving() else { return Ok(()) };
        let confinement = self.worker.confinement();
        let rights = &confinement.rights;
        let digest = ipc::codec::encode(rights).map(|bytes| hex(&Sha256::digest(bytes))).unwrap_or_default();
        let started = WorkerStarted {
            generation: worker.generation,
            pid: worker.pid,
            tier: worker.ruleset.tier.to_string(),
            landlock_abi: worker.ruleset.landlock_abi,
            rules: worker.ruleset.rules,
            rights: rights.line(&confinement.project, confinement.temp.as_ref()).to_string(),
            rights_digest: digest,
            missing: worker.ruleset.missing.clone(),
            startup_us: u64::try_from(worker.startup.as_micros()).unwrap_or(u64::MAX),
        };
        self.record(EventKind::WorkerStarted(started), Witness::Supervisor)
    }

    /// The project's instructions, if they can be had in time; a worker that does not answer is replaced.
    async fn instructions(&mut self) -> Result<Option<ContextItem>, DriverError> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = left.map_or(INSTRUCTIONS_TIME, |left| left.min(INSTRUCTIONS_TIME));
        if let Ok(read) = tokio::time::timeout(time, self.read_instructions()).await {
            return read;
        }
        self.notice("no_instructions", &format!("{INSTRUCTIONS} was not read: the worker did not answer"))?;
        if let Some((generation, reason, _)) = self.worker.end().await {
            self.record(EventKind::WorkerEnded { generation, reason }, Witness::Supervisor)?;
        }
        Ok(None)
    }

    /// Reads them by a call of our own: the supervisor opens nothing in a project.
    async fn read_instructions(&mut self) -> Result<Option<ContextItem>, DriverError> {
        let call = self.own_call();
        let read = ReadFile { path: INSTRUCTIONS.into(), offset: None, limit: Some(INSTRUCTION_LINES) };
        self.worker.call(call, Work::Run(ToolCall::ReadFile(read)));
        loop {
            match self.worker.next().await {
                Happening::Event(WorkerEvent::Outcome { call: answered, outcome }) if answered == call => {
                    return Ok(instructions_in(outcome));
                }
                Happening::Event(event @ WorkerEvent::Ended { .. }) => {
                    self.on_worker(event)?;
                    return Ok(None);
                }
                Happening::NotStarted(error, _) => return Err(error.into()),
                Happening::Started | Happening::Event(_) => {}
            }
        }
    }

    fn own_call(&mut self) -> CallId {
        self.running.next_own_call += 1;
        CallId(OWN_CALLS + self.running.next_own_call)
    }

    /// Waits for whatever happens first.
    async fn next_input(&mut self) -> Result<Option<Input>, DriverError> {
        let Running { stream, timers, .. } = &mut self.running;
        tokio::select! {
            // What the user does comes first, and a stream never starves the rest: it is polled last.
            biased;
            action = next_action(&mut self.actions) => Ok(self.op(action)),
            () = sleep_until(self.deadline) => {
                self.deadline = None;
                Ok(Some(Input::TimeUp))
            }
            timer = timers.next() => Ok(Some(Input::Timer(timer))),
            base = base_taken(&mut self.changes) => {
                base?;
                self.release()?;
                Ok(None)
            }
            happening = self.worker.next() => self.on_happening(happening),
            event = next_event(stream) => Ok(event),
        }
    }

    /// Every action becomes exactly one input of the core; a front end that is gone ends the session.
    fn op(&mut self, action: Option<UserAction>) -> Option<Input> {
        let Some(action) = action else {
            self.actions = None;
            return Some(Input::Op(Op::Shutdown));
        };
        if action.conversation_id != self.conversation {
            tracing::warn!(other = %action.conversation_id, "an action for another session is ignored");
            return None;
        }
        Some(Input::Op(Op::from(action.kind)))
    }

    fn on_happening(&mut self, happening: Happening) -> Result<Option<Input>, DriverError> {
        match happening {
            Happening::Started => {
                self.log_worker()?;
                Ok(None)
            }
            Happening::NotStarted(error, calls) => {
                let reason = format!("no worker could be started: {error}");
                self.notice("no_worker", &reason)?;
                self.lose(calls, &reason)?;
                Ok(None)
            }
            Happening::Event(event) => self.on_worker(event),
        }
    }

    fn on_worker(&mut self, event: WorkerEvent) -> Result<Option<Input>, DriverError> {
        match event {
            WorkerEvent::Output { call, chunk: Chunk::Text(bytes) } => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.show(UiEventKind::OutputDelta { call, text });
                Ok(None)
            }
            WorkerEvent::Outcome { call, outcome } => {
                let _span = info_span!("call", id = %call).entered();
                tracing::debug!("answered");
                let began = self.running.calls.remove(&call);
                let duration_ms = began.map_or(0, |began| millis(began.elapsed()));
                Ok(Some(Input::CallFinished { call, outcome, duration_ms }))
            }
            WorkerEvent::Ended { reason, violation, open } => {
                let generation = self.worker.generation();
                if let Some(violation) = violation {
                    let kind = EventKind::ProtocolViolation { generation, violation };
                    self.record(kind, Witness::Supervisor)?;
                }
                let kind = EventKind::WorkerEnded { generation, reason: reason.clone() };
                self.record(kind, Witness::Supervisor)?;
                self.lose(open, &format!("its worker {reason}"))?;
                Ok(None)
            }
            // Neither comes for a call that `Run` was asked for: the table of phases saw to it.
            WorkerEvent::Output { .. } | WorkerEvent::Prepared { .. } => Ok(None),
        }
    }

    fn lose(&mut self, calls: Vec<CallId>, reason: &str) -> Result<(), DriverError> {
        for call in calls {
            self.running.calls.remove(&call);
            self.feed(Input::CallLost { call, reason: reason.to_owned() })?;
        }
        Ok(())
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

    fn execute(&mut self, effect: Effect, inputs: &mut VecDeque<Input>) -> Result<(), DriverError> {
        match effect {
            Effect::StartStream { request, model } => {
                self.running.stream = Some((request, self.provider.stream(model)));
            }
            Effect::CancelStream(request) => {
                if self.running.stream.as_ref().is_some_and(|(running, _)| *running == request) {
                    self.running.stream = None;
                }
            }
            Effect::Dispatch { call, tool } => self.dispatch(call, tool),
            Effect::CancelCall(call) => self.cancel(call, inputs),
            Effect::StartTimer { id, after } => self.running.timers.start(id, after),
            Effect::Log { kind, observed_by } => self.record(kind, observed_by)?,
            Effect::Show(kind) => self.show(kind),
            Effect::Finish(end) => self.running.end = Some(end),
        }
        Ok(())
    }

    /// Sends a call to the worker; what may write waits until the base is taken, and so does what follows it.
    fn dispatch(&mut self, call: CallId, tool: ToolCall) {
        let base_is_open = self.changes.as_ref().is_some_and(ChangeTracker::base_is_open);
        if base_is_open && (tool.may_write() || !self.running.held.is_empty()) {
            self.running.held.push_back((call, tool));
        } else {
            self.send(call, tool);
        }
    }

    fn send(&mut self, call: CallId, tool: ToolCall) {
        let _span = info_span!("call", id = %call, generation = %self.worker.generation()).entered();
        tracing::debug!(tool = tool.name(), "dispatched");
        self.running.calls.insert(call, Instant::now());
        self.worker.call(call, Work::Run(tool));
    }

    fn release(&mut self) -> Result<(), DriverError> {
        for note in self.changes.as_mut().map(ChangeTracker::take_notes).unwrap_or_default() {
            self.notice("change_set", &note)?;
        }
        while let Some((call, tool)) = self.running.held.pop_front() {
            self.send(call, tool);
        }
        Ok(())
    }

    fn cancel(&mut self, call: CallId, inputs: &mut VecDeque<Input>) {
        let held = self.running.held.len();
        self.running.held.retain(|(waiting, _)| *waiting != call);
        let unsent = self.running.held.len() < held || self.worker.cancel(call) == Cancelled::BeforeItWasSent;
        if unsent {
            inputs.push_back(Input::CallFinished { call, outcome: Outcome::Cancelled, duration_ms: 0 });
        }
    }

    /// Ends the worker, takes the change set, and logs the result.
    async fn finish(mut self, mut end: RunEnd, began: Instant) -> Result<RunEnd, DriverError> {
        self.running.stream = None;
        if let Some((generation, _, _)) = self.worker.end().await {
            let reason = "the run is over".to_owned();
            self.record(EventKind::WorkerEnded { generation, reason }, Witness::Supervisor)?;
        }
        let changes = self.changes.take();
        if let Some(tracker) = changes
            && let Err(error) = self.take_changes(tracker).await?
            && end.reason == EndReason::Done
        {
            // The patch was asked for and is missing: no script may take that for success.
            end.reason = EndReason::Internal;
            end.message = Some(error);
        }
        let result = RunResult {
            exit_code: end.reason.exit_code(),
            reason: end.reason.as_str().to_owned(),
            message: end.message.clone(),
            text: end.text.clone(),
            steps: end.steps,
            usage: end.usage,
            duration_ms: millis(began.elapsed()),
        };
        self.record(EventKind::Result(result), Witness::Supervisor)?;
        Ok(end)
    }

    /// Logs the change set; the inner error says why there is no patch.
    async fn take_changes(&mut self, tracker: ChangeTracker) -> Result<Result<(), String>, DriverError> {
        match tracker.finish().await {
            Ok(taken) => {
                for note in taken.notes {
                    self.notice("change_set", &note)?;
                }
                let kind = EventKind::ChangeSet { files: taken.files, patch: Some(taken.patch) };
                self.record(kind, Witness::Supervisor)?;
                Ok(Ok(()))
            }
            Err(error) => {
                let message = format!("no patch was written: {error}");
                self.notice("change_set", &message)?;
                Ok(Err(message))
            }
        }
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

    fn show(&self, kind: UiEventKind) {
        // A front end that is gone misses nothing: the log has it all.
        let _ = self.ui.send(UiEvent { conversation_id: self.conversation.clone(), kind });
    }
}

fn instructions_in(outcome: Outcome) -> Option<ContextItem> {
    match outcome {
        Outcome::Done(ToolOutput::File(file)) if !file.text.trim().is_empty() => {
            Some(ContextItem { source: INSTRUCTIONS.to_owned(), text: file.text })
        }
        _ => None,
    }
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

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A String takes every write.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
