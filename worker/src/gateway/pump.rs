//! Copies bytes both ways between two sockets until both directions have ended.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::time::Duration;

use ipc::gateway::GatewayFailure;
use nix::sys::socket::{Shutdown, setsockopt, shutdown, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;

use super::outbound::Outbound;
use super::pipe::Pipe;
use super::screen::Answer;

/// Maximum size of a read in bytes.
const AT_ONCE: usize = 16 << 10;

/// Interval of keepalive probes to a client that has ended its sending side.
const STILL_THERE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// Reason why a connection ended before both directions had ended regularly.
#[derive(Debug)]
pub(super) enum Break {
    /// A peer reset the connection or became unreachable.
    Peer(io::Error),
    Gateway(GatewayFailure),
}

impl From<io::Error> for Break {
    fn from(error: io::Error) -> Self {
        Self::Peer(error)
    }
}

impl From<GatewayFailure> for Break {
    fn from(failure: GatewayFailure) -> Self {
        Self::Gateway(failure)
    }
}

/// Copies bytes until both directions have ended. The end of one direction is passed on at once, and the other goes on.
pub(super) async fn pump(
    client: &TcpStream,
    host: &TcpStream,
    outbound: Outbound,
    traffic: &mut Traffic,
) -> Result<(), Break> {
    let (tell, told) = oneshot::channel();
    let tell = outbound.needs_answer().then_some(tell);
    let mut sending = pin!(send(client, host, outbound, told, &mut traffic.sent));
    let mut receiving = pin!(receive(client, host, tell, &mut traffic.received));
    let (mut is_sent, mut is_received) = (false, false);
    while !(is_sent && is_received) {
        tokio::select! {
            sent = &mut sending, if !is_sent => {
                sent?;
                is_sent = true;
                ask_whether_open(client);
            }
            received = &mut receiving, if !is_received => {
                received?;
                is_received = true;
            }
            // A reader sees a reset behind the last bytes; without one it is waited for.
            error = reset(client), if is_sent => return Err(error.into()),
            error = reset(host), if is_received => return Err(error.into()),
        }
    }
    Ok(())
}

async fn send(
    client: &TcpStream,
    host: &TcpStream,
    outbound: Outbound,
    told: oneshot::Receiver<Answer>,
    sent: &mut u64,
) -> Result<(), Break> {
    if outbound.run(client, host, told, sent).await?.is_open() {
        carry(client, host, sent).await?;
    }
    end(host)
}

async fn receive(
    client: &TcpStream,
    host: &TcpStream,
    tell: Option<oneshot::Sender<Answer>>,
    received: &mut u64,
) -> Result<(), Break> {
    if let Some(tell) = tell {
        let mut head = Vec::new();
        let answer = loop {
            let start = head.len();
            if read(host, &mut head).await? == 0 {
                break Answer::Stays;
            }
            write(client, &head[start..], received).await?;
            if let Some(answer) = Answer::read(&head) {
                break answer;
            }
        };
        // Nobody listens if the other direction has ended.
        let _ = tell.send(answer);
    }
    carry(host, client, received).await?;
    end(client)
}

/// Turns on keepalive probes to the client (`SO_KEEPALIVE`, socket(7)). The client's kernel forgets a closed socket
/// after a minute (`tcp_fin_timeout`, tcp(7)), and then answers the next probe with a reset.
fn ask_whether_open(client: &TcpStream) {
    let seconds = u32::try_from(STILL_THERE.as_secs()).unwrap_or(u32::MAX);
    let asked = setsockopt(client, sockopt::TcpKeepIdle, &seconds)
        .and_then(|()| setsockopt(client, sockopt::TcpKeepInterval, &seconds))
        .and_then(|()| setsockopt(client, sockopt::KeepAlive, &true));
    if let Err(error) = asked {
        tracing::debug!(%error, "a closed client may keep its place");
    }
}

pub(super) async fn reset(socket: &TcpStream) -> io::Error {
    let error = socket.ready(Interest::ERROR).await.err().or_else(|| socket.take_error().ok().flatten());
    error.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into())
}

fn end(to: &TcpStream) -> Result<(), Break> {
    Ok(shutdown(to.as_raw_fd(), Shutdown::Write).map_err(io::Error::from)?)
}

async fn carry(from: &TcpStream, to: &TcpStream, count: &mut u64) -> io::Result<()> {
    loop {
        from.readable().await?;
        let pipe = Pipe::take()?;
        let filled = unless_blocked(pipe.fill(from))?;
        let mut left = filled.unwrap_or(0);
        while left > 0 {
            match unless_blocked(pipe.drain(to, left))? {
                Some(drained) => {
                    left -= drained;
                    *count += drained as u64;
                }
                None => to.writable().await?,
            }
        }
        pipe.put_back();
        if filled == Some(0) {
            return Ok(());
        }
        // One fast connection does not keep the others waiting.
        consume_budget().await;
    }
}

pub(super) async fn read(from: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        from.readable().await?;
        bytes.reserve(AT_ONCE);
        if let Some(read) = unless_blocked(from.try_read_buf(bytes))? {
            return Ok(read);
        }
    }
}

pub(super) async fn write(to: &TcpStream, mut bytes: &[u8], count: &mut u64) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        let written = unless_blocked(to.try_write(bytes))?.unwrap_or(0);
        *count += written as u64;
        bytes = &bytes[written..];
    }
    Ok(())
}

fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
