//! One generation of a worker: started, verified, served, and ended to its last descendant.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ipc::confinement::{BrokerReport, Confinement, NO_FULL_TIER, RulesetReport, Tier, rights_in_tier};
use ipc::effect::{Effect, EffectError, Part};
use ipc::frame::FrameError;
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{Chunk, Hello, Outcome, ToSupervisor, ToWorker, Work};
use ipc::phase::{Expected, OpenCalls, Phase, Violation};
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, async_pair};
use ipc::refusal::Refusal;
use ipc::tool::{CommandExit, CommandResult, ToolOutput};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;
use tracing::{Instrument, info_span};

use super::process::BrokerProcess;
use super::records::{Records, Whose};
use super::refusals::Refusals;
use super::spawn::{Launch, Launched, Origin, SpawnError, Spawner, Stdio};
use super::status::StatusPipe;
use super::verify::{VerifyError, verify_confined};

/// The variable that sets the level of a worker's own diagnostics.
const LOG_LEVEL: &str = "BAILIWICK_LOG";

/// How long a worker may take from its spawn to `Ready`.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How many messages of a worker may wait for the core: what bounds our memory is the pipe, not the worker's goodwill.
const INBOX: usize = 8;

/// The most of a worker's diagnostics that are kept per line.
const DIAGNOSTIC_LINE: u64 = 4 << 10;

/// A worker, and what comes from it.
pub type Started = (Worker, mpsc::Receiver<WorkerEvent>);

type Incoming = AsyncIncoming<pipe::Receiver, ToSupervisor>;
type Outgoing = AsyncOutgoing<pipe::Sender, ToWorker>;

/// What a worker is started as.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// The agent that it serves.
    pub agent: AgentId,
    /// Which incarnation it is.
    pub generation: Generation,
    /// Its confinement.
    pub confinement: Confinement,
    /// The worker program.
    pub program: PathBuf,
}

