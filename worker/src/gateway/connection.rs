//! One connection between a sandboxed program and a host.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ipc::gateway::{Arrival, GatewayFailure, GatewayReport};
use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::QueuedReport;
use super::dial;
use super::outbound::Outbound;
use super::pump::{Break, Traffic, pump, reset};
use super::questions::Leave;
use super::screen::Screen;

/// Time that a connection attempt goes on after the client ended its side: enough for one lost packet (RFC 6298 §2.1).
const WITHOUT_CLIENT: Duration = Duration::from_secs(2);

/// Connection of a client to a host that is on the list of allowed hosts, or that the user may allow.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) arrival: Arrival,
    pub(super) client: TcpStream,
    /// The user's permission; `None` if the host is on the list.
    pub(super) leave: Option<Leave>,
    /// First bytes for the host, which the client has already sent.
    pub(super) held: Vec<u8>,
}

impl Connection {
    /// Connects to the host, copies bytes in both directions, and reports the connection and its end.
    pub(super) async fn run(self, reports: mpsc::Sender<QueuedReport>) {
        let Self { number: connection, arrival, client, mut leave, held } = self;
        prepare(&client);
        if let Some(leave) = &mut leave
            && (!leave.is_given().await || is_gone(&client).await)
        {
            return;
        }
        let opened = tokio::select! {
            opened = open(&arrival, &client, held) => opened,
            () = given_up(&client) => Err(GatewayFailure::ClientClosed),
            () = is_taken_back(leave.as_mut()) => return,
        };
        let (host, address, outbound) = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                let report = GatewayReport::Failed { arrival, failure };
                let _ = reports.send(QueuedReport::before_end_of(client, report)).await;
                return;
            }
        };
        if reports.send(GatewayReport::Connected { connection, arrival, address }.into()).await.is_err() {
            return;
        }
        let mut traffic = Traffic::default();
        let pumped = tokio::select! {
            pumped = pump(&client, &host, outbound, &mut traffic) => Some(pumped),
            () = is_taken_back(leave.as_mut()) => None,
        };
        let failure = match pumped.unwrap_or_else(|| Err(taken_back().into())) {
            Ok(()) => {
                reset_when_closed(&client, false);
                reset_when_closed(&host, false);
                None
            }
            Err(Break::Peer(error)) => {
                tracing::debug!(%error, connection, "a peer ended its connection");
                None
            }
            Err(Break::Gateway(failure)) => Some(failure),
        };
        drop(host);
        let Traffic { sent, received } = traffic;
        let has_failed = failure.is_some();
        let report = GatewayReport::Ended { connection, sent, received, failure };
        let queued = if has_failed {
            QueuedReport::before_end_of(client, report)
        } else {
            drop(client);
            report.into()
        };
        let _ = reports.send(queued).await;
    }
}

/// Waits until the permission is withdrawn. Never returns if the connection needs none.
async fn is_taken_back(leave: Option<&mut Leave>) {
    match leave {
        Some(leave) => leave.is_taken_back().await,
        None => std::future::pending().await,
    }
}

fn taken_back() -> io::Error {
    io::Error::other("the permission for this connection was withdrawn")
}

/// True if the client has closed or reset the connection.
async fn is_gone(client: &TcpStream) -> bool {
    // It can be written to at once, whatever it has sent.
    let ready = client.ready(Interest::READABLE | Interest::WRITABLE).await;
    ready.is_ok_and(|ready| ready.is_read_closed() || ready.is_error())
}

/// Connects to the host. If the port requires it, first checks the client's first message.
async fn open(
    arrival: &Arrival,
    client: &TcpStream,
    held: Vec<u8>,
) -> Result<(TcpStream, SocketAddr, Outbound), GatewayFailure> {
    let Arrival { name, port, .. } = arrival;
    let mut outbound = Outbound::new(Screen::new(name.clone(), *port), held);
    let (addresses, ()) = tokio::try_join!(dial::resolve(name, *port), outbound.first(client))?;
    let (host, address) = dial::connect(addresses).await?;
    prepare(&host);
    Ok((host, address, outbound))
}

/// Waits until the client has reset its connection, or has ended its side [`WITHOUT_CLIENT`] ago.
///
/// The wait is needed since a closed socket cannot be told from one that only its writing side ended, with a program
/// that still waits for an answer.
async fn given_up(client: &TcpStream) {
    let ended = async {
        // The end of the peer's direction counts as this readiness, and bytes before it do not.
        let _ = client.ready(Interest::PRIORITY).await;
        sleep(WITHOUT_CLIENT).await;
    };
    tokio::select! {
        _ = reset(client) => {}
        () = ended => {}
    }
}

/// Disables Nagle's algorithm. Makes the kernel reset the connection if this process or task is killed.
fn prepare(socket: &TcpStream) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "small messages may wait");
    }
    reset_when_closed(socket, true);
}

/// Chooses if closing resets the connection (`SO_LINGER`, socket(7)); otherwise the kernel still sends queued bytes.
pub(super) fn reset_when_closed(socket: &TcpStream, resets: bool) {
    let linger = linger { l_onoff: resets.into(), l_linger: 0 };
    if let Err(error) = setsockopt(socket, sockopt::Linger, &linger) {
        tracing::debug!(%error, "a connection ends by the kernel's default");
    }
}
