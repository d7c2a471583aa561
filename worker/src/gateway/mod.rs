//! The gateway: connects, for one agent, to the hosts that the agent may reach by name.
//!
//! Its input is connections that were accepted inside, each with the name and port that a program meant. Policy, in this order:
//!
//! 1. The name and port are on the list, or nothing is looked up.
//! 2. On ports 443 and 80 the first message names the same host, or nothing is dialled; [`screen`] has the rules of all ports.
//! 3. The machine's resolver says the addresses, and the kernel and the broker whether one may be connected to.
//! 4. Bytes are carried unchanged until both directions have ended. Every other end resets both sides.
//!
//! Not held: names inside TLS, where the certificate's owner reads them (a `Host` field of another site of the same front, the
//! inner hello of Encrypted Client Hello behind a listed outer name); TLS that starts inside another protocol (`STARTTLS`); and on
//! ports other than 443 and 80 every name but that of a first hello. On port 80 a switch to WebSocket ends the judgement of
//! requests, only the first request of a connection can ask for it, and a switch to another protocol ends the connection.

mod arrivals;
mod connection;
mod dial;
mod outbound;
mod pipe;
mod pump;
mod screen;

use std::io;
use std::os::fd::OwnedFd;

use ipc::frame::FrameError;
use ipc::gateway::{Arrival, GatewayFailure, GatewayOrder, GatewayReport};
use ipc::id::Generation;
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, async_pair};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, Permit};
use tokio::task::{JoinError, JoinSet};

use arrivals::Arrivals;
use connection::{Connection, reset_when_closed};

/// Maximum number of connections at a time.
const MAX_CONNECTIONS: usize = 512;

/// Descriptors that so many connections need: two sockets each, two ends of a pipe for each direction that a peer holds up, and
/// those of the resolver and of attempts to connect.
const DESCRIPTORS: u64 = 8 * MAX_CONNECTIONS as u64;

/// Maximum number of reports that wait for the supervisor.
const REPORTS: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The supervisor closed the connection without an order.
    #[error("the supervisor gave no order")]
    NoOrder,
    /// The supervisor sent something after its order.
    #[error("a second order may not come")]
    SecondOrder,
    /// The input is no order, or a report could not be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Standard input cannot be waited for.
    #[error("cannot wait for connections: {0}")]
    Arrivals(#[source] io::Error),
    /// A task panicked.
    #[error("a task failed: {0}")]
    Task(#[from] JoinError),
}

/// Connects for the arrivals of a socket until the supervisor closes its end. Open connections are reset then, since their tasks
/// are dropped.
pub async fn serve<R, W>(arrivals: OwnedFd, reader: R, writer: W) -> Result<(), GatewayError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (mut incoming, outgoing) = async_pair(reader, writer, Generation(0));
    let order = incoming.receive().await?.ok_or(GatewayError::NoOrder)?;
    let arrivals = Arrivals::new(arrivals).map_err(GatewayError::Arrivals)?;
    raise_limit();
    let (reports, queue) = mpsc::channel(REPORTS);
    // Sent even if nothing is read yet: the queue is empty.
    let _ = reports.try_send(GatewayReport::Ready);
    let mut gateway = Gateway { order, reports, connections: JoinSet::new(), last: 0 };
    let ended = tokio::select! {
        written = write(outgoing, queue) => written.map_err(GatewayError::from),
        served = gateway.serve(&mut incoming, arrivals) => served,
    };
    match ended {
        Err(GatewayError::Frame(FrameError::Io(error))) if is_end(&error) => Ok(()),
        ended => ended,
    }
}

/// True for the errors by which a socket says that the peer closed it with bytes on their way.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

async fn write<W: AsyncWrite + Unpin>(
    mut outgoing: AsyncOutgoing<W, GatewayReport>,
    mut queue: mpsc::Receiver<GatewayReport>,
) -> Result<(), FrameError> {
    while let Some(report) = queue.recv().await {
        outgoing.send(report).await?;
    }
    Ok(())
}

/// Raises the limit of open descriptors, whose default of 1,024 is less than two for each connection.
fn raise_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(DESCRIPTORS)), hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "fewer connections than usual");
    }
}

#[derive(Debug)]
struct Gateway {
    order: GatewayOrder,
    reports: mpsc::Sender<GatewayReport>,
    /// One task for each connection.
    connections: JoinSet<()>,
    /// Number of the last arrival.
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
                order = incoming.receive() => return order?.map_or(Ok(()), |_| Err(GatewayError::SecondOrder)),
                Some(ended) = self.connections.join_next() => ended?,
                arrived = next(arrivals.as_ref(), &reports) => match arrived {
                    Some((report, arrival, client)) => self.take(report, arrival, client),
                    None => arrivals = None,
                },
            }
        }
    }

    fn take(&mut self, report: Permit<'_, GatewayReport>, arrival: Arrival, client: TcpStream) {
        reset_when_closed(&client, true);
        self.last += 1;
        let failure = if self.connections.len() >= MAX_CONNECTIONS {
            GatewayFailure::TooMany
        } else if !self.order.hosts.allows(&arrival.name, arrival.port) {
            GatewayFailure::NotListed
        } else {
            let connection = Connection { number: self.last, arrival, client };
            self.connections.spawn(connection.run(self.reports.clone()));
            return;
        };
        report.send(GatewayReport::Failed { arrival, failure });
    }
}

/// Waits for room for a report, and then for an arrival: while the supervisor reads none, no connection is taken. Never
/// ends if there are no arrivals any more.
async fn next<'a>(
    arrivals: Option<&Arrivals>,
    reports: &'a mpsc::Sender<GatewayReport>,
) -> Option<(Permit<'a, GatewayReport>, Arrival, TcpStream)> {
    let (Some(arrivals), Ok(report)) = (arrivals, reports.reserve().await) else {
        return std::future::pending().await;
    };
    let (arrival, client) = arrivals.next().await?;
    Some((report, arrival, client))
}