/// What comes from a worker.
#[derive(Debug)]
pub enum WorkerEvent {
    /// An open call brought something.
    Output {
        /// The call.
        call: CallId,
        /// What.
        chunk: Chunk,
    },
    /// An open call brought a part of its effect.
    Prepared {
        /// The call.
        call: CallId,
        /// The part.
        part: Part,
    },
    /// An open call ended.
    Outcome {
        /// The call.
        call: CallId,
        /// How.
        outcome: Outcome,
    },
    /// The broker refused this to processes of which no call has or will have a result.
    Refused(Vec<Refusal>),
    /// The worker and everything below it is gone; nothing follows.
    Ended {
        /// Why, in a sentence.
        reason: String,
        /// What it did against the protocol, if that was why.
        violation: Option<String>,
        /// The calls that were open.
        open: Vec<CallId>,
    },
}

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No process came to be.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// sandbox-exec refused at one of its stages.
    #[error("sandbox-exec stopped at stage {stage} ({code}): {detail}")]
    Sandbox {
        /// The stage's exit code.
        code: u8,
        /// Its name.
        stage: String,
        /// What was tried and why it failed.
        detail: String,
    },
    /// It is not confined as it should be.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// It spoke out of turn.
    #[error("worker broke the protocol at its start: {0}")]
    Violation(#[from] Violation),
    /// It sent no proper frame.
    #[error("worker sent a bad frame at its start: {0}")]
    Frame(#[from] FrameError),
    /// It or its broker ended instead of starting.
    #[error("{who} ended before it was ready{}", diagnostics(.stderr))]
    Ended {
        /// `sandbox-exec` or `worker`.
        who: &'static str,
        /// The last line of its diagnostics.
        stderr: String,
    },
    /// The sandbox-exec that waited for it ended, and had reported nothing: it is started anew.
    #[error("the sandbox-exec that waited has ended")]
    SpareEnded,
    /// It is not wanted any more.
    #[error("its start was cancelled")]
    Cancelled,
    /// It took too long.
    #[error("worker was not ready after {} s", START_TIMEOUT.as_secs())]
    Timeout,
    /// A descriptor or a pipe failed.
    #[error("cannot talk to the worker: {0}")]
    Io(#[from] io::Error),
}

/// A worker that is ready and verified.
#[derive(Debug)]
pub struct Worker {
    /// Which incarnation it is.
    pub generation: Generation,
    /// Its process id.
    pub pid: u32,
    /// What is enforced.
    pub ruleset: RulesetReport,
    /// From spawning to `Ready`.
    pub startup: Duration,
    calls: CallSender,
    broker: Arc<BrokerProcess>,
    /// Tells the reader to wait for nothing but the end.
    killed: Arc<Notify>,
}

/// Sends calls to a worker.
#[derive(Clone, Debug)]
pub struct CallSender {
    outbox: mpsc::UnboundedSender<ToWorker>,
    open: Arc<Mutex<Register>>,
}

/// What the admission of a worker's messages is judged by.
#[derive(Debug)]
struct Register {
    phase: Phase,
    calls: OpenCalls,
}

impl Worker {
    /// Spawns, greets and verifies a worker; its events come over the channel, `Ended` last.
    pub async fn start(spawner: &Spawner, spec: WorkerSpec) -> Result<Started, StartError> {
        // A sender that is gone cancels nothing.
        Self::start_unless(spawner, spec, oneshot::channel().1).await
    }

    /// The same, unless it is cancelled before the worker is ready. After an error nothing is left of it.
    pub async fn start_unless(
        spawner: &Spawner,
        mut spec: WorkerSpec,
        cancelled: oneshot::Receiver<()>,
    ) -> Result<Started, StartError> {
        let began = Instant::now();
        let records = Records::subscribe(&[spawner.sandbox_exec(), &spec.program]);
        let records = records.inspect_err(|error| tracing::debug!(%error, "no audit records")).ok();
        spec.confinement.environment.pass.push(LOG_LEVEL.to_owned());
        spec.confinement.recorded = records.is_some();
        let mut start = Start { spawner, spec: &spec, records, began };
        let mut cancelled = pin!(wanted(cancelled));
        let (worker, events) = match start.in_one(Origin::Spare, cancelled.as_mut()).await {
            // Whatever ended it had nothing to do with this start.
            Err(StartError::SpareEnded) => start.in_one(Origin::Fresh, cancelled).await,
            started => started,
        }?;
        let command = vec![spec.program.into_os_string()];
        let RulesetReport { tier, missing, .. } = &worker.ruleset;
        let instead = missing.iter().find(|sentence| sentence.starts_with(NO_FULL_TIER)).cloned();
        spawner.prepare(Confinement { tier: (*tier).into(), ..spec.confinement }, instead, command);
        Ok((worker, events))
    }

    /// Where calls go.
    pub fn calls(&self) -> &CallSender {
        &self.calls
    }

    /// Ends the worker and everything below it, at once and by force if need be. The `Ended` event follows.
    pub fn kill(&self) {
        self.broker.terminate();
        self.killed.notify_one();
    }
}

impl CallSender {
    /// Sends a call. Nothing happens if the worker is gone: its `Ended` event names the call as open.
    pub fn call(&self, call: CallId, work: Work) {
        self.send(Some((call, Expected::from(&work))), ToWorker::Call { call, work });
    }

    /// Sends an effect to be carried out. A worker takes one, and nothing after it.
    pub fn commit(&self, call: CallId, effect: &Effect) -> Result<(), EffectError> {
        let parts = effect.to_parts()?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.open(call, Expected::Commit);
        for part in parts {
            self.send(None, ToWorker::Commit { call, part });
        }
        Ok(())
    }

    /// Cancels a call; its outcome still comes.
    pub fn cancel(&self, call: CallId) {
        self.send(None, ToWorker::Cancel { call });
    }

    /// Asks the worker to finish its calls and exit.
    pub fn drain(&self) {
        let mut register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if register.phase == Phase::Serving {
            register.phase = Phase::Draining;
        }
        drop(register);
        self.send(None, ToWorker::Drain);
    }

    fn send(&self, opens: Option<(CallId, Expected)>, message: ToWorker) {
        if let Some((call, expected)) = opens {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.open(call, expected);
        }
        let _ = self.outbox.send(message);
    }
}

/// The start of a worker.
struct Start<'a> {
    spawner: &'a Spawner,
    spec: &'a WorkerSpec,
    records: Option<Records>,
    began: Instant,
}

impl Start<'_> {
    /// Starts it in what is at best this. After an error nothing is left of it.
    async fn in_one(
        &mut self,
        origin: Origin,
        cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Started, StartError> {
        let WorkerSpec { generation, confinement, program, .. } = self.spec;
        let launch = Launch {
            confinement: confinement.clone(),
            command: vec![program.clone().into_os_string()],
            arguments: vec!["--generation".to_owned(), generation.to_string()],
            stdio: Stdio::Piped,
        };
        let launched = self.spawner.spawn_in(origin, launch).await?;
        let starting = Starting::new(launched, self.spec, &mut self.records)?;
        let broker = Arc::clone(&starting.broker);
        let started = tokio::select! {
            started = timeout(START_TIMEOUT, starting.finish(self.began)) => started.unwrap_or(Err(StartError::Timeout)),
            () = cancelled => Err(StartError::Cancelled),
        };
        if started.is_err() {
            broker.end().await?;
        }
        started
    }
}

/// Waits until it is cancelled; a sender that is gone cancels nothing.
async fn wanted(cancelled: oneshot::Receiver<()>) {
    if cancelled.await.is_err() {
        std::future::pending().await
    }
}

/// A worker on its way to `Ready`.
struct Starting<'a> {
    spec: &'a WorkerSpec,
    origin: Origin,
    incoming: Incoming,
    outgoing: Outgoing,
    status: StatusPipe,
    stderr: BufReader<pipe::Receiver>,
    broker: Arc<BrokerProcess>,
    records: &'a mut Option<Records>,
}

