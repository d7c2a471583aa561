//! Message loop of the worker. One task owns all state, tools run in parallel, and one writer sends the results.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ipc::effect::{Assembler, EffectError, Part};
use ipc::frame::FrameError;
use ipc::id::{CallId, Generation};
use ipc::message::{CallOutcome, Hello, Ready, ToSupervisor, ToWorker, Work};
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, async_pair};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::assignment::Assignment;
use crate::open_call::OpenCall;
use crate::schedule::{Place, Schedule};
use crate::tools::{Job, Tools, ToolsError, leftovers};

/// Idle time after which a worker returns unused memory.
const REST: Duration = Duration::from_millis(100);

const PARALLEL: usize = 8;
/// Maximum number of messages that wait for the writer; each has up to 1 MiB.
const OUTBOX: usize = 4;
/// Time for which open calls may go on after the supervisor has closed the pipe.
const FAREWELL: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the supervisor closed the pipe")]
    Closed,
    /// Invalid input, or a message that could not be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("{0} is not allowed now")]
    OutOfPhase(&'static str),
    #[error("call {0} is already open")]
    DoubledCall(CallId),
    #[error("the change of call {0} is invalid: {1}")]
    Effect(CallId, #[source] EffectError),
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// A task of the worker panicked or was aborted.
    #[error("a task failed: {0}")]
    Task(#[from] JoinError),
}

/// Serves one agent's calls until `Drain`. Every other end of the connection is an error.
pub async fn serve<R, W>(reader: R, writer: W, generation: Generation) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (mut incoming, outgoing) = async_pair(reader, writer, generation);
    let hello = greeting(&mut incoming).await?;
    if let Some(cut_off) = &hello.leftovers {
        leftovers::remove(cut_off);
    }
    let tools = Arc::new(Tools::new(Assignment::new(hello))?);
    let (outbox, inbox) = mpsc::channel(OUTBOX);
    let mut writer = tokio::spawn(write(outgoing, inbox));
    let ready = Ready { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned() };
    // The writer's own error is reported below.
    let _ = outbox.send(ToSupervisor::Ready(ready)).await;
    let mut host = Host::new(tools, outbox);
    let served = tokio::select! {
        served = host.serve(&mut incoming) => served,
        written = &mut writer => Err(written.map_or_else(ServeError::from, |written| written.err().map_or(ServeError::Closed, ServeError::from))),
    };
    host.farewell(served, writer).await
}

async fn greeting<R: AsyncRead + Unpin>(
    incoming: &mut AsyncIncoming<R, ToWorker>,
) -> Result<Hello, ServeError> {
    match incoming.receive().await? {
        Some(ToWorker::Hello(hello)) => Ok(hello),
        Some(_) => Err(ServeError::OutOfPhase("anything but Hello")),
        None => Err(ServeError::Closed),
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut outgoing: AsyncOutgoing<W, ToSupervisor>,
    mut inbox: mpsc::Receiver<ToSupervisor>,
) -> Result<(), FrameError> {
    while let Some(message) = inbox.recv().await {
        outgoing.send(message).await?;
    }
    Ok(())
}

fn rest() {
    if let Err(error) = sandbox_exec::memory::release_startup_pages() {
        tracing::debug!(%error, "pages stay in memory");
    }
}

/// State of the message loop: calls in progress and the tools that serve them.
struct Host {
    tools: Arc<Tools>,
    outbox: mpsc::Sender<ToSupervisor>,
    schedule: Schedule,
    waiting: HashMap<CallId, Job>,
    /// Running calls, each with a sender that signals its cancellation.
    running: HashMap<CallId, watch::Sender<bool>>,
    /// Approved changes that have not arrived completely, since they are sent in parts.
    arriving: HashMap<CallId, Assembler>,
    tasks: JoinSet<CallId>,
    draining: bool,
    /// Id of the call that makes an approved change. The worker accepts no call after it.
    commit: Option<CallId>,
}

impl Host {
    fn new(tools: Arc<Tools>, outbox: mpsc::Sender<ToSupervisor>) -> Self {
        Self {
            tools,
            outbox,
            schedule: Schedule::new(PARALLEL),
            waiting: HashMap::new(),
            running: HashMap::new(),
            arriving: HashMap::new(),
            tasks: JoinSet::new(),
            draining: false,
            commit: None,
        }
    }

    async fn serve<R: AsyncRead + Unpin>(
        &mut self,
        incoming: &mut AsyncIncoming<R, ToWorker>,
    ) -> Result<(), ServeError> {
        let mut rests = false;
        loop {
            tokio::select! {
                message = incoming.receive() => self.take(message?.ok_or(ServeError::Closed)?)?,
                Some(ended) = self.tasks.join_next() => self.end(ended?),
                () = tokio::time::sleep(REST), if !rests && self.is_idle() => {
                    rests = true;
                    rest();
                    continue;
                }
            }
            rests = false;
            self.start();
            if self.draining && self.is_idle() {
                return Ok(());
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.schedule.is_empty() && self.arriving.is_empty() && self.tasks.is_empty()
    }

    fn is_open(&self, call: CallId) -> bool {
        self.waiting.contains_key(&call) || self.running.contains_key(&call)
    }

    fn take(&mut self, message: ToWorker) -> Result<(), ServeError> {
        match message {
            ToWorker::Hello(_) => Err(ServeError::OutOfPhase("a second Hello")),
            ToWorker::Drain => {
                self.draining = true;
                Ok(())
            }
            ToWorker::Call { .. } if self.commit.is_some() => {
                Err(ServeError::OutOfPhase("a call after a Commit"))
            }
            ToWorker::Call { call, work } => self.open(call, Job::Work(work)),
            ToWorker::Commit { call, part } => self.part(call, part),
            ToWorker::Cancel { call } => {
                self.cancel(call);
                Ok(())
            }
        }
    }

    fn open(&mut self, call: CallId, job: Job) -> Result<(), ServeError> {
        if self.draining {
            return Err(ServeError::OutOfPhase("a call after Drain"));
        }
        if self.is_open(call) || self.arriving.contains_key(&call) {
            return Err(ServeError::DoubledCall(call));
        }
        self.schedule.arrive(call, job.order());
        self.waiting.insert(call, job);
        Ok(())
    }

    fn part(&mut self, call: CallId, part: Part) -> Result<(), ServeError> {
        if self.commit.is_some() && !self.arriving.contains_key(&call) {
            return Err(ServeError::OutOfPhase("a second Commit"));
        }
        self.commit = Some(call);
        if self.is_open(call) {
            return Err(ServeError::DoubledCall(call));
        }
        let mut assembler = self.arriving.remove(&call).unwrap_or_default();
        let effect = assembler.push(part).map_err(|error| ServeError::Effect(call, error))?;
        if let Some(effect) = effect {
            return self.open(call, Job::Commit(effect));
        }
        self.arriving.insert(call, assembler);
        Ok(())
    }

    fn cancel(&mut self, call: CallId) {
        match self.schedule.cancel(call) {
            Place::Running => {
                if let Some(cancel) = self.running.get(&call) {
                    cancel.send_replace(true);
                }
            }
            Place::Queued => {
                self.waiting.remove(&call);
                self.close(call, CallOutcome::Cancelled);
            }
            Place::Unknown => {
                // A call that is unknown has just ended, and its outcome is on the way.
                if self.arriving.remove(&call).is_some() {
                    self.close(call, CallOutcome::Cancelled);
                }
            }
        }
    }

    fn start(&mut self) {
        while let Some(call) = self.schedule.start() {
            let Some(job) = self.waiting.remove(&call) else {
                self.schedule.end(call);
                continue;
            };
            if let Some(outcome) = self.tools.at_once(&job) {
                self.schedule.end(call);
                self.close(call, outcome);
                continue;
            }
            let (cancel, cancelled) = watch::channel(false);
            self.running.insert(call, cancel);
            let open = OpenCall::new(call, self.outbox.clone(), cancelled);
            self.tasks.spawn(run(call, Arc::clone(&self.tools), job, open));
        }
    }

    /// Sends the outcome of a call. If the message queue is full, a new task sends the outcome later.
    fn close(&mut self, call: CallId, outcome: CallOutcome) {
        let full = match self.outbox.try_send(ToSupervisor::Outcome { call, outcome }) {
            Err(mpsc::error::TrySendError::Full(message)) => message,
            // Sent, or the receiver is gone: then the writer's error ends the loop.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => return,
        };
        let outbox = self.outbox.clone();
        self.tasks.spawn(async move {
            let _ = outbox.send(full).await;
            call
        });
    }

    fn end(&mut self, call: CallId) {
        self.running.remove(&call);
        self.schedule.end(call);
    }

    /// Sends `Bye` after success. After an error, cancels the running calls and waits up to [`FAREWELL`] for them.
    async fn farewell(
        mut self,
        served: Result<(), ServeError>,
        writer: JoinHandle<Result<(), FrameError>>,
    ) -> Result<(), ServeError> {
        if served.is_ok() {
            let _ = self.outbox.send(ToSupervisor::Bye).await;
            drop(self);
            return Ok(writer.await??);
        }
        for cancel in self.running.values() {
            cancel.send_replace(true);
        }
        writer.abort();
        let gone = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(FAREWELL, gone).await.is_err() {
            tracing::warn!("calls did not end in time");
        }
        served
    }
}

async fn run(call: CallId, tools: Arc<Tools>, job: Job, open: OpenCall) -> CallId {
    let task = tokio::spawn(tools.perform(job, open.clone()));
    let outcome = task.await.unwrap_or_else(|_| crate::tools::broken());
    open.close(outcome).await;
    call
}

impl Job {
    fn order(&self) -> crate::schedule::Order {
        use crate::schedule::Order;
        match self {
            Self::Work(Work::Run(call)) if call.may_write() => Order::Write,
            Self::Work(_) => Order::Read,
            Self::Commit(_) => Order::Write,
        }
    }
}
