//! Guest around one MCP server: it starts the server and speaks MCP with it. The guest's access is set in the server's
//! settings and does not depend on an agent.

mod admit;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ipc::confinement::Confinement;
use ipc::frame::FrameError;
use ipc::gateway::GatewayReport;
use ipc::mcp::{MAX_OPEN, McpAnswer, McpCommand, McpOrder, McpReport, McpRequest};
use ipc::refusal::Refusal;
use protocol::event::{GuestEnd, GuestRole, HostUse, WorkerEnd};
use tokio::time::timeout;

pub use admit::McpViolation;

use self::admit::Conversation;
use super::gateway::Gateway;
use super::guest::{Guest, GuestError, GuestEvent, GuestKind, GuestSpec};
use super::guest_log::{GuestLog, GuestOwner};
use super::host_uses::HostUses;
use super::spawn::Spawner;

/// Maximum time until the guest accepts an order. Later, the guest counts as stuck.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for the guest to exit by itself when the server is ended. The guest gives the server a little less time.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct McpKind;

impl GuestKind for McpKind {
    type Order = McpOrder;
    type Report = McpReport;

    const ROLE: GuestRole = GuestRole::McpServer;
    const FLAG: &'static str = "--mcp";
    const QUEUE: usize = 8;

    fn is_ready(report: &McpReport) -> bool {
        matches!(report, McpReport::Ready)
    }
}

#[derive(Debug)]
pub struct McpServerSpec {
    pub name: String,
    /// Path of the worker's program. It must be readable and executable under the confinement.
    pub program: PathBuf,
    pub confinement: Confinement,
    pub command: McpCommand,
    pub log: GuestLog,
}

#[derive(Debug)]
pub enum McpEvent {
    Report(McpReport),
    /// System calls that were denied to the server and its descendants.
    Refused(Vec<Refusal>),
    HostUsed(HostUse),
    /// The guest has ended or sent an invalid message. No event follows.
    Ended(McpEnd),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpEnd {
    Closed,
    Violation(McpViolation),
    GatewayGone,
}

#[derive(Debug, thiserror::Error)]
pub enum McpOrderError {
    #[error("{MAX_OPEN} requests are open already")]
    TooMany,
    #[error("the process around the MCP server accepted no request within {} s", SEND_TIMEOUT.as_secs())]
    Stuck,
    /// The guest has ended, or the order exceeds the maximum frame size.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

#[derive(Debug)]
pub struct McpEnded {
    pub end: io::Result<WorkerEnd>,
    pub refused: Vec<Refusal>,
    pub hosts: Vec<HostUse>,
    pub open: Vec<u64>,
}

#[derive(Debug)]
pub struct McpServerProcess {
    // Before the guest, so that its end is logged first.
    gateway: Option<Gateway>,
    guest: Guest<McpKind>,
    uses: HostUses,
    conversation: Conversation,
    last: u64,
    violation: Option<McpViolation>,
}

impl McpServerProcess {
    /// Starts the guest. The guest starts the server. After an error no process of the guest remains.
    pub async fn start(spawner: &Spawner, spec: McpServerSpec) -> Result<Self, GuestError> {
        let McpServerSpec { name, program, confinement, command, log } = spec;
        let order = McpOrder::Start(command);
        let spec = GuestSpec { program, confinement, order, of: GuestOwner::named(name), log };
        let (mut guest, gateway) = Guest::start(spawner, spec).await?;
        guest.totals().calls = Some(0);
        Ok(Self {
            gateway,
            guest,
            uses: HostUses::default(),
            conversation: Conversation::new(),
            last: 0,
            violation: None,
        })
    }

    /// Sends a request, and returns its number. Until the server is initialised, the guest queues requests.
    pub async fn request(&mut self, what: McpRequest) -> Result<u64, McpOrderError> {
        if self.conversation.open().len() >= MAX_OPEN {
            return Err(McpOrderError::TooMany);
        }
        let request = self.last + 1;
        let is_call = matches!(what, McpRequest::CallTool { .. });
        self.send(McpOrder::Request { request, what }).await?;
        self.last = request;
        self.conversation.opened(request);
        if is_call && let Some(calls) = &mut self.guest.totals().calls {
            *calls += 1;
        }
        Ok(request)
    }

    /// Cancels a request. The guest still answers it with one `Done`.
    pub async fn cancel(&mut self, request: u64) -> Result<(), McpOrderError> {
        self.send(McpOrder::Cancel { request }).await
    }

    pub async fn answer(&mut self, question: u64, answer: McpAnswer) -> Result<(), McpOrderError> {
        self.send(McpOrder::Answer { question, answer }).await
    }

    pub async fn next(&mut self) -> McpEvent {
        loop {
            let event = tokio::select! {
                event = self.guest.next() => event,
                report = next_report(self.gateway.as_mut()) => {
                    let Some(report) = report else { return McpEvent::Ended(McpEnd::GatewayGone) };
                    match self.uses.count(report) {
                        Some(first) => return McpEvent::HostUsed(first),
                        None => continue,
                    }
                }
            };
            return match event {
                GuestEvent::Report(report) => match self.conversation.admit(&report) {
                    Ok(()) => McpEvent::Report(report),
                    Err(violation) => {
                        self.violation = Some(violation);
                        McpEvent::Ended(McpEnd::Violation(violation))
                    }
                },
                GuestEvent::Refused(refused) if refused.is_empty() => continue,
                GuestEvent::Refused(refused) => McpEvent::Refused(refused),
                GuestEvent::Ended => McpEvent::Ended(McpEnd::Closed),
            };
        }
    }

    /// Ends the server, its descendants and its connections. The server first gets two seconds to exit by itself.
    pub async fn end(self, reason: GuestEnd) -> McpEnded {
        let Self { mut guest, gateway, mut uses, conversation, violation, .. } = self;
        let reason = if let Some(violation) = violation {
            GuestEnd::Violation { violation: violation.to_string() }
        } else {
            guest.close(GRACE).await;
            reason
        };
        let (end, refused, _logged) = guest.end_telling(reason).await;
        // The end of the gateway is logged before that of the server.
        if let Some(gateway) = gateway {
            uses.end_gateway(gateway).await;
        }
        McpEnded { end, refused, hosts: uses.all(), open: conversation.open() }
    }

    async fn send(&mut self, order: McpOrder) -> Result<(), McpOrderError> {
        Ok(timeout(SEND_TIMEOUT, self.guest.send(order)).await.map_err(|_| McpOrderError::Stuck)??)
    }
}

async fn next_report(gateway: Option<&mut Gateway>) -> Option<GatewayReport> {
    match gateway {
        Some(gateway) => gateway.next().await,
        None => std::future::pending().await,
    }
}