impl<'a> Starting<'a> {
    fn new(launched: Launched, spec: &'a WorkerSpec, records: &'a mut Option<Records>) -> io::Result<Self> {
        let pipe = |fd: Option<OwnedFd>| fd.ok_or(io::ErrorKind::BrokenPipe);
        let reader = pipe::Receiver::from_owned_fd(pipe(launched.stdout)?)?;
        let writer = pipe::Sender::from_owned_fd(pipe(launched.stdin)?)?;
        let (incoming, outgoing) = async_pair(reader, writer, spec.generation);
        let status = StatusPipe::new(launched.status)?;
        Ok(Self {
            spec,
            origin: launched.origin,
            incoming,
            outgoing,
            status,
            stderr: BufReader::new(pipe::Receiver::from_owned_fd(pipe(launched.stderr)?)?),
            broker: Arc::new(BrokerProcess::new(launched.pidfd)?),
            records,
        })
    }

    async fn finish(mut self, began: Instant) -> Result<Started, StartError> {
        let (pid, ruleset) = self.started().await?;
        match self.outgoing.send(ToWorker::Hello(self.hello(ruleset.tier))).await {
            // Gone already: what it said before, or its silence, tells why.
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent?,
        }
        let mut register = Register { phase: Phase::Greeting, calls: OpenCalls::default() };
        let Some(first) = self.incoming.receive().await? else {
            return Err(self.ended("worker").await);
        };
        register.phase = register.calls.admit(register.phase, &first)?;
        verify_confined(pid, self.spec.confinement.identity)?;
        Ok(self.serve(register, pid, ruleset, began.elapsed()))
    }

    async fn started(&mut self) -> Result<(u32, RulesetReport), StartError> {
        match self.status.started().await? {
            Some(BrokerReport::Started { pid, ruleset }) => Ok((pid, ruleset)),
            Some(BrokerReport::Failed { code, stage, detail }) => {
                Err(StartError::Sandbox { code, stage, detail })
            }
            None if self.origin == Origin::Spare => Err(StartError::SpareEnded),
            Some(BrokerReport::Ended { .. } | BrokerReport::Refused(_)) | None => {
                Err(self.ended("sandbox-exec").await)
            }
        }
    }

