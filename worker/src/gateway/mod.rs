//! The gateway: connects, for one agent, to the hosts that the agent may reach by name.
//!
//! It gets connections from programs in the sandbox, each with the host's name and port. Policy, in this order:
//!
//! 1. The name and port have to be on the agent's list, unless the supervisor allows them ([`questions`]).
//! 2. On ports 443 and 80 the first message has to name the same host; [`screen`] has the rules of all ports.
//! 3. The machine's resolver returns the addresses; the sandbox (kernel and broker) decides which may be reached.
//! 4. Bytes are carried unchanged until both directions have ended. Any other end resets both sides.
//!
//! Not checked: names inside TLS, where the certificate's owner reads them (a `Host` field of another site of the same
//! front, the inner hello of Encrypted Client Hello behind a listed outer name); TLS that starts inside another
//! protocol (`STARTTLS`); and on other ports than 443 and 80 all names, except in a first `ClientHello`. On port 80 a
//! switch to WebSocket ends the checks of requests. Only the first request of a connection can ask for it, and a switch
//! to another protocol ends the connection.

mod arrivals;
mod connection;
pub(crate) mod dial;
mod outbound;
mod pipe;
mod proxy;
mod pump;
mod questions;
mod screen;

use std::io;
use std::os::fd::OwnedFd;

use ipc::frame::FrameError;
use ipc::gateway::{Arrival, GatewayFailure, GatewayOrder, GatewayReport};
use ipc::id::Generation;
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, async_pair};
use ipc::rights::Hosts;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, Permit};
use tokio::task::{JoinError, JoinSet};

use arrivals::Arrivals;
use connection::{Connection, reset_when_closed};
use proxy::Proxied;
use questions::{Leave, Placed, Questions};

const MAX_CONNECTIONS: usize = 512;

/// Limit of open descriptors for [`MAX_CONNECTIONS`]. Each connection needs two sockets, and two pipe ends for each
/// direction in which the peer does not read; the resolver and connection attempts need more.
const DESCRIPTORS: u64 = 8 * MAX_CONNECTIONS as u64;

/// Maximum number of queued reports to the supervisor.
const REPORTS: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("the supervisor closed the connection before its first message")]
    NoOrder,
    #[error("the supervisor sent its first message twice")]
    SecondOrder,
    /// The supervisor sent an invalid order, or a report could not be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Waiting for connections from the sandbox failed.
    #[error("cannot wait for connections: {0}")]
    Arrivals(#[source] io::Error),
    #[error("a task failed: {0}")]
    Task(#[from] JoinError),
}

/// Serves connections until the supervisor closes its end of the channel. All open connections are then reset.
pub async fn serve<R, W>(arrivals: OwnedFd, reader: R, writer: W) -> Result<(), GatewayError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (mut incoming, outgoing) = async_pair(reader, writer, Generation(0));
    let Some(GatewayOrder::Start { hosts, asks }) = incoming.receive().await? else {
        return Err(GatewayError::NoOrder);
    };
    let arrivals = Arrivals::new(arrivals).map_err(GatewayError::Arrivals)?;
    raise_limit();
    let (reports, queue) = mpsc::channel(REPORTS);
    // Sent even if nothing is read yet: the queue is empty.
    let _ = reports.try_send(GatewayReport::Ready.into());
    let questions = asks.then(Questions::new);
    let mut gateway = Gateway { hosts, questions, reports, connections: JoinSet::new(), last: 0 };
    let ended = tokio::select! {
        written = write(outgoing, queue) => written.map_err(GatewayError::from),
        served = gateway.serve(&mut incoming, arrivals) => served,
    };
    match ended {
        Err(GatewayError::Frame(FrameError::Io(error))) if is_end(&error) => Ok(()),
        ended => ended,
    }
}

/// True if the error means that the peer closed the socket while bytes were in transit.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// A report that waits to be written to the supervisor.
#[derive(Debug)]
struct QueuedReport {
    report: GatewayReport,
    /// Connection of the program, closed once the report is written; `None` if the report closes none. A program whose
    /// connection is reset may end at once, and what the supervisor reads much later counts for no command.
    client: Option<TcpStream>,
}

impl From<GatewayReport> for QueuedReport {
    fn from(report: GatewayReport) -> Self {
        Self { report, client: None }
    }
}

