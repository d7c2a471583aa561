//! Guests: confined processes with separate access that execute no tool calls. A guest and the supervisor
//! exchange typed frames on one socket, the guest's standard output. The supervisor trusts nothing that a guest sends.

use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ipc::confinement::{BrokerReport, Confinement, RulesetReport};
use ipc::frame::FrameError;
use ipc::id::Generation;
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, async_pair};
use ipc::refusal::Refusal;
use ipc::rights::Hosts;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use protocol::event::{GuestEnd, GuestRole, GuestTotals, HostUse, WorkerEnd};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::gateway::Gateway;
use super::guest_log::{GuestLog, GuestOwner, LoggedGuest, StartedGuest};
use super::process::BrokerProcess;
use super::refusals::Refusals;
use super::spawn::{Launch, Launched, Origin, SpawnError, Spawner, Stdio};
use super::status::StatusPipe;
use super::verify::{VerifyError, verify_confined};
use crate::system;

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Time that a guest has, after it has closed its socket, to exit by itself.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Kind of guest: a mode in which the worker's program runs, and the types of messages in that mode.
pub trait GuestKind: Debug + 'static {
    /// A message to the guest. The first one is its task.
    type Order: Serialize + Debug + Send + Unpin + 'static;
    type Report: DeserializeOwned + Debug + Send + Unpin;

    /// Name of the kind in the log.
    const ROLE: GuestRole;
    /// Command-line flag that makes the worker's program this kind of guest.
    const FLAG: &'static str;
    /// Maximum number of orders that are queued because the guest has not read them.
    const QUEUE: usize;

    /// True for the guest's first report, with which it confirms its task.
    fn is_ready(report: &Self::Report) -> bool;

    /// Returns the only hosts to which the guest's program itself connects. `None` if it makes no connections.
    fn hosts(task: &Self::Order) -> Option<Hosts> {
        let _ = task;
        None
    }
}

#[derive(Debug)]
pub struct GuestSpec<K: GuestKind> {
    pub program: PathBuf,
    pub confinement: Confinement,
    pub order: K::Order,
    /// MCP server, worker or tool call for which the guest is started.
    pub of: GuestOwner,
    pub log: GuestLog,
}

#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("sandbox-exec stopped at stage {stage} ({code}): {detail}")]
    Sandbox { code: u8, stage: String, detail: String },
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the process ended before it was ready")]
    Ended,
    #[error("the process was not ready after {} s", START_TIMEOUT.as_secs())]
    Timeout,
    #[error("the gateway to the allowed hosts did not start: {0}")]
    Gateway(#[source] Box<GuestError>),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A started guest that has no task yet. Dropping it ends the guest.
#[derive(Debug)]
pub struct LaunchedGuest<K: GuestKind> {
    program: PathBuf,
    confinement: Confinement,
    began: Instant,
    begun: Option<Begun<K>>,
}

#[derive(Debug)]
struct Begun<K: GuestKind> {
    pidfd: OwnedFd,
    status: OwnedFd,
    channel: OwnedFd,
    order: K::Order,
}

impl<K: GuestKind> LaunchedGuest<K> {
    /// Wraps a started process. `channel` is the supervisor's side of the socket that is the guest's standard output.
    pub(super) fn new(
        pidfd: OwnedFd,
        status: OwnedFd,
        channel: OwnedFd,
        program: PathBuf,
        confinement: Confinement,
        order: K::Order,
    ) -> Self {
        let began = Instant::now();
        Self { program, confinement, began, begun: Some(Begun { pidfd, status, channel, order }) }
    }
}

impl<K: GuestKind> Drop for LaunchedGuest<K> {
    fn drop(&mut self) {
        if let Some(Begun { pidfd, .. }) = &self.begun {
            // An error means that the process has ended.
            let _ = system::signal_process(pidfd.as_fd(), Signal::SIGKILL);
            let _ = waitid(Id::PIDFd(pidfd.as_fd()), WaitPidFlag::WEXITED);
        }
    }
}

type Reports<K> = AsyncIncoming<OwnedReadHalf, <K as GuestKind>::Report>;
type Orders<K> = AsyncOutgoing<OwnedWriteHalf, <K as GuestKind>::Order>;

pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?)
}

