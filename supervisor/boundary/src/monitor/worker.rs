//! A worker process: started, verified, used, and ended with its last descendant.

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
use protocol::event::{HostUse, WorkerEnd};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

pub use calls::CallSender;
pub use start::{StartError, sandbox_code};

use self::start::Start;
use super::guest_log::GuestLog;
use super::host_questions::HostQuestion;
use super::process::BrokerProcess;
use super::spawn::{Origin, Spawner};

/// The environment variable that sets the log level of a worker.
const LOG_LEVEL: &str = "BAILIWICK_LOG";

/// A worker, and the channel of its events.
pub type Started = (Worker, mpsc::Receiver<WorkerEvent>);

type Incoming = AsyncIncoming<pipe::Receiver, ToSupervisor>;
type Outgoing = AsyncOutgoing<pipe::Sender, ToWorker>;

/// The parameters of a worker to start.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// The agent that the worker serves.
    pub agent: AgentId,
    /// The number of this worker among those of the agent.
    pub generation: Generation,
    pub confinement: Confinement,
    pub program: PathBuf,
    /// Writes of an earlier process of the session that were interrupted.
    pub leftovers: Option<Leftovers>,
    /// The log of the guests that it has.
    pub guests: GuestLog,
}

/// An event from a worker.
#[derive(Debug)]
pub enum WorkerEvent {
    /// An open call produced output.
    Output { call: CallId, chunk: Chunk },
    /// An open call produced a part of the change that it proposes.
    Prepared { call: CallId, part: Part },
    /// An open call ended.
    Outcome { call: CallId, outcome: CallOutcome },
    /// System calls that the broker denied to processes that belong to no call.
    Refused(Vec<Refusal>),
    /// Hosts that were reached by name, or that could not be: the first time for each, and all at the end.
    HostsUsed(Vec<HostUse>),
    /// Connections to a host beyond the list wait for an answer.
    HostAsked(HostQuestion),
    /// The worker and its descendants have ended. No event follows.
    Ended {
        reason: WorkerEnd,
        /// The violation of the protocol, if that was the reason.
        violation: Option<String>,
        open: Vec<CallId>,
    },
}

/// A worker that has started and is verified.
#[derive(Debug)]
pub struct Worker {
    /// The number of this worker among those of the agent.
    pub generation: Generation,
    pub pid: u32,
    /// The confinement that is enforced.
    pub ruleset: RulesetReport,
    /// Time from the start of the process to its `Ready` message.
    pub startup: Duration,
    calls: CallSender,
    broker: Arc<BrokerProcess>,
    /// Tells the reader to wait only for the end of the process.
    killed: Arc<Notify>,
}

impl Worker {
    /// Starts and verifies a worker. Its events arrive on the channel, `Ended` as the last.
    pub async fn start(spawner: &Spawner, spec: WorkerSpec) -> Result<Started, StartError> {
        Self::start_unless(spawner, spec, std::future::pending()).await
    }

    /// Starts a worker unless `cancelled` completes first. After an error no process of it is left.
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
            // The waiting sandbox-exec had ended, for a reason unrelated to this start.
            Err(StartError::SpareEnded) => start.in_one(Origin::Fresh, cancelled).await,
            started => started,
        }?;
        spawner.prepare(vec![spec.program.into_os_string()]);
        Ok((worker, events))
    }

    /// The sender of calls to this worker.
    pub fn calls(&self) -> &CallSender {
        &self.calls
    }

    /// Ends the worker and its descendants at once, by force if necessary. The `Ended` event follows.
    pub fn kill(&self) {
        self.broker.terminate();
        self.killed.notify_one();
    }
}