impl QueuedReport {
    const fn before_end_of(client: TcpStream, report: GatewayReport) -> Self {
        Self { report, client: Some(client) }
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut outgoing: AsyncOutgoing<W, GatewayReport>,
    mut queue: mpsc::Receiver<QueuedReport>,
) -> Result<(), FrameError> {
    while let Some(QueuedReport { report, client }) = queue.recv().await {
        outgoing.send(report).await?;
        drop(client);
    }
    Ok(())
}

/// Raises the limit of open descriptors: the default of 1,024 is too low for [`MAX_CONNECTIONS`].
fn raise_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(DESCRIPTORS)), hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "fewer connections than usual");
    }
}

#[derive(Debug)]
struct Gateway {
    hosts: Hosts,
    questions: Option<Questions>,
    reports: mpsc::Sender<QueuedReport>,
    connections: JoinSet<()>,
    last: u64,
}

impl Gateway {
    async fn serve<R: AsyncRead + Unpin>(
        &mut self,
        incoming: &mut AsyncIncoming<R, GatewayOrder>,
        arrivals: Arrivals,
    ) -> Result<(), GatewayError> {
        let mut arrivals = Some(arrivals);
        loop {
            let reports = self.reports.clone();
            tokio::select! {
                order = incoming.receive() => match order? {
                    Some(order) => self.follow(&order)?,
                    None => return Ok(()),
                },
                Some(ended) = self.connections.join_next() => ended?,
                arrived = next(arrivals.as_ref(), &reports) => match arrived {
                    Some((report, arrival, client)) => self.take(report, arrival, client),
                    None => arrivals = None,
                },
            }
        }
    }

    fn follow(&mut self, order: &GatewayOrder) -> Result<(), GatewayError> {
        match (order, &mut self.questions) {
            (GatewayOrder::Start { .. }, _) => return Err(GatewayError::SecondOrder),
            (GatewayOrder::Answer { question, allowed }, Some(questions)) => {
                questions.answer(*question, *allowed);
            }
            (GatewayOrder::Close { question }, Some(questions)) => questions.close(*question),
            (GatewayOrder::Answer { .. } | GatewayOrder::Close { .. }, None) => {}
        }
        Ok(())
    }

    fn take(&mut self, report: Permit<'_, QueuedReport>, arrival: Arrival, client: TcpStream) {
        reset_when_closed(&client, true);
        self.last += 1;
        let listed = self.hosts.allows(&arrival.name, arrival.port);
        let failure = if self.connections.len() >= MAX_CONNECTIONS {
            GatewayFailure::TooMany
        } else if proxy::is_meant(&arrival) {
            let proxied = Proxied { number: self.last, arrival, client, hosts: self.hosts.clone() };
            self.connections.spawn(proxied.run(self.reports.clone()));
            return;
        } else if listed {
            self.connect(arrival, client, None);
            return;
        } else {
            match self.questions.as_mut().map(|questions| questions.place(&arrival)) {
                Some(Placed::Waits(leave, asked)) => {
                    if let Some(question) = asked {
                        report.send(GatewayReport::Asked { question, arrival: arrival.clone() }.into());
                    }
                    self.connect(arrival, client, Some(leave));
                    return;
                }
                // The supervisor knows its own answer.
                Some(Placed::Denied) => return,
                Some(Placed::TooMany) | None => GatewayFailure::NotListed,
            }
        };
        report.send(QueuedReport::before_end_of(client, GatewayReport::Failed { arrival, failure }));
    }

    fn connect(&mut self, arrival: Arrival, client: TcpStream, leave: Option<Leave>) {
        let connection = Connection { number: self.last, arrival, client, leave, held: vec![] };
        self.connections.spawn(connection.run(self.reports.clone()));
    }
}

/// Waits for space in the queue of reports, and then for a connection. So no connection is accepted while the
/// supervisor does not read. `None` at the end of the connections; never returns if `arrivals` is `None`.
async fn next<'a>(
    arrivals: Option<&Arrivals>,
    reports: &'a mpsc::Sender<QueuedReport>,
) -> Option<(Permit<'a, QueuedReport>, Arrival, TcpStream)> {
    let (Some(arrivals), Ok(report)) = (arrivals, reports.reserve().await) else {
        return std::future::pending().await;
    };
    let (arrival, client) = arrivals.next().await?;
    Some((report, arrival, client))
}
