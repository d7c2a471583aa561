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

/// Environment variable for the log level. Workers inherit it.
const LOG_LEVEL: &str = "BAILIWICK_LOG";

pub type Started = (Worker, mpsc::Receiver<WorkerEvent>);

type Incoming = AsyncIncoming<pipe::Receiver, ToSupervisor>;
type Outgoing = AsyncOutgoing<pipe::Sender, ToWorker>;

#[derive(Clone, Debug)]
pub struct WorkerSpec {
    pub agent: AgentId,
    pub generation: Generation,
    pub confinement: Confinement,
    pub program: PathBuf,
    /// Temporary files that an earlier process of the session may have left, to be removed; `None` if there are none.
    pub leftovers: Option<Leftovers>,
    pub guests: GuestLog,
}

#[derive(Debug)]
pub enum WorkerEvent {
    Output {
        call: CallId,
        chunk: Chunk,
    },
    Prepared {
        call: CallId,
        part: Part,
    },
    Outcome {
        call: CallId,
        outcome: CallOutcome,
    },
    /// Denied system calls of processes that belong to no tool call.
    Refused(Vec<Refusal>),
    /// Use of the network by host name. Sent for each host at the first connection, and for all hosts at the end.
    HostsUsed(Vec<HostUse>),
    /// A connection waits for a person's answer, because its host is not on the list of allowed hosts.
    HostAsked(HostQuestion),
    /// The worker and its descendants have ended. No event follows.
    Ended {
        reason: WorkerEnd,
        /// Violation of the protocol because of which the worker was ended; `None` if it ended for another reason.
        violation: Option<String>,
        open: Vec<CallId>,
    },
}

#[derive(Debug)]
pub struct Worker {
    pub generation: Generation,
    pub pid: u32,
    pub ruleset: RulesetReport,
    /// Time from the start of the process to its `Ready` message.
    pub startup: Duration,
    calls: CallSender,
    broker: Arc<BrokerProcess>,
    killed: Arc<Notify>,
}

impl Worker {
    /// Starts a worker. `Ended` is the last event on the returned channel.
    pub async fn start(spawner: &Spawner, spec: WorkerSpec) -> Result<Started, StartError> {
        Self::start_unless(spawner, spec, std::future::pending()).await
    }

    /// Starts a worker unless `cancelled` completes first. After an error no process of the worker remains.
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

    pub fn calls(&self) -> &CallSender {
        &self.calls
    }

    /// Ends the worker and its descendants at once, with SIGKILL if necessary. An `Ended` event follows.
    pub fn kill(&self) {
        self.broker.terminate();
        self.killed.notify_one();
    }
}
