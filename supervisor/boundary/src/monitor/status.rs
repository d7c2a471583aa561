//! Reads a broker's status pipe: reports of the program's start, and of each denied system call (a refusal).
//!
//! The broker writes each refusal before it answers the system call, so all refusals of a tool call are in the pipe
//! when the call ends. The capacity of the pipe limits the number of refusals.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use ipc::confinement::BrokerReport;
use ipc::frame::FrameError;
use ipc::id::Generation;
use ipc::pipe::AsyncIncoming;
use ipc::place::{DOMAIN, Place, is_resolver, resolvers};
use ipc::refusal::{Refusal, Target};
use ipc::rights::HostName;
use nix::errno::Errno;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

/// Maximum number of reports that are read at once. A pipe holds fewer.
const MOST_AT_ONCE: usize = 1024;
/// Maximum number of kept refusals. Further ones are dropped.
const MOST: usize = 1024;

#[derive(Debug)]
pub struct StatusPipe {
    reports: AsyncIncoming<Prompt, BrokerReport>,
    refused: Vec<Refusal>,
}

impl StatusPipe {
    /// Returns a reader of the pipe. Must be called within an async runtime.
    pub fn new(pipe: OwnedFd) -> io::Result<Self> {
        let pipe = Prompt(pipe::Receiver::from_owned_fd(pipe)?);
        Ok(Self { reports: AsyncIncoming::new(pipe, Generation::default()), refused: Vec::new() })
    }

    /// Waits for the report about the program's start; `None` if the broker closed the pipe without it. Cancel safe.
    pub async fn started(&mut self) -> Result<Option<BrokerReport>, FrameError> {
        loop {
            match self.reports.receive().await? {
                Some(BrokerReport::Refused(refusal)) => self.keep(refusal),
                other => return Ok(other),
            }
        }
    }

