//! Connections that the agent's broker passes to the gateway. The broker's messages are not trusted.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use ipc::codec;
use ipc::gateway::{Arrival, MAX_ARRIVAL};
use nix::sys::socket::{
    AddressFamily, SockType, SockaddrLike, SockaddrStorage, getpeername, getsockopt, sockopt,
};
use sandbox_exec::system;
use tokio::io::Interest;

/// Socket (`SOCK_SEQPACKET`) from the broker. tokio has no such type; `UnixDatagram` only waits for messages.
#[derive(Debug)]
pub(super) struct Arrivals(tokio::net::UnixDatagram);

impl Arrivals {
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        tokio::net::UnixDatagram::from_std(socket.into()).map(Self)
    }

    /// Returns the next arrival, and drops invalid messages. `None` once the broker's end is closed. Cancel safe.
    pub(super) async fn next(&self) -> Option<(Arrival, tokio::net::TcpStream)> {
        loop {
            let mut bytes = [0; MAX_ARRIVAL];
            let receive = || Ok(system::receive(self.0.as_fd(), &mut bytes)?);
            match self.0.async_io(Interest::READABLE, receive).await {
                // A message without a byte looks like the end, and counts as it.
                Ok(message) if message.length == 0 => return None,
                Ok(message) => match arrival(message, &bytes) {
                    Ok(arrival) => return Some(arrival),
                    Err(error) => tracing::warn!(%error, "a message is no arrival"),
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::warn!(%error, "no more arrivals");
                    return None;
                }
            }
        }
    }
}

/// Decodes a message with one connection. Fails for an invalid message, and closes its descriptors.
fn arrival(message: system::Received, bytes: &[u8]) -> anyhow::Result<(Arrival, tokio::net::TcpStream)> {
    let [socket] = <[OwnedFd; 1]>::try_from(message.descriptors)
        .map_err(|descriptors| anyhow::anyhow!("{} descriptors", descriptors.len()))?;
    anyhow::ensure!(message.is_whole, "it was cut off");
    let arrival = codec::decode(&bytes[..message.length])?;
    anyhow::ensure!(is_connection(&socket)?, "the descriptor is not a connection");
    let socket = TcpStream::from(socket);
    socket.set_nonblocking(true)?;
    Ok((arrival, tokio::net::TcpStream::from_std(socket)?))
}

/// True if a descriptor is a connected TCP socket.
fn is_connection(socket: &OwnedFd) -> nix::Result<bool> {
    let peer: SockaddrStorage = getpeername(socket.as_raw_fd())?;
    let is_internet = matches!(peer.family(), Some(AddressFamily::Inet | AddressFamily::Inet6));
    Ok(is_internet && getsockopt(socket, sockopt::SockType)? == SockType::Stream)
}
