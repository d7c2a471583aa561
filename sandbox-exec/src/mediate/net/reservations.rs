//! Reservations of ports of datagram sockets inside. Sockets inside are connected to such a port or receive from it
//! (`super::introductions`), so no socket outside may get it.
//!
//! Messages on a connected socket are not mediated: they go to whoever has the port now. So this process binds a socket
//! of its own, the reserving socket, to the same address until no connected sender is left. Other processes then find
//! the port in use, and senders find it closed after the receiver has closed. A reserving socket never receives, since
//! it is connected to another socket of this process (udp(7)).
//!
//! A sender's port is reserved at all addresses: a process that had the port at one address could send from another
//! (`IP_PKTINFO`, ip(7)). This reserving socket is not connected. Packets for the sender's socket do not reach it,
//! since the sender's is bound to the loopback device, and the kernel prefers such sockets (`compute_score` of
//! net/ipv4/udp.c).
//!
//! Two sockets can be bound to one address only while both allow it (`SO_REUSEADDR`). A reserving socket allows it only
//! during a `bind` inside. Afterwards all sockets with the port are looked up.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::stat::fstat;

use super::open_sockets::Alive;
use super::port_filter;
use crate::mediate::call::address::Address;
use crate::mediate::call::socket::{self, port};

/// Maximum number of ports that are reserved at one time.
const MOST: usize = 1024;
/// Maximum time after which a port is free once the last socket that needed the reservation is closed.
const LATEST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Reservations {
    dependents: Alive,
    state: Mutex<ReservationState>,
}

#[derive(Debug, Default)]
struct ReservationState {
    held: HashMap<SocketAddr, HeldPort>,
    needs: HashSet<Need>,
    silent: Option<OwnedFd>,
    watched: bool,
}

/// Need of a socket for a reservation: the socket is connected to the address, or receives from the port. A former
/// peer's address counts, too: if connecting to another fails, the socket stays connected to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Need {
    cookie: u64,
    inode: u32,
    port: u16,
    address: SocketAddr,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Hearer {
    pub(super) cookie: u64,
    pub(super) inode: u32,
    pub(super) from: SocketAddr,
}

#[derive(Debug)]
struct HeldPort {
    socket: OwnedFd,
    cookie: u64,
}

impl Reservations {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self { dependents: Alive::new()?, state: Mutex::default() })
    }

    pub(super) fn has(&self, cookie: u64) -> bool {
        self.lock().held.values().any(|held| held.cookie == cookie)
    }

    pub(super) fn heard_by(&self, cookie: u64) -> Vec<SocketAddr> {
        let state = self.lock();
        let needs = state.needs.iter().filter(|need| need.cookie == cookie && need.is_of_receiver());
        needs.map(|need| need.address).collect()
    }

    pub(super) fn hearers_of(&self, port: u16) -> Vec<Hearer> {
        let mut state = self.lock();
        if state.needs.iter().any(|need| need.is_of_receiver() && need.address.port() == port) {
            self.sweep(&mut state);
        }
        let needs = state.needs.iter().filter(|need| need.is_of_receiver() && need.address.port() == port);
        needs.map(|&Need { cookie, inode, address: from, .. }| Hearer { cookie, inode, from }).collect()
    }

    pub(super) fn is_heard(&self, cookie: u64, from: SocketAddr) -> bool {
        self.lock().needs.iter().any(|need| need.cookie == cookie && need.address == from)
    }

    /// Returns the addresses of the sockets that are connected to a port. An unspecified address means all addresses.
    pub(super) fn connected_to(&self, port: u16) -> HashSet<SocketAddr> {
        let mut state = self.lock();
        self.sweep(&mut state);
        let needs = state.needs.iter().filter(|need| need.address.port() == port && !need.is_of_receiver());
        needs.map(|need| everywhere(need.address, need.port)).collect()
    }

    pub(super) fn release(&self, cookie: u64, address: SocketAddr) {
        self.lock().needs.retain(|need| need.cookie != cookie || need.address != address);
    }

    /// Reserves an address as long as the socket that depends on it is open. `holders` returns all sockets at the
    /// address, and is called only for a new reservation.
    pub(super) fn reserve(
        self: &Arc<Self>,
        dependent: &OwnedFd,
        to: SocketAddr,
        holders: impl FnOnce() -> Result<Vec<OwnedFd>, Errno>,
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        if !state.held.contains_key(&to) {
            if state.held.len() >= MOST {
                self.sweep(&mut state);
            }
            if state.held.len() >= MOST {
                return Err(Errno::ENOBUFS);
            }
            let held = state.hold(to, &holders()?)?;
            state.held.insert(to, held);
        }
        let cookie = socket::cookie(dependent)?;
        if state.needs.iter().all(|need| need.cookie != cookie) {
            self.dependents.add_again(dependent, cookie)?;
        }
        let inode = u32::try_from(fstat(dependent)?.st_ino).map_err(|_| Errno::EOVERFLOW)?;
        state.needs.insert(Need { cookie, inode, port: port(dependent)?, address: to });
        if !state.watched {
            let all = Arc::clone(self);
            state.watched =
                thread::Builder::new().name("reservations".into()).spawn(move || all.watch()).is_ok();
        }
        Ok(())
    }

    /// Binds a socket to an address. Meanwhile reservations of the address allow sharing.
    pub(super) fn bind(&self, socket: &OwnedFd, address: &Address) -> Result<(), Errno> {
        let mut state = self.lock();
        self.sweep(&mut state);
        let all: Vec<&OwnedFd> = state.held_at(address).chain([socket]).collect();
        shared(&all, || socket::bind(socket, address))
    }

    /// Drops unneeded reservations again and again, until none is left.
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

    fn sweep(&self, state: &mut ReservationState) {
        // If the kernel does not say, all sockets count as open.
        let Some(alive) = self.dependents.numbers() else { return };
        state.needs.retain(|need| alive.contains(&need.cookie));
        let ReservationState { held, needs, .. } = state;
        let needed: HashSet<_> = needs.iter().map(|need| need.address).collect();
        held.retain(|address, _| needed.contains(address));
    }

    fn lock(&self) -> MutexGuard<'_, ReservationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Need {
    fn is_of_receiver(&self) -> bool {
        self.address.ip().is_unspecified()
    }
}

