//! One connection, from its arrival to its end.

use std::net::SocketAddr;

use ipc::gateway::{Arrival, GatewayFailure, GatewayReport};
use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::dial;
use super::outbound::Outbound;
use super::pump::{Break, Traffic, pump};
use super::screen::Screen;

/// A connection that was accepted inside, for a host that is on the list.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) arrival: Arrival,
    pub(super) client: TcpStream,
}

impl Connection {
    /// Connects to the host and carries bytes until the end. Reports both; if nobody reads the reports, nothing more is carried.
    pub(super) async fn run(self, reports: mpsc::Sender<GatewayReport>) {
        let Self { number: connection, arrival, client } = self;
        prepare(&client);
        let (host, address, outbound) = match open(&arrival, &client).await {
            Ok(opened) => opened,
            Err(failure) => {
                // Told first, so that the reason is known when the client sees its connection reset.
                let _ = reports.send(GatewayReport::Failed { arrival, failure }).await;
                return;
            }
        };
        if reports.send(GatewayReport::Connected { connection, arrival, address }).await.is_err() {
            return;
        }
        let mut traffic = Traffic::default();
        let failure = match pump(&client, &host, outbound, &mut traffic).await {
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
        drop((client, host));
        let Traffic { sent, received } = traffic;
        let _ = reports.send(GatewayReport::Ended { connection, sent, received, failure }).await;
    }
}

/// Judges the first message, where there has to be one, and connects to the host.
async fn open(
    arrival: &Arrival,
    client: &TcpStream,
) -> Result<(TcpStream, SocketAddr, Outbound), GatewayFailure> {
    let Arrival { name, port, .. } = arrival;
    let mut outbound = Outbound::new(Screen::new(name.clone(), *port));
    let (addresses, ()) = tokio::try_join!(dial::resolve(name, *port), outbound.first(client))?;
    let (host, address) = dial::connect(addresses).await?;
    prepare(&host);
    Ok((host, address, outbound))
}

/// Sets a socket to send at once, and to reset its connection however this process or task ends.
fn prepare(socket: &TcpStream) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "small messages may wait");
    }
    reset_when_closed(socket, true);
}

/// Sets whether closing a socket resets its connection, or sends what is left and ends it (`SO_LINGER`, socket(7)).
pub(super) fn reset_when_closed(socket: &TcpStream, resets: bool) {
    let linger = linger { l_onoff: resets.into(), l_linger: 0 };
    if let Err(error) = setsockopt(socket, sockopt::Linger, &linger) {
        tracing::debug!(%error, "a connection ends by the kernel's default");
    }
}