    /// Waits until a refusal is kept. Never returns after the end of the pipe. Cancel safe.
    pub async fn more(&mut self) {
        if !self.refused.is_empty() {
            return;
        }
        match self.reports.receive().await {
            Ok(Some(BrokerReport::Refused(refusal))) => self.keep(refusal),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    pub fn take_of(&mut self, process: u32) -> Vec<Refusal> {
        self.read();
        let (of_it, others) =
            std::mem::take(&mut self.refused).into_iter().partition(|refusal| refusal.process == process);
        self.refused = others;
        of_it
    }

    pub fn asked(&mut self, host: &HostName, at: u16) -> Option<&Refusal> {
        self.read();
        let is_it = |refusal: &&Refusal| {
            let is_host =
                matches!(&refusal.object, Target::Host { name, port } if (name, *port) == (host, at));
            is_host && refusal.errno == Errno::ECONNRESET as i32
        };
        self.refused.iter().find(is_it)
    }

    pub fn take(&mut self) -> Vec<Refusal> {
        self.read();
        std::mem::take(&mut self.refused)
    }

    fn read(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            match self.reports.receive().now_or_never() {
                Some(Ok(Some(BrokerReport::Refused(refusal)))) => self.keep(refusal),
                Some(Ok(Some(_))) => {}
                Some(Ok(None) | Err(_)) | None => return,
            }
        }
    }

    /// Keeps a refusal, instead of an earlier one of the same process, action and object.
    fn keep(&mut self, mut refusal: Refusal) {
        if let Target::Internet(to, place) = &mut refusal.object {
            *place = seen_from_here(*to, *place);
        }
        let Refusal { process, act, ref object, .. } = refusal;
        let same = |kept: &&mut Refusal| (kept.process, kept.act, &kept.object) == (process, act, object);
        if let Some(kept) = self.refused.iter_mut().find(same) {
            *kept = refusal;
        } else if self.refused.len() < MOST {
            self.refused.push(refusal);
        }
    }
}

/// Returns the location of an address relative to this machine. A broker in a network namespace takes this machine's
/// addresses for remote ones. The network's DNS resolver counts as elsewhere.
fn seen_from_here(to: SocketAddr, place: Place) -> Place {
    let settings = || fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    match place {
        _ if to.port() == DOMAIN && is_resolver(to, &resolvers(&settings())) => Place::Elsewhere,
        Place::Elsewhere | Place::Lan => Place::of(to),
        known => known,
    }
}

/// A pipe whose reads try read(2) at once instead of waiting until the runtime notices new data.
#[derive(Debug)]
struct Prompt(pipe::Receiver);

impl AsyncRead for Prompt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match nix::unistd::read(&self.0, buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Pin::new(&mut self.0).poll_read(context, buffer),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use ipc::path::WirePath;
    use ipc::pipe::Outgoing;
    use ipc::refusal::Act;
    use nix::fcntl::OFlag;
    use nix::unistd::pipe2;

    use super::*;

    fn refusal(process: u32, path: &str, count: u64) -> Refusal {
        let object = Target::Socket(WirePath::from(path));
        Refusal { process, program: "x".into(), act: Act::Connect, object, errno: 13, count, untold: 0 }
    }

    fn status() -> (StatusPipe, Outgoing<File, BrokerReport>) {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        let outgoing = Outgoing::new(File::from(write), Generation::default());
        (StatusPipe::new(read).unwrap(), outgoing)
    }

    #[tokio::test]
    async fn what_was_written_is_there_without_waiting_for_the_runtime() {
        let (mut status, mut broker) = status();
        assert_eq!(status.take(), []);
        for (process, count) in [(1, 1), (2, 1), (1, 2)] {
            broker.send(&BrokerReport::Refused(refusal(process, "/a", count))).unwrap();
        }
        // No other task runs in between.
        assert_eq!(status.take_of(1), [refusal(1, "/a", 2)], "the latest");
        assert_eq!(status.take_of(1), []);
        assert_eq!(status.take(), [refusal(2, "/a", 1)]);
    }

    #[tokio::test]
    async fn what_an_address_is_to_this_machine_is_known_here() {
        let (mut status, mut broker) = status();
        let to = |place| Target::Internet("127.0.0.1:9".parse().unwrap(), place);
        let refused = |place| Refusal { object: to(place), ..refusal(1, "", 1) };
        broker.send(&BrokerReport::Refused(refused(Place::Elsewhere))).unwrap();
        assert_eq!(status.take(), [refused(Place::Host)]);
    }

    #[test]
    fn the_resolver_of_this_machine_needs_no_other_right_than_the_network() {
        let resolver = resolvers(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default())[0];
        for place in [Place::Host, Place::Lan, Place::Elsewhere] {
            assert_eq!(seen_from_here(SocketAddr::new(resolver, 53), place), Place::Elsewhere);
        }
        assert_eq!(seen_from_here("10.254.253.252:54".parse().unwrap(), Place::Elsewhere), Place::Lan);
    }

    #[tokio::test]
    async fn what_is_refused_before_the_start_is_told_is_kept_for_after() {
        let (mut status, mut broker) = status();
        broker.send(&BrokerReport::Refused(refusal(1, "/a", 1))).unwrap();
        broker.send(&BrokerReport::Ended { status: 0 }).unwrap();
        assert_eq!(status.started().await.unwrap(), Some(BrokerReport::Ended { status: 0 }));
        drop(broker);
        assert_eq!(status.take(), [refusal(1, "/a", 1)]);
        assert_eq!(status.take(), []);
    }

    #[tokio::test]
    async fn a_flood_costs_what_the_pipe_holds() {
        let (mut status, mut broker) = status();
        let mut written = 0;
        while broker.send(&BrokerReport::Refused(refusal(written, "/a", 1))).is_ok() {
            written += 1;
        }
        let mut taken = 0;
        for round in 0.. {
            // Reading makes room for the next write.
            let _full = broker.send(&BrokerReport::Refused(refusal(written + round, "/a", 1)));
            let more = status.take().len();
            assert!(more <= MOST);
            taken += more;
            if round == 9 {
                break;
            }
        }
        assert!(taken >= written as usize, "{taken} of {written}");
    }
}
