//! Guests: confined processes with rights of their own that are no workers. They carry out no call of the model.
//!
//! The gateway of an agent is one. It belongs to the start of one confined program, and ends with it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipc::confinement::{BrokerReport, Confinement, Identity, Order};
use ipc::frame::FrameError;
use ipc::gateway::{GatewayOrder, GatewayReport};
use ipc::id::Generation;
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, async_pair};
use ipc::rights::{Execution, Hosts, Network, Rights};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::process::BrokerProcess;
use super::spawn::Stdio;
use super::status::StatusPipe;
use super::verify::{VerifyError, verify_confined};
use crate::system;

/// Flag of the worker's program that makes it a gateway.
const GATEWAY: &str = "--gateway";

/// The longest time from the start of a gateway to its `Ready`.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Files and directories from which the C library resolves names and loads itself.
const READ: [&str; 10] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/ld.so.cache",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
];

/// The reason why an agent has no gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// A stage of sandbox-exec failed.
    #[error("sandbox-exec stopped at stage {stage} ({code}): {detail}")]
    Sandbox { code: u8, stage: String, detail: String },
    /// The process is not confined as required.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// It sent an invalid frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// It ended, or said something else than that it is ready.
    #[error("it ended before it was ready")]
    Ended,
    /// It was not ready in time.
    #[error("it was not ready after {} s", START_TIMEOUT.as_secs())]
    Timeout,
    /// A descriptor or a pipe failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The order and descriptors of a gateway to start.
pub(super) struct GatewayPlan {
    pub(super) program: PathBuf,
    pub(super) order: Order,
    pub(super) stdio: Stdio,
    /// The end of the socket that the agent's broker passes connections on.
    pub(super) arrivals: OwnedFd,
    /// The supervisor's end of the socket for orders and reports.
    pub(super) channel: OwnedFd,
    pub(super) hosts: Hosts,
}

impl GatewayPlan {
    /// Plans the gateway of a program that has this confinement and these hosts.
    pub(super) fn new(program: &Path, agent: &Confinement, hosts: &Hosts) -> io::Result<Self> {
        let (arrivals, stdin) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let (channel, stdout) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
        let stderr = OpenOptions::new().write(true).open("/dev/null")?.into();
        Ok(Self {
            program: program.to_owned(),
            order: Order {
                confinement: gateway_confinement(program, agent),
                arguments: vec![GATEWAY.to_owned()],
            },
            stdio: Stdio::Given { stdin, stdout, stderr },
            arrivals,
            channel,
            hosts: hosts.clone(),
        })
    }
}

/// Returns the confinement of the gateway of an agent: the network as far as the agent's reaches, no file but those of the
/// resolver and the program itself, no commands.
pub fn gateway_confinement(program: &Path, agent: &Confinement) -> Confinement {
    let places = READ.iter().map(Path::new).chain([program]);
    let rights = Rights {
        read: places.filter_map(|place| fs::canonicalize(place).ok()).map(Into::into).collect(),
        net: Network::On,
        reach: agent.rights.reach,
        exec: Execution::Denied,
        ..Rights::default()
    };
    Confinement {
        tier: agent.tier,
        identity: agent.identity,
        allow_degraded: agent.allow_degraded,
        landlock_abi: agent.landlock_abi,
        ..Confinement::new(rights.normalised(), "/".into())
    }
}

/// A gateway that was started and got no order yet. Dropping this ends it.
#[derive(Debug)]
pub struct LaunchedGateway {
    hosts: Hosts,
    identity: Option<Identity>,
    /// `None` once [`Gateway::ready`] took it.
    ends: Option<GatewayEnds>,
}

/// The supervisor's descriptors of a gateway.
#[derive(Debug)]
struct GatewayEnds {
    pidfd: OwnedFd,
    status: OwnedFd,
    channel: OwnedFd,
}

impl LaunchedGateway {
    pub(super) fn new(
        pidfd: OwnedFd,
        status: OwnedFd,
        channel: OwnedFd,
        hosts: Hosts,
        identity: Option<Identity>,
    ) -> Self {
        Self { hosts, identity, ends: Some(GatewayEnds { pidfd, status, channel }) }
    }
}

impl Drop for LaunchedGateway {
    fn drop(&mut self) {
        if let Some(GatewayEnds { pidfd, .. }) = &self.ends {
            // An error means that the process has ended.
            let _ = system::signal_process(pidfd.as_fd(), Signal::SIGKILL);
            let _ = waitid(Id::PIDFd(pidfd.as_fd()), WaitPidFlag::WEXITED);
        }
    }
}

type Reports = AsyncIncoming<OwnedReadHalf, GatewayReport>;
type Orders = AsyncOutgoing<OwnedWriteHalf, GatewayOrder>;

/// The gateway of one confined program.
#[derive(Debug)]
pub struct Gateway {
    broker: BrokerProcess,
    reports: Reports,
    /// Its end tells the gateway to end.
    _orders: Orders,
    _status: StatusPipe,
}

impl Gateway {
    /// Orders a gateway, verifies its confinement and waits until it is ready. After an error no process of it is left.
    pub async fn ready(mut launched: LaunchedGateway) -> Result<Self, GatewayError> {
        let GatewayEnds { pidfd, status, channel } = launched.ends.take().ok_or(GatewayError::Ended)?;
        let broker = BrokerProcess::new(pidfd)?;
        let mut status = StatusPipe::new(status)?;
        let channel = StdStream::from(channel);
        channel.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(channel)?.into_split();
        let (mut reports, mut orders) = async_pair(reader, writer, Generation(0));
        let greeted = timeout(START_TIMEOUT, launched.greet(&mut status, &mut reports, &mut orders)).await;
        if let Err(error) = greeted.unwrap_or(Err(GatewayError::Timeout)) {
            broker.end().await?;
            return Err(error);
        }
        Ok(Self { broker, reports, _orders: orders, _status: status })
    }

    /// Returns the next report; `None` once the gateway has ended or said something that is none. Cancel safe.
    pub async fn next(&mut self) -> Option<GatewayReport> {
        self.reports.receive().await.ok().flatten()
    }

    /// Ends the gateway with all its connections.
    pub async fn end(self) -> io::Result<()> {
        self.broker.end().await.map(drop)
    }
}

impl LaunchedGateway {
    /// Gives the gateway its order, and checks that it is confined and ready.
    async fn greet(
        &self,
        status: &mut StatusPipe,
        reports: &mut Reports,
        orders: &mut Orders,
    ) -> Result<(), GatewayError> {
        let pid = match status.started().await? {
            Some(BrokerReport::Started { pid, .. }) => pid,
            Some(BrokerReport::Failed { code, stage, detail, .. }) => {
                return Err(GatewayError::Sandbox { code, stage, detail });
            }
            Some(BrokerReport::Ended { .. } | BrokerReport::Refused(_)) | None => {
                return Err(GatewayError::Ended);
            }
        };
        orders.send(GatewayOrder { hosts: self.hosts.clone() }).await?;
        match reports.receive().await? {
            Some(GatewayReport::Ready) => Ok(verify_confined(pid, self.identity)?),
            Some(_) | None => Err(GatewayError::Ended),
        }
    }
}
