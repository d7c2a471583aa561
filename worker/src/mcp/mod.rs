//! The guest around one MCP server: starts the server as its child, and speaks MCP with it.
//!
//! The supervisor parses nothing that the server wrote. Rules, in this order:
//!
//! 1. A line of the server has at most [`ipc::mcp::MAX_LINE`] bytes, is UTF-8, and is one message of MCP. A few lines
//!    of text may come before the first message; the second broken line afterwards ends the server.
//! 2. An answer to no open request is dropped.
//! 3. Every request has a deadline, which progress extends up to a bound. While the user is asked, time stops.
//! 4. Definitions and results are within the bounds of [`ipc::mcp`]; otherwise the server or the request has failed.
//!
//! Only the directory `client` uses the crate `rmcp`. Sampling, roots and logging are not offered.

mod client;
mod lines;
mod said;
mod server;
mod state;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ipc::frame::FrameError;
use ipc::id::Generation;
use ipc::mcp::{McpCommand, McpFailure, McpOrder, McpReport};
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, async_pair};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use client::{Ready, Request};
use server::Server;
use state::GuestState;

/// Maximum number of queued reports to the supervisor.
const REPORTS: usize = 64;

/// Maximum time in which open requests have to fail after the server has ended.
const LAST_REPORTS: Duration = Duration::from_secs(2);

/// Maximum time that the guest goes on running after its last report.
const LAST_LOOK: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub handshake: Duration,
    pub listing: Duration,
    /// Maximum time without an answer since the request or the server's last progress report.
    pub request: Duration,
    /// Maximum time for a request, even if the server reports progress.
    pub total: Duration,
    /// Time for which a server may go on after its standard input was closed; then it is killed.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            handshake: Duration::from_mins(1),
            listing: Duration::from_mins(1),
            request: Duration::from_mins(2),
            total: Duration::from_mins(10),
            grace: Duration::from_millis(1500),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum McpError {
    #[error("the supervisor closed the connection before its first message")]
    NoOrder,
    /// The first order is not `Start`, or a later one is, or an order has the number of an open request.
    #[error("an order that is not allowed now")]
    Order,
    #[error(transparent)]
    Frame(#[from] FrameError),
}

pub async fn serve<R, W>(reader: R, writer: W, patience: Patience) -> Result<(), McpError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut orders, outgoing) = async_pair(reader, writer, Generation(0));
    let McpOrder::Start(command) = orders.receive().await?.ok_or(McpError::NoOrder)? else {
        return Err(McpError::Order);
    };
    let (reports, queue) = mpsc::channel(REPORTS);
    // Sent even if nothing is read yet: the queue is empty.
    let _ = reports.try_send(McpReport::Ready);
    let state = Arc::new(GuestState::new(reports));
    let ended = tokio::select! {
        written = write(outgoing, queue) => written.map_err(McpError::from),
        served = run(&mut orders, &command, &state, patience) => served,
    };
    if ended.is_ok() {
        // The supervisor looks at this process after the first report, also where the last one followed at once.
        let _ = timeout(LAST_LOOK, async { while let Ok(Some(_)) = orders.receive().await {} }).await;
    }
    match ended {
        Err(McpError::Frame(FrameError::Io(error))) if is_end(&error) => Ok(()),
        ended => ended,
    }
}

/// True if the error means that the peer closed the socket while bytes were in transit.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

async fn write<W: AsyncWrite + Unpin>(
    mut outgoing: AsyncOutgoing<W, McpReport>,
    mut queue: mpsc::Receiver<McpReport>,
) -> Result<(), FrameError> {
    while let Some(report) = queue.recv().await {
        let is_last = matches!(report, McpReport::Gone(_));
        outgoing.send(report).await?;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Starts the server and carries out orders. Once the server has ended, [`gone`] reports that, and this never returns.
async fn run<R: AsyncRead + Unpin>(
    orders: &mut AsyncIncoming<R, McpOrder>,
    command: &McpCommand,
    state: &Arc<GuestState>,
    patience: Patience,
) -> Result<(), McpError> {
    let mut server = match Server::start(command) {
        Ok(server) => server,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or_default();
            return gone(state, McpFailure::NotStarted { errno }).await;
        }
    };
    let (ready, readiness) = watch::channel(None);
    let mut requests = JoinSet::new();
    let failed = {
        let talk = talk(&mut server, state, patience, ready);
        tokio::pin!(talk);
        loop {
            tokio::select! {
                order = orders.receive() => match order? {
                    Some(order) => take(order, state, &readiness, patience, &mut requests)?,
                    None => break None,
                },
                // A task that panicked left its request open; the supervisor fails it with the guest.
                Some(_) = requests.join_next() => {}
                failure = &mut talk => break Some(failure),
            }
        }
    };
    server.end(if failed.is_some() { Duration::ZERO } else { patience.grace }).await;
    let Some(failure) = failed else { return Ok(()) };
    state.fail_all(failure.clone());
    let _ = timeout(LAST_REPORTS, async { while requests.join_next().await.is_some() {} }).await;
    gone(state, failure).await
}

/// Sends the last report, and never returns: the writer ends the guest once the report is written.
async fn gone(state: &GuestState, failure: McpFailure) -> Result<(), McpError> {
    state.report(McpReport::Gone(failure)).await;
    std::future::pending().await
}

fn take(
    order: McpOrder,
    state: &Arc<GuestState>,
    readiness: &watch::Receiver<Option<Ready>>,
    patience: Patience,
    requests: &mut JoinSet<()>,
) -> Result<(), McpError> {
    match order {
        McpOrder::Start(_) => return Err(McpError::Order),
        McpOrder::Request { request, what } => {
            let opened = state.open(request).ok_or(McpError::Order)?;
            let request = Request {
                number: request,
                opened,
                state: Arc::clone(state),
                ready: readiness.clone(),
                patience,
            };
            requests.spawn(request.carry_out(what));
        }
        McpOrder::Cancel { request } => state.cancel(request),
        McpOrder::Answer { question, answer } => state.answer(question, answer),
    }
    Ok(())
}

/// Maximum time between the end of the server's process and that of its standard output, whichever comes first.
const EITHER_END: Duration = Duration::from_millis(500);

/// Speaks with the server until it ends or fails. Returns the reason.
async fn talk(
    server: &mut Server,
    state: &Arc<GuestState>,
    patience: Patience,
    ready: watch::Sender<Option<Ready>>,
) -> McpFailure {
    let Some(streams) = server.streams() else {
        return McpFailure::Broken("the server has no standard streams".to_owned());
    };
    let spoken = client::speak(streams, Arc::clone(state), patience, ready);
    tokio::pin!(spoken);
    tokio::select! {
        failure = &mut spoken => match failure.or_else(|| state.fault()) {
            Some(failure) => failure,
            None => match timeout(EITHER_END, server.ended()).await {
                Ok(ended) => ended,
                Err(_) => McpFailure::Broken("the server closed its standard output, but kept running".to_owned()),
            },
        },
        ended = server.ended() => {
            // Answers that it wrote before its end are still in the pipe.
            let last = timeout(EITHER_END, spoken).await.ok().flatten();
            last.or_else(|| state.fault()).unwrap_or(ended)
        }
    }
}