impl ReservationState {
    fn hold(&mut self, to: SocketAddr, holders: &[OwnedFd]) -> Result<HeldPort, Errno> {
        let address = Address::of_internet(to);
        let socket = socket::datagram(if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 })?;
        let is_everywhere = to.ip().is_unspecified();
        if is_everywhere {
            port_filter::hear_only(&socket, &[])?;
        }
        if is_everywhere && to.is_ipv6() {
            socket::keep_to_v6(&socket)?;
        }
        let all: Vec<&OwnedFd> = holders.iter().chain(self.held_at(&address)).chain([&socket]).collect();
        shared(&all, || socket::bind(&socket, &address))?;
        if !is_everywhere {
            let nowhere = SocketAddr::new(to.ip(), self.silent_port()?);
            socket::connect(&socket, &Address::of_internet(nowhere))?;
        }
        let cookie = socket::cookie(&socket)?;
        Ok(HeldPort { socket, cookie })
    }

    fn silent_port(&mut self) -> Result<u16, Errno> {
        match &self.silent {
            Some(silent) => port(silent),
            None => port(self.silent.insert(silent()?)),
        }
    }

    fn held_at(&self, address: &Address) -> impl Iterator<Item = &OwnedFd> {
        let port = address.port();
        self.held.iter().filter(move |(held, _)| held.port() == port).map(|(_, held)| &held.socket)
    }
}

pub(super) fn everywhere(address: SocketAddr, port: u16) -> SocketAddr {
    let all: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(all, port)
}

/// Creates a socket that never sends, bound to every address of this machine, but only on the loopback device.
fn silent() -> Result<OwnedFd, Errno> {
    let any = [(libc::AF_INET6, Ipv6Addr::UNSPECIFIED.into()), (libc::AF_INET, Ipv4Addr::UNSPECIFIED.into())];
    let silent = |(family, address): (c_int, IpAddr)| {
        let socket = socket::datagram(family)?;
        socket::keep_on_loopback(&socket)?;
        socket::bind(&socket, &Address::of_internet(SocketAddr::new(address, 0)))?;
        Ok(socket)
    };
    // Without IPv6 the machine has no address of it either.
    let [both, v4] = any;
    silent(both).or_else(|_: Errno| silent(v4))
}

/// Calls `act` while these sockets allow sharing their ports. Other sockets with these ports have to allow it, too.
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

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::mount::{MsFlags, mount};

    use super::*;
    use crate::tree::tests::with_own_mounts;

    #[test]
    fn a_port_stays_reserved_while_the_kernel_does_not_say_whose_sockets_are_open() {
        with_own_mounts(|| {
            let all = Arc::new(Reservations::new()?);
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            let (to, receiver) = (receiver.local_addr().unwrap(), OwnedFd::from(receiver));
            let sender: OwnedFd = UdpSocket::bind("127.0.0.1:0").unwrap().into();
            all.reserve(&sender, to, || Ok(vec![receiver.try_clone().unwrap()]))?;
            mount(Some("none"), "/proc", Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            all.sweep(&mut all.lock());
            drop(receiver);
            assert!(UdpSocket::bind(to).is_err());
            Ok(())
        });
    }
}
