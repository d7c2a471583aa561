use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ipc::confinement::{BrokerReport, Confinement, RulesetReport, Tier, rights_in_tier};
use ipc::frame::FrameError;
use ipc::message::{Hello, ToWorker};
use ipc::phase::{OpenCalls, Phase, Violation};
use ipc::pipe::async_pair;
use protocol::error_code::ErrorCode;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tracing::{Instrument, info_span};

use super::calls::{CallSender, Register, write};
use super::reader::{WorkerReader, relay_diagnostics};
use super::{Incoming, Outgoing, Started, Worker, WorkerSpec};
use crate::monitor::gateway::{Gateway, GatewayError, LaunchedGateway};
use crate::monitor::guest_log::GuestOwner;
use crate::monitor::host_questions::HostQuestions;
use crate::monitor::host_uses::HostUses;
use crate::monitor::process::BrokerProcess;
use crate::monitor::refusals::Refusals;
use crate::monitor::spawn::{Launch, Launched, Origin, SpawnError, Spawner, Stdio};
use crate::monitor::status::StatusPipe;
use crate::monitor::verify::{VerifyError, verify_confined};

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of events that the session has not read. Later messages stay in the pipe, whose size is limited.
const INBOX: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("sandbox-exec stopped at stage {stage} ({code}): {detail}")]
    Sandbox { code: u8, stage: String, detail: String },
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error("the worker sent an invalid message at its start: {0}")]
    Violation(#[from] Violation),
    #[error("the worker sent a message at its start that cannot be read: {0}")]
    Frame(#[from] FrameError),
    #[error("{who} ended before it was ready{}", diagnostics(.stderr))]
    Ended { who: &'static str, stderr: String },
    /// The prestarted sandbox-exec had ended, without a report, before it got its order.
    #[error("the prepared sandbox-exec process has ended")]
    SpareEnded,
    #[error("the start of the worker was cancelled")]
    Cancelled,
    #[error("the worker was not ready after {} s", START_TIMEOUT.as_secs())]
    Timeout,
    #[error("the gateway to the allowed hosts did not start: {0}")]
    Gateway(#[from] GatewayError),
    #[error("cannot talk to the worker: {0}")]
    Io(#[from] io::Error),
}

impl StartError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Sandbox { detail, .. } => sandbox_code(detail),
            _ => ErrorCode::NoSandbox,
        }
    }
}

/// Returns the error code for an error message of sandbox-exec.
pub fn sandbox_code(words: &str) -> ErrorCode {
    match words.split_once("Landlock is not available") {
        Some((_, why)) if why.contains("a seccomp profile denies it") => ErrorCode::LandlockBlocked,
        Some(_) => ErrorCode::NoLandlock,
        None => ErrorCode::NoSandbox,
    }
}

pub(super) struct Start<'a> {
    pub(super) spawner: &'a Spawner,
    pub(super) spec: &'a WorkerSpec,
    pub(super) began: Instant,
}

impl Start<'_> {
    /// Starts the worker, in a prestarted sandbox-exec if `origin` is `Spare`. After an error none of its processes
    /// remains.
    pub(super) async fn in_one(
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
        let starting = Starting::new(launched, self.spec)?;
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

struct Starting<'a> {
    spec: &'a WorkerSpec,
    origin: Origin,
    incoming: Incoming,
    outgoing: Outgoing,
    status: StatusPipe,
    stderr: BufReader<pipe::Receiver>,
    broker: Arc<BrokerProcess>,
    gateway: Option<LaunchedGateway>,
}

impl<'a> Starting<'a> {
    fn new(launched: Launched, spec: &'a WorkerSpec) -> io::Result<Self> {
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
            gateway: launched.gateway,
        })
    }

    async fn finish(mut self, began: Instant) -> Result<Started, StartError> {
        let (pid, ruleset) = self.started().await?;
        match self.outgoing.send(ToWorker::Hello(self.hello(ruleset.tier))).await {
            // The worker has ended. Its earlier report, or the lack of one, gives the reason.
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent?,
        }
        let mut register = Register { phase: Phase::Greeting, calls: OpenCalls::default() };
        let Some(first) = self.incoming.receive().await? else {
            return Err(self.ended("worker").await);
        };
        register.phase = register.calls.admit(register.phase, &first)?;
        verify_confined(pid, self.spec.confinement.identity)?;
        let gateway = match self.gateway.take() {
            Some(launched) => {
                let of = GuestOwner { worker: Some(self.spec.generation), ..GuestOwner::default() };
                Some(Gateway::ready(launched, of, &self.spec.guests).await?)
            }
            None => None,
        };
        Ok(self.serve(register, gateway, pid, ruleset, began.elapsed()))
    }

    async fn started(&mut self) -> Result<(u32, RulesetReport), StartError> {
        match self.status.started().await? {
            Some(BrokerReport::Started { pid, ruleset }) => Ok((pid, ruleset)),
            Some(BrokerReport::Failed { code, stage, detail, .. }) => {
                Err(StartError::Sandbox { code, stage, detail })
            }
            None if self.origin == Origin::Spare => Err(StartError::SpareEnded),
            Some(BrokerReport::Ended { .. } | BrokerReport::Refused(_)) | None => {
                Err(self.ended("sandbox-exec").await)
            }
        }
    }

    async fn ended(&mut self, who: &'static str) -> StartError {
        // The last line that the process printed is the best explanation.
        let mut text = Vec::new();
        let _ =
            timeout(Duration::from_secs(1), (&mut self.stderr).take(64 << 10).read_to_end(&mut text)).await;
        let text = String::from_utf8_lossy(&text);
        let stderr = text.trim_end().lines().next_back().unwrap_or_default().escape_debug().to_string();
        StartError::Ended { who, stderr }
    }

    fn hello(&self, tier: Tier) -> Hello {
        let Confinement { rights, project, temp, .. } = &self.spec.confinement;
        let (rights, temp) = rights_in_tier(rights, project, temp.as_ref(), tier);
        let (agent, project) = (self.spec.agent.clone(), project.clone());
        let leftovers = self.spec.leftovers.clone();
        Hello { agent, project, temp, rights, tier, shell_init: None, leftovers }
    }

    fn serve(
        self,
        register: Register,
        gateway: Option<Gateway>,
        pid: u32,
        ruleset: RulesetReport,
        startup: Duration,
    ) -> Started {
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
        let Self { incoming, status, .. } = self;
        let refusals = Refusals::new(status, pid);
        let reader = WorkerReader {
            incoming,
            refusals,
            gateway,
            uses: HostUses::default(),
            questions: HostQuestions::default(),
            open,
            events,
            broker: broker.clone(),
            killed: killed.clone(),
        };
        tokio::spawn(reader.run().instrument(span));
        (Worker { generation, pid, ruleset, startup, calls, broker, killed }, inbox)
    }
}

fn diagnostics(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}