    async fn ended(&mut self, who: &'static str) -> StartError {
        // What it printed last says more than anything that we could.
        let mut text = Vec::new();
        let _ =
            timeout(Duration::from_secs(1), (&mut self.stderr).take(64 << 10).read_to_end(&mut text)).await;
        let text = String::from_utf8_lossy(&text);
        let stderr = text.trim_end().lines().next_back().unwrap_or_default().escape_debug().to_string();
        StartError::Ended { who, stderr }
    }

    fn hello(&self, tier: Tier) -> Hello {
        let Confinement { rights, project, temp, recorded, .. } = &self.spec.confinement;
        let (rights, temp) = rights_in_tier(rights, project, temp.as_ref(), tier);
        let (agent, project) = (self.spec.agent.clone(), project.clone());
        // In the full tier the mounts refuse first, and processes have other numbers.
        let recorded = *recorded && tier != Tier::Full;
        Hello { agent, project, temp, rights, tier, shell_init: None, recorded }
    }

    fn serve(self, register: Register, pid: u32, ruleset: RulesetReport, startup: Duration) -> Started {
        let generation = self.spec.generation;
        let (outbox, messages) = mpsc::unbounded_channel();
        let (events, inbox) = mpsc::channel(INBOX);
        let open = Arc::new(Mutex::new(register));
        let broker = self.broker;
        let calls = CallSender { outbox, open: open.clone() };
        let span = info_span!("worker", %generation, pid);
        tokio::spawn(write(self.outgoing, messages).instrument(span.clone()));
        tokio::spawn(relay_diagnostics(self.stderr).instrument(span.clone()));
        let killed = Arc::new(Notify::new());
        let Self { incoming, status, records, .. } = self;
        let records = records.take().filter(|_| ruleset.tier != Tier::Full);
        let told = Told { refusals: Refusals::new(status, pid), records, program: pid };
        let reader = Reader { incoming, told, open, events, broker: broker.clone(), killed: killed.clone() };
        tokio::spawn(reader.run().instrument(span));
        (Worker { generation, pid, ruleset, startup, calls, broker, killed }, inbox)
    }
}

/// Writes what the core sends; ends with its sender, or with the worker.
async fn write(mut outgoing: Outgoing, mut messages: mpsc::UnboundedReceiver<ToWorker>) {
    while let Some(message) = messages.recv().await {
        if let Err(error) = outgoing.send(message).await {
            // The reader learns of the worker's end as well, and reports it.
            tracing::debug!(%error, "worker takes no more messages");
            return;
        }
    }
}

/// Logs a worker's diagnostics: bounded, and as text that nobody trusts.
async fn relay_diagnostics(mut stderr: BufReader<pipe::Receiver>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr).take(DIAGNOSTIC_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                tracing::debug!(target: "worker", "{}", text.trim_end().escape_debug());
            }
        }
    }
}

/// Reads a worker's messages, admits them, and sees the worker to its end.
struct Reader {
    incoming: Incoming,
    told: Told,
    open: Arc<Mutex<Register>>,
    events: mpsc::Sender<WorkerEvent>,
    broker: Arc<BrokerProcess>,
    killed: Arc<Notify>,
}

/// What is told of a worker's commands by others than itself.
struct Told {
    refusals: Refusals,
    /// Where they can be read.
    records: Option<Records>,
    /// The worker's process id.
    program: u32,
}

impl Told {
    /// Adds what the broker refused a command, and, where it failed, what the kernel recorded of it: a program that went its way all
    /// the same has only tried.
    async fn of_command(&mut self, result: &mut CommandResult) {
        result.refused = self.refusals.take_of(result.process);
        if let Some(records) = self.records.as_ref().filter(|_| result.exit != CommandExit::Code(0)) {
            let (program, command) = (self.program, result.command);
            let since = began(result.duration_ms);
            result.recorded = records.take(Whose::Command { program, command, since }).await;
        }
        let CommandResult { refused, recorded, .. } = result;
        tracing::debug!(?refused, ?recorded, "refused");
    }
}

/// When something began that took so long, in milliseconds since 1970; a second earlier, since clocks are coarse and pipes take time.
fn began(duration_ms: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(now).unwrap_or(u64::MAX).saturating_sub(duration_ms).saturating_sub(1000)
}

