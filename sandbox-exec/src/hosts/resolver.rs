use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::names::NamedHosts;
use super::question::{MAX_QUESTION, answer};

/// Maximum number of datagrams that are answered in one turn.
const MOST_DATAGRAMS: usize = 64;
// Maximum number of connections, and the time that each may stay open.
const MOST_CONNECTIONS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(5);
/// Size in bytes of the length that precedes a message on a connection (RFC 1035, 4.2.2).
const LENGTH: usize = 2;

#[derive(Debug)]
pub(super) struct Resolver {
    datagrams: Vec<UdpSocket>,
    streams: Vec<TcpListener>,
    asking: Vec<Asking>,
}

#[derive(Debug)]
struct Asking {
    stream: TcpStream,
    bytes: Vec<u8>,
    until: Instant,
}

impl Resolver {
    pub(super) fn new(datagrams: Vec<UdpSocket>, streams: Vec<TcpListener>) -> Self {
        Self { datagrams, streams, asking: vec![] }
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let streams = self.streams.iter().filter(|_| self.has_room());
        let asking = self.asking.iter().map(|asking| asking.stream.as_fd());
        self.datagrams.iter().map(AsFd::as_fd).chain(streams.map(AsFd::as_fd)).chain(asking)
    }

    pub(super) fn next_look(&self) -> Option<Instant> {
        self.asking.iter().map(|asking| asking.until).min()
    }

    /// Answers questions, and accepts connections. Fails if no descriptor or memory is left for another connection.
    pub(super) fn serve(&mut self, hosts: &NamedHosts) -> io::Result<()> {
        for socket in &self.datagrams {
            answer_datagrams(socket, hosts);
        }
        self.asking.retain_mut(|asking| Instant::now() < asking.until && asking.serve(hosts).is_some());
        for at in 0..self.streams.len() {
            while self.has_room() {
                let Some((stream, _)) = super::acceptor::accepted(self.streams[at].accept())? else { break };
                self.meet(stream, hosts);
            }
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.asking.len() < MOST_CONNECTIONS
    }

    fn meet(&mut self, stream: TcpStream, hosts: &NamedHosts) {
        let mut asking = Asking { stream, bytes: vec![], until: Instant::now() + PATIENCE };
        if asking.stream.set_nonblocking(true).is_ok() && asking.serve(hosts).is_some() {
            self.asking.push(asking);
        }
    }
}

fn answer_datagrams(socket: &UdpSocket, hosts: &NamedHosts) {
    // One byte more, so that a longer message is not taken for one of the maximum size.
    let mut message = [0; MAX_QUESTION + 1];
    for _ in 0..MOST_DATAGRAMS {
        let Ok((length, from)) = socket.recv_from(&mut message) else { return };
        if let Some(answer) = answer(message.get(..length).unwrap_or_default(), |name| hosts.resolve(name)) {
            // A program that cannot receive it asks again.
            let _sent = socket.send_to(&answer, from);
        }
    }
}

impl Asking {
    fn serve(&mut self, hosts: &NamedHosts) -> Option<()> {
        let mut bytes = [0; MAX_QUESTION + LENGTH];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(length) => self.bytes.extend(bytes.get(..length)?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(()),
                Err(_) => return None,
            }
            while let Some(length) = self.bytes.first_chunk() {
                let end = LENGTH + usize::from(u16::from_be_bytes(*length));
                if end > LENGTH + MAX_QUESTION {
                    return None;
                }
                let Some(message) = self.bytes.get(LENGTH..end) else { break };
                let answer = answer(message, |name| hosts.resolve(name))?;
                let length = u16::try_from(answer.len()).ok()?;
                // A program that asks and does not listen loses the connection.
                self.stream.write_all(&[&length.to_be_bytes(), &answer[..]].concat()).ok()?;
                self.bytes.drain(..end);
            }
        }
    }
}
