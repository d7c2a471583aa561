//! One generation of a worker: started, verified, served, and ended to its last descendant.

mod calls;
mod reader;
mod start;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipc::confinement::{Confinement, RulesetReport};
use ipc::effect::Part;
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{CallOutcome, Chunk, Leftovers, ToSupervisor, ToWorker};
use ipc::pipe::{AsyncIncoming, AsyncOutgoing};
use ipc::refusal::Refusal;
use protocol::event::WorkerEnd;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

pub use calls::CallSender;
pub use start::{StartError, sandbox_code};

use self::start::Start;
use super::process::BrokerProcess;
use super::spawn::{Origin, Spawner};

/// The variable that sets the level of a worker's own diagnostics.
const LOG_LEVEL: &str = "BAILIWICK_LOG";

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
    /// Writes of an earlier process of the session that were cut off.
    pub leftovers: Option<Leftovers>,
}

/// What comes from a worker.
#[derive(Debug)]
pub enum WorkerEvent {
    /// An open call brought something.
    Output {
        /// The call.
        call: CallId,
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
        outcome: CallOutcome,
    },
    /// The broker refused this to processes of which no call has or will have a result.
    Refused(Vec<Refusal>),
    /// The worker and everything below it is gone; nothing follows.
    Ended {
        reason: WorkerEnd,
        /// What it did against the protocol, if that was why.
        violation: Option<String>,
        /// The calls that were open.
        open: Vec<CallId>,
    },
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

impl Worker {
    /// Spawns, greets and verifies a worker; its events come over the channel, `Ended` last.
    pub async fn start(spawner: &Spawner, spec: WorkerSpec) -> Result<Started, StartError> {
        Self::start_unless(spawner, spec, std::future::pending()).await
    }

    /// The same, unless it is cancelled before the worker is ready. After an error nothing is left of it.
    pub async fn start_unless(
        spawner: &Spawner,
        mut spec: WorkerSpec,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Started, StartError> {
        let began = Instant::now();
        spec.confinement.environment.pass.push(LOG_LEVEL.to_owned());
        let mut start = Start { spawner, spec: &spec, began };
        let mut cancelled = pin!(cancelled);
        let (worker, events) = match start.in_one(Origin::Spare, cancelled.as_mut()).await {
            // Whatever ended it had nothing to do with this start.
            Err(StartError::SpareEnded) => start.in_one(Origin::Fresh, cancelled).await,
            started => started,
        }?;
        spawner.prepare(vec![spec.program.into_os_string()]);
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
