//! The gateway of a confined program: the guest that connects, for it, to the hosts that it may reach by name.
//!
//! It belongs to the start of that program, and ends with it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ipc::confinement::{Confinement, Order};
use ipc::gateway::{GatewayOrder, GatewayReport, MAX_QUESTIONS};
use ipc::rights::{Execution, Hosts, Network, Rights};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use protocol::event::{GuestEnd, GuestRole, HostUse};

use super::guest::{Guest, GuestError, GuestEvent, GuestKind, LaunchedGuest, channel};
use super::guest_log::{GuestLog, GuestOwner};
use super::spawn::Stdio;

/// The reason why an agent has no gateway.
pub type GatewayError = GuestError;

/// A gateway that was started and got no order yet. Dropping this ends it.
pub type LaunchedGateway = LaunchedGuest<GatewayKind>;

/// Messages and flag of a gateway.
#[derive(Debug)]
pub struct GatewayKind;

impl GuestKind for GatewayKind {
    type Order = GatewayOrder;
    type Report = GatewayReport;

    const ROLE: GuestRole = GuestRole::Gateway;
    const FLAG: &'static str = "--gateway";
    /// An answer and an end for each question, twice.
    const QUEUE: usize = 4 * MAX_QUESTIONS;

    fn is_ready(report: &GatewayReport) -> bool {
        matches!(report, GatewayReport::Ready)
    }

    fn hosts(task: &GatewayOrder) -> Option<Hosts> {
        match task {
            GatewayOrder::Start { hosts, .. } => Some(hosts.clone()),
            GatewayOrder::Answer { .. } | GatewayOrder::Close { .. } => None,
        }
    }
}

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

/// The order and descriptors of a gateway to start.
pub(super) struct GatewayPlan {
    pub(super) program: PathBuf,
    pub(super) order: Order,
    pub(super) stdio: Stdio,
    /// The end of the socket that the agent's broker passes connections on.
    pub(super) arrivals: OwnedFd,
    /// The supervisor's end of the socket for orders and reports.
    pub(super) channel: OwnedFd,
    /// The first order.
    pub(super) start: GatewayOrder,
}

impl GatewayPlan {
    /// Plans the gateway of a program that has this confinement and these hosts.
    pub(super) fn new(program: &Path, agent: &Confinement, hosts: &Hosts) -> io::Result<Self> {
        let (arrivals, stdin) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let (channel, stdout) = channel()?;
        let stderr = OpenOptions::new().write(true).open("/dev/null")?.into();
        Ok(Self {
            program: program.to_owned(),
            order: Order {
                confinement: gateway_confinement(program, agent),
                arguments: vec![GatewayKind::FLAG.to_owned()],
            },
            stdio: Stdio::Given { stdin, stdout, stderr },
            arrivals,
            channel,
            start: GatewayOrder::Start { hosts: hosts.clone(), asks: agent.asks_hosts },
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

/// The gateway of one confined program.
#[derive(Debug)]
pub struct Gateway(Box<Guest<GatewayKind>>);

impl Gateway {
    /// Orders a gateway, verifies its confinement and waits until it is ready. After an error no process of it is left.
    pub async fn ready(
        launched: LaunchedGateway,
        of: GuestOwner,
        log: &GuestLog,
    ) -> Result<Self, GatewayError> {
        // Boxed, since a guest may have a gateway, which is a guest.
        Box::pin(Guest::ready(launched, of, log)).await.map(Box::new).map(Self)
    }

    /// Sends an order. A gateway that takes none is ended: its connections must not outlast what they were allowed for.
    pub fn order(&self, order: GatewayOrder) {
        self.0.order(order);
    }

    /// Returns the next report; `None` once the gateway has ended or said something that is none. Cancel safe.
    pub async fn next(&mut self) -> Option<GatewayReport> {
        loop {
            match self.0.next().await {
                GuestEvent::Report(report) => return Some(report),
                // Told by the gateway itself, as an error number of connect(2).
                GuestEvent::Refused(_) => {}
                GuestEvent::Ended => return None,
            }
        }
    }

    /// Ends the gateway with all its connections, because its program has ended. The uses are for the log.
    pub async fn end(mut self, uses: Vec<HostUse>) -> io::Result<()> {
        self.0.used(uses);
        self.0.end(GuestEnd::OwnerEnded).await.map(drop)
    }
}
