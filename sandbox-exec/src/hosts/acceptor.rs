//! Thread that answers the program's lookups, accepts its connections to hosts, and passes these to the gateway.
//!
//! While the gateway has no room, connections stay in the listener's queue. Without a gateway all are reset.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ipc::codec;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg, setsockopt, sockopt};

use super::names::NamedHosts;
use super::resolver::Resolver;
use super::{Arrivals, Entrances};
use crate::privilege::clear_capabilities;

/// Maximum number of connections to one port that are accepted in one turn.
const MOST_AT_ONCE: usize = 64;
/// Pause after a failure for lack of descriptors or memory, before the next connection is accepted.
const REST: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Acceptor {
    hosts: Arc<NamedHosts>,
    arrivals: Arc<dyn Arrivals>,
    resolver: Resolver,
    ports: Vec<TcpListener>,
    gateway: Option<OwnedFd>,
    /// Connection that the gateway has had no room for yet, with its message. Until it is sent, no other is accepted.
    held: Option<(TcpStream, Vec<u8>)>,
    rests_until: Option<Instant>,
}

/// Starts the thread, which has the calling thread's signal mask and drops every capability.
pub(crate) fn start(
    entrances: Entrances,
    hosts: Arc<NamedHosts>,
    arrivals: Arc<dyn Arrivals>,
    gateway: OwnedFd,
) -> io::Result<()> {
    let Entrances { datagrams, streams, ports } = entrances;
    let resolver = Resolver::new(datagrams, streams);
    let mut acceptor =
        Acceptor { hosts, arrivals, resolver, ports, gateway: Some(gateway), held: None, rests_until: None };
    let work = move || {
        if clear_capabilities().is_ok() {
            let Err(_broken) = acceptor.work();
        }
    };
    // Without the thread its sockets are closed: no connection is made.
    thread::Builder::new().name("hosts".into()).spawn(work).map(drop)
}

impl Acceptor {
    fn work(&mut self) -> Result<Infallible, Errno> {
        loop {
            self.wait()?;
            let served = self.resolver.serve(&self.hosts);
            self.rest_after(served);
            if let Some((connection, arrival)) = self.held.take() {
                self.pass(connection, arrival);
            }
            for port in 0..self.ports.len() {
                let accepted = self.accept(port);
                self.rest_after(accepted);
            }
        }
    }

    fn wait(&mut self) -> Result<(), Errno> {
        let now = Instant::now();
        self.rests_until = self.rests_until.filter(|until| *until > now);
        let rests = self.rests_until.is_some();
        // A descriptor without events says only that the other end is gone.
        let room = if self.held.is_some() && !rests { PollFlags::POLLOUT } else { PollFlags::empty() };
        let gateway = self.gateway.iter().map(|gateway| PollFd::new(gateway.as_fd(), room));
        let ports = self.ports.iter().filter(|_| self.held.is_none()).map(AsFd::as_fd);
        let readable = ports.chain(self.resolver.sockets()).filter(|_| !rests);
        let mut polled: Vec<_> =
            gateway.chain(readable.map(|socket| PollFd::new(socket, PollFlags::POLLIN))).collect();
        let until = self.rests_until.into_iter().chain(self.resolver.next_look()).min();
        match poll(&mut polled, timeout(until, now)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        let events = polled.first().and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        if events.intersects(gone) {
            // Without a gateway the first is a listener, which has no other end.
            self.gateway = None;
        }
        Ok(())
    }

    fn accept(&mut self, port: usize) -> io::Result<()> {
        for _ in 0..MOST_AT_ONCE {
            if self.held.is_some() || self.rests_until.is_some() {
                return Ok(());
            }
            let Some(listener) = self.ports.get(port) else { return Ok(()) };
            let Some((connection, _)) = accepted(listener.accept())? else { return Ok(()) };
            let arrival = self.arrivals.arrival(&connection);
            match arrival.and_then(|arrival| codec::encode(&arrival).ok()) {
                Some(arrival) => self.pass(connection, arrival),
                None => reset(connection),
            }
        }
        Ok(())
    }

    fn pass(&mut self, connection: TcpStream, arrival: Vec<u8>) {
        let Some(gateway) = &self.gateway else { return reset(connection) };
        let passed = [connection.as_raw_fd()];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let content = [IoSlice::new(&arrival)];
        let rights = [ControlMessage::ScmRights(&passed)];
        match sendmsg::<()>(gateway.as_raw_fd(), &content, &rights, flags, None) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EINTR) => self.held = Some((connection, arrival)),
            // Too many descriptors are under way between processes of this user.
            Err(Errno::ETOOMANYREFS | Errno::ENOBUFS | Errno::ENOMEM) => {
                self.held = Some((connection, arrival));
                self.rests_until = Some(Instant::now() + REST);
            }
            Err(_) => {
                self.gateway = None;
                reset(connection);
            }
        }
    }

    fn rest_after(&mut self, done: io::Result<()>) {
        if done.is_err() {
            self.rests_until = Some(Instant::now() + REST);
        }
    }
}

/// Returns the accepted connection; `None` if there is none, or it has failed itself. Fails if no descriptor or memory
/// is left for another connection.
pub(super) fn accepted<T>(accepted: io::Result<T>) -> io::Result<Option<T>> {
    match accepted {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
            ) =>
        {
            Err(error)
        }
        accepted => Ok(accepted.ok()),
    }
}

fn timeout(until: Option<Instant>, now: Instant) -> PollTimeout {
    let left = until.map(|until| until.saturating_duration_since(now) + Duration::from_millis(1));
    left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX))
}

/// Resets a connection, so that the program sees an error instead of an end of file (`SO_LINGER`, socket(7)).
fn reset(connection: TcpStream) {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let _unset = setsockopt(&connection, sockopt::Linger, &at_once);
    drop(connection);
}
