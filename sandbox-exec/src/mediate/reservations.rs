//! The ports of datagram sockets from inside that others from inside are connected to, kept from passing to anybody else.
//!
//! What is sent on a connected socket is not mediated, and goes to whoever has the port by then. To hold the receiver would keep
//! it receiving after its last close. So a socket of ours is bound beside it, to the very address, and stays until no connected
//! sender is left: the host's programs find the port in use, and senders find it closed once the receiver is. It never receives
//! itself, since it is connected to a port of ours from which nothing ever comes (udp(7)).
//!
//! Two sockets can be bound to one address only while both allow it (`SO_REUSEADDR`). That is so for the moment of a `bind`;
//! then it is looked at who has the port.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::address::{Address, Meaning};
use super::alive::Alive;
use super::socket;

/// How many reservations there may be.
const MOST: usize = 1024;
/// How soon a port is free after the last sender was closed.
const LATEST: Duration = Duration::from_secs(1);

/// All of them.
#[derive(Debug)]
pub(super) struct Reservations {
    senders: Alive,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The ports, by address.
    held: HashMap<SocketAddr, Held>,
    /// The connected senders, by cookie, and where to. Where one was connected before counts as well, since it still is if
    /// connecting it elsewhere fails.
    connected: HashSet<(u64, SocketAddr)>,
    /// Where nothing ever comes from.
    silent: Option<OwnedFd>,
    /// Whether a thread looks for senders that were closed.
    watched: bool,
}

#[derive(Debug)]
struct Held {
    socket: OwnedFd,
    cookie: u64,
}

impl Reservations {
    /// Of none.
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self { senders: Alive::new()?, state: Mutex::default() })
    }

    /// Whether a socket is one of ours: nobody is reached there.
    pub(super) fn has(&self, cookie: u64) -> bool {
        self.lock().held.values().any(|held| held.cookie == cookie)
    }

    /// Reserves an address for as long as a sender lives. `receivers` are all that have it; they are asked for only if it is not
    /// reserved yet.
    pub(super) fn reserve(
        self: &Arc<Self>,
        sender: &OwnedFd,
        to: SocketAddr,
        receivers: impl FnOnce() -> Result<Vec<OwnedFd>, Errno>,
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        if !state.held.contains_key(&to) {
            if state.held.len() >= MOST {
                self.sweep(&mut state);
            }
            if state.held.len() >= MOST {
                return Err(Errno::ENOBUFS);
            }
            let held = state.hold(to, &receivers()?)?;
            state.held.insert(to, held);
        }
        let cookie = socket::cookie(sender)?;
        if state.connected.iter().all(|&(known, _)| known != cookie) {
            self.senders.add(sender, cookie)?;
        }
        state.connected.insert((cookie, to));
        if !state.watched {
            let all = Arc::clone(self);
            state.watched =
                thread::Builder::new().name("reservations".into()).spawn(move || all.watch()).is_ok();
        }
        Ok(())
    }

    /// Binds a socket from inside, at whose address there may be reservations.
    pub(super) fn bind(&self, socket: &OwnedFd, address: &Address) -> Result<(), Errno> {
        match socket::bind(socket, address) {
            Err(Errno::EADDRINUSE) => {}
            bound => return bound,
        }
        let mut state = self.lock();
        self.sweep(&mut state);
        let all: Vec<&OwnedFd> = state.held_at(address).chain([socket]).collect();
        shared(&all, || socket::bind(socket, address))
    }

    /// Lets go of what no sender is connected to any more, until nothing is left.
    fn watch(&self) {
        loop {
            thread::sleep(LATEST);
            let mut state = self.lock();
            self.sweep(&mut state);
            if state.held.is_empty() {
                state.watched = false;
                return;
            }
        }
    }

    fn sweep(&self, state: &mut State) {
        let alive = self.senders.numbers();
        state.connected.retain(|(sender, _)| alive.contains(sender));
        let State { held, connected, .. } = state;
        held.retain(|address, _| connected.iter().any(|(_, to)| to == address));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hold(&mut self, to: SocketAddr, receivers: &[OwnedFd]) -> Result<Held, Errno> {
        let silent = match &self.silent {
            Some(silent) => silent,
            None => self.silent.insert(silent()?),
        };
        let Meaning::Internet(nowhere) = socket::own_name(silent)?.meaning() else {
            return Err(Errno::EIO);
        };
        let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let socket = socket::datagram(family)?;
        let all: Vec<&OwnedFd> = receivers.iter().chain([&socket]).collect();
        shared(&all, || socket::bind(&socket, &Address::of_internet(to)))?;
        socket::connect(&socket, &Address::of_internet(SocketAddr::new(to.ip(), nowhere.port())))?;
        let cookie = socket::cookie(&socket)?;
        Ok(Held { socket, cookie })
    }

    /// What is reserved of the port of an address.
    fn held_at(&self, address: &Address) -> impl Iterator<Item = &OwnedFd> {
        let port = match address.meaning() {
            Meaning::Internet(own) => own.port(),
            _ => 0,
        };
        self.held.iter().filter(move |(held, _)| held.port() == port).map(|(_, held)| &held.socket)
    }
}

/// Has a port at every address of this machine, and takes what comes from it alone, which nobody reads.
fn silent() -> Result<OwnedFd, Errno> {
    let any = [(libc::AF_INET6, Ipv6Addr::UNSPECIFIED.into()), (libc::AF_INET, Ipv4Addr::UNSPECIFIED.into())];
    let silent = |(family, address): (c_int, IpAddr)| {
        let socket = socket::datagram(family)?;
        socket::keep_on_loopback(&socket)?;
        socket::bind(&socket, &Address::of_internet(SocketAddr::new(address, 0)))?;
        Ok(socket)
    };
    // Without IPv6 there is no address of it either.
    let [both, v4] = any;
    silent(both).or_else(|_: Errno| silent(v4))
}

/// Acts while all these sockets let others have their ports, and each of these others does.
fn shared(sockets: &[&OwnedFd], act: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    let mut before = vec![];
    let mut result = Ok(());
    for &socket in sockets {
        match socket::allow_reuse(socket, true) {
            Ok(was) => before.push((socket, was)),
            Err(errno) => result = Err(errno),
        }
    }
    let result = result.and_then(|()| act());
    for (socket, was) in before {
        let _fails_as_before = socket::allow_reuse(socket, was);
    }
    result
}