/// Why a reader stopped reading.
enum Stop {
    /// The worker closed its pipe.
    EndOfFile,
    /// The worker broke the protocol.
    Violation(String),
    /// Nobody is interested any more.
    CoreGone,
    /// It is to end.
    Killed,
}

impl Reader {
    async fn run(mut self) {
        let killed = Arc::clone(&self.killed);
        let stop = tokio::select! {
            stop = self.read() => stop,
            () = killed.notified() => Stop::Killed,
        };
        let ended = self.broker.end().await;
        let rest = self.told.refusals.take_rest();
        self.tell(rest).await;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.ids().collect();
        let (reason, violation) = match (stop, ended) {
            (Stop::Violation(what), _) => (format!("killed: it broke the protocol ({what})"), Some(what)),
            (_, Ok(ended)) => (ended.to_string(), None),
            (_, Err(error)) => (format!("cannot be waited for: {error}"), None),
        };
        let _ = self.events.send(WorkerEvent::Ended { reason, violation, open }).await;
    }

    async fn read(&mut self) -> Stop {
        loop {
            let received = tokio::select! {
                received = self.incoming.receive() => received,
                () = self.told.refusals.more(), if self.is_idle() => {
                    let refused = self.beside(Refusals::take_beside);
                    if !self.tell(refused).await {
                        return Stop::CoreGone;
                    }
                    continue;
                }
            };
            let message = match received {
                Ok(Some(message)) => message,
                Ok(None) => return Stop::EndOfFile,
                Err(FrameError::Truncated) => return Stop::Violation("its last frame was cut".to_owned()),
                Err(error) => return Stop::Violation(error.to_string()),
            };
            if let Err(violation) = self.admit(&message) {
                return Stop::Violation(violation.to_string());
            }
            let is_outcome = matches!(message, ToSupervisor::Outcome { .. });
            let event = match message {
                ToSupervisor::Output { call, chunk } => WorkerEvent::Output { call, chunk },
                ToSupervisor::Prepared { call, part } => WorkerEvent::Prepared { call, part },
                ToSupervisor::Outcome { call, outcome } => {
                    WorkerEvent::Outcome { call, outcome: self.with_refusals(outcome).await }
                }
                ToSupervisor::Ready(_) | ToSupervisor::Bye => continue,
            };
            // No call is open that could still claim what is left: it was cut short, or it outlived its call.
            let left = if is_outcome { self.beside(Refusals::take_rest) } else { Vec::new() };
            if self.events.send(event).await.is_err() || !self.tell(left).await {
                return Stop::CoreGone;
            }
        }
    }

    /// Tells what was refused beside the calls; whether anybody listens.
    async fn tell(&self, refused: Vec<Refusal>) -> bool {
        refused.is_empty() || self.events.send(WorkerEvent::Refused(refused)).await.is_ok()
    }

    /// What was refused goes with the command that it was refused: each has a process of its own, from which all its others
    /// descend.
    async fn with_refusals(&mut self, mut outcome: Outcome) -> Outcome {
        if let Outcome::Done(ToolOutput::Command(result)) = &mut outcome {
            self.told.of_command(result).await;
        }
        outcome
    }

    fn is_idle(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).calls.is_empty()
    }

    /// Runs this if no call is open, and has none opened meanwhile: what is refused from then on may belong to it.
    fn beside(&mut self, take: impl FnOnce(&mut Refusals) -> Vec<Refusal>) -> Vec<Refusal> {
        let register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if register.calls.is_empty() { take(&mut self.told.refusals) } else { Vec::new() }
    }

    fn admit(&self, message: &ToSupervisor) -> Result<(), Violation> {
        let mut register = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = register.phase;
        register.phase = register.calls.admit(phase, message)?;
        Ok(())
    }
}

impl std::fmt::Display for super::process::Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(0) => f.write_str("exited"),
            Self::Exited(code) if *code > 128 => write!(f, "ended by signal {}", code - 128),
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "its broker was ended by signal {signal}"),
        }
    }
}

fn diagnostics(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}