#[derive(Debug)]
pub struct Guest<K: GuestKind> {
    broker: BrokerProcess,
    reports: Reports<K>,
    /// Queue of orders to be written to the socket. `None` after the guest was told to end.
    orders: Option<mpsc::Sender<K::Order>>,
    refusals: Refusals,
    fault: Option<Fault>,
    logged: LoggedGuest,
}

#[derive(Debug)]
enum Fault {
    Closed,
    Frame(String),
}

#[derive(Debug)]
pub enum GuestEvent<R> {
    Report(R),
    /// System calls that the broker denied to the guest and its descendants.
    Refused(Vec<Refusal>),
    Ended,
}

impl<K: GuestKind> Guest<K> {
    /// Starts a guest, and a gateway if the guest may connect to named hosts. After an error none of its processes
    /// remains.
    pub async fn start(spawner: &Spawner, spec: GuestSpec<K>) -> Result<(Self, Option<Gateway>), GuestError> {
        let GuestSpec { program, confinement, order, of, log } = spec;
        let (channel, stdout) = channel()?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let stdio = Stdio::Given { stdin: null.try_clone()?.into(), stdout, stderr: null.into() };
        let arguments = vec![K::FLAG.to_owned()];
        let command = vec![program.clone().into_os_string()];
        let launch = Launch { confinement: confinement.clone(), command, arguments, stdio };
        let Launched { pidfd, status, gateway, .. } = spawner.spawn_in(Origin::Fresh, launch).await?;
        let launched = LaunchedGuest::new(pidfd, status, channel, program, confinement, order);
        let guest = Self::ready(launched, of, &log).await?;
        let Some(launched) = gateway else { return Ok((guest, None)) };
        let of = GuestOwner { guest: Some(guest.logged.guest()), ..GuestOwner::default() };
        match Gateway::ready(launched, of, &log).await {
            Ok(gateway) => Ok((guest, Some(gateway))),
            Err(error) => {
                let error = GuestError::Gateway(Box::new(error));
                guest.end(GuestEnd::Failed { failure: error.to_string() }).await?;
                Err(error)
            }
        }
    }

    /// Sends a guest its task and waits until it is verified and ready. After an error no process of the guest remains.
    pub(super) async fn ready(
        mut launched: LaunchedGuest<K>,
        of: GuestOwner,
        log: &GuestLog,
    ) -> Result<Self, GuestError> {
        let Begun { pidfd, status, channel, order } = launched.begun.take().ok_or(GuestError::Ended)?;
        let broker = BrokerProcess::new(pidfd)?;
        let mut status = StatusPipe::new(status)?;
        let channel = StdStream::from(channel);
        channel.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(channel)?.into_split();
        let (mut reports, mut orders) = async_pair(reader, writer, Generation(0));
        let hosts = K::hosts(&order);
        let greeted = timeout(START_TIMEOUT, async {
            let (pid, ruleset) = started(&mut status).await?;
            orders.send(order).await?;
            match reports.receive().await? {
                Some(report) if K::is_ready(&report) => verify_confined(pid, launched.confinement.identity)?,
                Some(_) | None => return Err(GuestError::Ended),
            }
            Ok((pid, ruleset))
        });
        match greeted.await.unwrap_or(Err(GuestError::Timeout)) {
            Ok((pid, ruleset)) => {
                let (sender, queue) = mpsc::channel(K::QUEUE);
                tokio::spawn(write::<K>(orders, queue));
                let logged = log.started(StartedGuest {
                    guest: log.number(),
                    kind: K::ROLE,
                    of,
                    pid,
                    program: launched.program.clone(),
                    confinement: launched.confinement.clone(),
                    ruleset,
                    hosts,
                    startup: launched.began.elapsed(),
                });
                let refusals = Refusals::new(status, pid);
                Ok(Self { broker, reports, orders: Some(sender), refusals, fault: None, logged })
            }
            Err(error) => {
                broker.end().await?;
                Err(error)
            }
        }
    }

    /// Sends an order. If the guest has not read the earlier orders, ends it: it might continue what an order forbids.
    pub fn order(&self, order: K::Order) {
        if self.orders.as_ref().is_none_or(|orders| orders.try_send(order).is_err()) {
            self.broker.terminate();
        }
    }

