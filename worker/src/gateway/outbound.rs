//! Bytes from a client to a host. They are checked before they are sent.

use std::time::Duration;

use ipc::gateway::GatewayFailure;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::pump::{Break, read, write};
use super::screen::{Answer, Screen};

/// Time limit for the client's first message.
const FIRST: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Outbound {
    screen: Screen,
    held: Vec<u8>,
    /// Number of bytes at the start of `held` that have passed the check and may be sent.
    admitted: usize,
}

impl Outbound {
    pub(super) const fn new(screen: Screen, held: Vec<u8>) -> Self {
        Self { screen, held, admitted: 0 }
    }

    /// True if the first request asks for an upgrade, so that the host's answer has to be checked.
    pub(super) const fn needs_answer(&self) -> bool {
        self.screen.needs_answer()
    }

    /// Waits for the client's first message and checks it, if the port requires one.
    pub(super) async fn first(&mut self, client: &TcpStream) -> Result<(), GatewayFailure> {
        let first = async {
            self.admit()?;
            while self.screen.precedes_dialling() && self.admitted == 0 {
                if !read(client, &mut self.held).await.is_ok_and(|read| read > 0) {
                    return Err(GatewayFailure::NoFirstMessage);
                }
                self.admit()?;
            }
            Ok(())
        };
        timeout(FIRST, first).await.unwrap_or(Err(GatewayFailure::NoFirstMessage))
    }

    fn admit(&mut self) -> Result<(), GatewayFailure> {
        self.admitted += self.screen.admit(&self.held[self.admitted..])?;
        Ok(())
    }

    /// Checks and sends the client's bytes until no more checks are needed or the client ends its side. Returns the
    /// state of the checks; if they are over, later bytes are sent unchecked.
    pub(super) async fn run(
        mut self,
        client: &TcpStream,
        host: &TcpStream,
        told: oneshot::Receiver<Answer>,
        sent: &mut u64,
    ) -> Result<Screen, Break> {
        let mut told = Some(told);
        let mut deadline = None;
        loop {
            write(host, &self.held[..self.admitted], sent).await?;
            self.held.drain(..self.admitted);
            self.admitted = 0;
            if self.screen.is_open() && self.held.is_empty() {
                return Ok(self.screen);
            }
            if self.screen.awaits_answer() {
                // No answer: the host sends nothing any more.
                let answer = match told.take() {
                    Some(told) => told.await.unwrap_or(Answer::Stays),
                    None => Answer::Stays,
                };
                self.screen.take_answer(answer)?;
            } else if self.read(client, &mut deadline).await? == 0 {
                return if self.held.is_empty() {
                    Ok(self.screen)
                } else {
                    Err(GatewayFailure::NoFirstMessage.into())
                };
            }
            self.admit()?;
        }
    }

    /// Reads more bytes; 0 at their end. A first message's time limit starts when its first bytes have come.
    async fn read(&mut self, client: &TcpStream, deadline: &mut Option<Instant>) -> Result<usize, Break> {
        if self.held.is_empty() || !self.screen.is_timed() {
            return Ok(read(client, &mut self.held).await?);
        }
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + FIRST);
        match timeout_at(deadline, read(client, &mut self.held)).await {
            Ok(read) => Ok(read?),
            Err(_) => Err(GatewayFailure::NoFirstMessage.into()),
        }
    }
}
