//! The gateway: a guest that connects to allowed hosts for a confined program without network access.

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

pub type GatewayError = GuestError;

pub type LaunchedGateway = LaunchedGuest<GatewayKind>;

#[derive(Debug)]
pub struct GatewayKind;

impl GuestKind for GatewayKind {
    type Order = GatewayOrder;
    type Report = GatewayReport;

    const ROLE: GuestRole = GuestRole::Gateway;
    const FLAG: &'static str = "--gateway";
    /// Maximum number of queued orders: twice the most that open questions can have, an answer and a withdrawal each.
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

/// Files and directories that the gateway reads: for the dynamic loader, and for name resolution by the C library.
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

pub(super) struct GatewayPlan {
    pub(super) program: PathBuf,
    pub(super) order: Order,
    pub(super) stdio: Stdio,
    /// Socket on which the broker passes the agent's connections to the gateway: the broker's side.
    pub(super) arrivals: OwnedFd,
    pub(super) channel: OwnedFd,
    pub(super) start: GatewayOrder,
}

impl GatewayPlan {
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

/// Returns the confinement of an agent's gateway. The gateway may connect to the addresses that the agent may reach,
/// runs no commands, and reads only the resolver's files and its own program.
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

#[derive(Debug)]
pub struct Gateway(Box<Guest<GatewayKind>>);

impl Gateway {
    /// Sends the first order and waits until the gateway is verified and ready. After an error, no process remains.
    pub async fn ready(
        launched: LaunchedGateway,
        of: GuestOwner,
        log: &GuestLog,
    ) -> Result<Self, GatewayError> {
        // Boxed, since a guest may have a gateway, which is a guest.
        Box::pin(Guest::ready(launched, of, log)).await.map(Box::new).map(Self)
    }

    /// Sends an order. Ends a gateway that has not read earlier ones: it might keep connections that are not allowed
    /// now.
    pub fn order(&self, order: GatewayOrder) {
        self.0.order(order);
    }

    /// Returns the gateway's next report. `None` once the gateway has ended or sent an invalid report. Cancel safe.
    pub async fn next(&mut self) -> Option<GatewayReport> {
        loop {
            match self.0.next().await {
                GuestEvent::Report(report) => return Some(report),
                // The gateway itself reports these, as error numbers of connect(2).
                GuestEvent::Refused(_) => {}
                GuestEvent::Ended => return None,
            }
        }
    }

    pub async fn end(mut self, uses: Vec<HostUse>) -> io::Result<()> {
        self.0.used(uses);
        self.0.end(GuestEnd::OwnerEnded).await.map(drop)
    }
}