    /// Sends an order after it has waited for room in the queue. Fails if the guest has ended.
    pub async fn send(&self, order: K::Order) -> Result<(), FrameError> {
        let gone = || FrameError::Io(io::ErrorKind::BrokenPipe.into());
        self.orders.as_ref().ok_or_else(gone)?.send(order).await.map_err(|_| gone())
    }

    /// Returns the guest's next report or denial, or its end. Cancel safe.
    pub async fn next(&mut self) -> GuestEvent<K::Report> {
        tokio::select! {
            report = self.reports.receive() => match report {
                Ok(Some(report)) => GuestEvent::Report(report),
                Ok(None) | Err(FrameError::Truncated) => self.stopped(Fault::Closed),
                Err(error) => self.stopped(Fault::Frame(error.to_string())),
            },
            () = self.refusals.more() => {
                let refused = self.refusals.take_beside();
                self.count_denials(&refused);
                GuestEvent::Refused(refused)
            }
        }
    }

    fn stopped(&mut self, fault: Fault) -> GuestEvent<K::Report> {
        self.fault.get_or_insert(fault);
        GuestEvent::Ended
    }

    fn count_denials(&mut self, refused: &[Refusal]) {
        let denials = refused.iter().map(|refusal| refusal.count).fold(0, u64::saturating_add);
        self.logged.totals.denials = self.logged.totals.denials.saturating_add(denials);
    }

    pub const fn totals(&mut self) -> &mut GuestTotals {
        &mut self.logged.totals
    }

    pub fn used(&mut self, hosts: Vec<HostUse>) {
        self.logged.totals = self.logged.totals.with_hosts(&hosts);
        self.logged.hosts = hosts;
    }

    /// Ends the guest and its descendants. Logs `reason`, unless the guest ended or sent an invalid message before.
    pub async fn end(self, reason: GuestEnd) -> io::Result<WorkerEnd> {
        self.end_telling(reason).await.0
    }

    /// Tells the guest to end, and waits at most `grace` for its end. Drops the guest's remaining reports.
    pub async fn close(&mut self, grace: Duration) {
        self.orders = None;
        let _ = timeout(grace, async { while matches!(self.reports.receive().await, Ok(Some(_))) {} }).await;
    }

    /// Ends the guest and its descendants. Also returns the denied system calls that were not reported before, and the
    /// guest's log entry. The end of the guest is logged when the log entry is dropped.
    pub async fn end_telling(
        mut self,
        reason: GuestEnd,
    ) -> (io::Result<WorkerEnd>, Vec<Refusal>, LoggedGuest) {
        let by_itself = match self.fault {
            Some(Fault::Closed) => timeout(LAST_MOMENT, self.broker.wait()).await.ok(),
            Some(Fault::Frame(_)) | None => None,
        };
        let ended = match by_itself {
            Some(ended) => ended,
            None => self.broker.end().await,
        };
        let ended = ended.map(WorkerEnd::from);
        let refused = self.refusals.take_rest();
        self.count_denials(&refused);
        self.logged.reason = match (self.fault.take(), &ended) {
            (None, _) => reason,
            (Some(Fault::Frame(violation)), _) => GuestEnd::Violation { violation },
            (Some(Fault::Closed), Ok(status)) => GuestEnd::Died { status: status.clone() },
            (Some(Fault::Closed), Err(error)) => {
                GuestEnd::Died { status: WorkerEnd::NotWaitedFor { error: error.to_string() } }
            }
        };
        (ended, refused, self.logged)
    }
}

async fn write<K: GuestKind>(mut orders: Orders<K>, mut queue: mpsc::Receiver<K::Order>) {
    while let Some(order) = queue.recv().await {
        if orders.send(order).await.is_err() {
            return;
        }
    }
}

/// Waits until the program has started. Returns its pid, and the Landlock and seccomp rules that are in force.
async fn started(status: &mut StatusPipe) -> Result<(u32, RulesetReport), GuestError> {
    match status.started().await? {
        Some(BrokerReport::Started { pid, ruleset }) => Ok((pid, ruleset)),
        Some(BrokerReport::Failed { code, stage, detail, .. }) => {
            Err(GuestError::Sandbox { code, stage, detail })
        }
        Some(BrokerReport::Ended { .. } | BrokerReport::Refused(_)) | None => Err(GuestError::Ended),
    }
}
