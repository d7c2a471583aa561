//! The host's network: destinations that sockets inside the sandbox may reach, and peers that may reach them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use ipc::place::{Place, is_local, is_resolver, plain, resolvers};
use ipc::refusal::Target;
use ipc::rights::{Network, Reach};
use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::getpid;

use super::connections::Connections;
use super::holders::{self, Holder};
use super::inside_names::Own;
use super::internet::{self, stays_here};
use super::led::Led;
use super::port_filter;
use super::reservations::Reservations;
use crate::mediate::call::address::{Address, Meaning};
use crate::mediate::call::caller::Caller;
use crate::mediate::call::socket::{self, SocketKind, port};
use crate::mediate::refusals::Denied;
use crate::mediate::rules::HostAddress;
use crate::mediate::unix::listeners;

#[derive(Debug)]
pub(in crate::mediate) struct HostNetwork {
    /// Reachable addresses outside the sandbox; `None` if the network is off.
    pub(super) outside: Option<Outside>,
    scoped: bool,
    /// Hosts that may be reached by name; `None` if there are none.
    pub(super) led: Option<Arc<Led>>,
    own: Own,
    begun: Connections,
    pub(super) reservations: Arc<Reservations>,
    pub(super) introducing: Mutex<()>,
    /// Serializes `bind`: after a socket is bound and before it is registered as inside, other calls would reject it.
    binding: Mutex<()>,
}

#[derive(Debug)]
pub(in crate::mediate) struct Inside {
    pub(in crate::mediate) at: SocketAddr,
    pub(super) receivers: Vec<Holder>,
    /// Facts about the host, if the broker answers at the address for a host or as a resolver; else `None`.
    pub(in crate::mediate) named: Option<HostAddress>,
}

#[derive(Debug)]
pub(super) struct Outside {
    reach: Reach,
    resolvers: Vec<IpAddr>,
}

impl HostNetwork {
    /// Creates the rules for the network. The machine's resolvers are those of this moment.
    pub(in crate::mediate) fn new(
        net: &Network,
        reach: Reach,
        scoped: bool,
        led: Option<Arc<Led>>,
    ) -> Result<Self, Errno> {
        let outside = net.is_the_machines().then(|| Outside {
            reach,
            resolvers: resolvers(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
        });
        let reservations = Arc::new(Reservations::new()?);
        let own = Own::new()?;
        led.iter().flat_map(|led| led.sockets()).try_for_each(|socket| own.remember(socket))?;
        Ok(Self {
            outside,
            scoped,
            led,
            own,
            begun: Connections::default(),
            reservations,
            introducing: Mutex::default(),
            binding: Mutex::default(),
        })
    }

    /// Decides if a call may reach a destination. Returns the address to use if only a socket inside may be reached,
    /// and `None` if the caller's own address may be used.
    pub(in crate::mediate) fn admit(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        to: SocketAddr,
    ) -> Result<Option<Inside>, Denied> {
        let led = self.led.as_ref().map(|led| led.lead(caller, socket, kind, to)).transpose()?.flatten();
        let (to, named) = led.map_or((to, None), |way| (way.at, Some(way.named)));
        let is_host = named.is_some();
        let place = Place::of(to);
        let own = if self.outside.as_ref().is_some_and(|outside| outside.has(place, to)) {
            None
        } else {
            let own = self
                .admit_own(kind, place, internet::named(to))
                .ok_or_else(|| self.refusal(kind, place, to))?;
            Some(Inside { named, ..own })
        };
        if kind.style == libc::SOCK_DGRAM {
            self.name(caller, socket, kind)?;
        } else if place == Place::Host && kind.is_stream() && !is_host {
            self.begun.begin(socket::cookie(socket)?, ());
        }
        Ok(own)
    }

    /// Returns an address of this machine at which only sockets inside can receive; `None` if a socket outside might.
    fn admit_own(&self, kind: SocketKind, place: Place, to: SocketAddr) -> Option<Inside> {
        if place != Place::Host || !stays_here(to.ip()) {
            return None;
        }
        let mut receivers = self.holders(kind, to.port()).ok()?;
        let received = receivers.iter().any(|holder| holder.receives(to.ip()));
        receivers.retain(|holder| holder.might_receive(to.ip()));
        (received && self.are_own(&receivers)).then_some(Inside { at: to, receivers, named: None })
    }

    /// Returns all sockets that have a port, except the broker's own reservations of ports.
    pub(super) fn holders(&self, kind: SocketKind, port: u16) -> Result<Vec<Holder>, Errno> {
        let mut holders = holders::of_port(kind.style, port)?;
        holders.retain(|holder| !self.reservations.has(holder.cookie));
        Ok(holders)
    }

    /// Reserves the address to which a datagram socket will be connected, so that no socket outside can take its port.
    pub(in crate::mediate) fn reserve(
        &self,
        sender: &OwnedFd,
        kind: SocketKind,
        to: SocketAddr,
        caller: &Caller<'_>,
    ) -> Result<(), Errno> {
        let to = SocketAddr::new(plain(to.ip()), to.port());
        if self.led.as_ref().is_some_and(|led| led.resolver() == to) {
            return Ok(());
        }
        let mut holders = self.holders(kind, to.port())?;
        holders.retain(|holder| holder.might_receive(to.ip()));
        let reserve = |holders: &dyn Fn() -> _| self.reservations.reserve(sender, to, holders);
        match reserve(&|| Err(Errno::EAGAIN)) {
            Err(Errno::EAGAIN) => {
                let holders = || duplicates(caller, &holders);
                self.unheard_meanwhile(caller, to.port(), || reserve(&holders))
            }
            reserved_already => reserved_already,
        }
    }

    /// Returns the denial of a destination. With the network on, its error is `EACCES`, as from a local firewall
    /// (connect(2)). With the network off, its error is the one on a machine without a network.
    ///
    /// A denied address of this machine is not reported if no process listens there: the call would fail anyway.
    fn refusal(&self, kind: SocketKind, place: Place, to: SocketAddr) -> Denied {
        let errno = match (&self.outside, place) {
            (Some(_), _) => Errno::EACCES,
            (None, Place::Host) => Errno::ECONNREFUSED,
            (None, _) => Errno::ENETUNREACH,
        };
        if place == Place::Host && !self.is_anothers(kind, internet::named(to)) {
            return errno.into();
        }
        Denied::Rules { target: Target::Internet(to, place), errno }
    }

    fn is_anothers(&self, kind: SocketKind, to: SocketAddr) -> bool {
        let holders = self.holders(kind, to.port()).unwrap_or_default();
        holders.iter().any(|holder| holder.might_receive(to.ip()) && !self.own.made(holder.cookie))
    }

    pub(in crate::mediate) fn hindrance_of_bind(&self, own: SocketAddr, errno: Errno) -> Denied {
        let refused = self.outside.is_none() && stays_on_loopback(own.ip()) == Err(errno);
        if refused && is_local(own.ip()) {
            return Denied::Rules { target: Target::Internet(own, Place::Host), errno };
        }
        errno.into()
    }

    /// Makes a datagram socket receive only from these senders and the resolver.
    pub(super) fn hear_only(&self, socket: &OwnedFd, senders: &[SocketAddr]) -> Result<(), Errno> {
        let resolver = self.led.iter().map(|led| led.resolver());
        port_filter::hear_only(socket, &senders.iter().copied().chain(resolver).collect::<Vec<_>>())
    }

    pub(super) fn find(&self, caller: &Caller<'_>, holder: u64, inode: u32) -> Option<OwnedFd> {
        let ours = self.led.as_ref().and_then(|led| led.find(holder));
        ours.or_else(|| caller.find(inode, holder))
    }

    pub(super) fn are_own(&self, holders: &[Holder]) -> bool {
        holders.iter().all(|holder| self.own.made(holder.cookie))
    }

    /// True if, after a call, only sockets inside have the port at the address to which the call led. True also if none
    /// has it: the receiver may have closed.
    pub(in crate::mediate) fn has_led_inside(&self, kind: SocketKind, to: SocketAddr) -> bool {
        self.holders(kind, to.port()).is_ok_and(|mut holders| {
            holders.retain(|holder| holder.might_receive(to.ip()));
            self.are_own(&holders)
        })
    }

    /// Returns the cookie of the socket inside that has an abstract name and this type; `None` if the kernel has to
    /// decide. Fails if the name is free or belongs to a socket outside.
    pub(in crate::mediate) fn admit_abstract(
        &self,
        style: c_int,
        name: &[u8],
    ) -> Result<Option<u64>, Denied> {
        if self.scoped {
            return Ok(None);
        }
        // Error that a process would get if the name did not exist.
        let errno = Errno::ECONNREFUSED;
        match listeners::of_name(style, name).as_deref() {
            Ok(&[cookie]) if self.own.made(cookie) => Ok(Some(cookie)),
            Ok([]) | Err(_) => Err(errno.into()),
            Ok([_, ..]) => Err(Denied::Rules { target: Target::Abstract(name.to_vec()), errno }),
        }
    }

    /// Returns the denial of an abstract name that the kernel denied. It counts as a denial by the rules unless the
    /// socket is inside; the kernel then denied it because that socket is connected to another.
    pub(in crate::mediate) fn hindrance_of_name(&self, style: c_int, name: &[u8]) -> Denied {
        match listeners::of_name(style, name).as_deref() {
            Ok(&[cookie]) if self.own.made(cookie) => Errno::EPERM.into(),
            _ => Denied::Rules { target: Target::Abstract(name.to_vec()), errno: Errno::ECONNREFUSED },
        }
    }

    /// Binds a datagram socket to a port of the kernel's choice, if it has none. This is done before the first send, so
    /// that the receiving socket can accept and answer it.
    fn name(&self, caller: &Caller<'_>, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        if port(socket)? != 0 {
            return Ok(());
        }
        let any: IpAddr = match kind.family {
            libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
            _ => Ipv6Addr::UNSPECIFIED.into(),
        };
        match self.bind(caller, socket, kind, &Address::of_internet(SocketAddr::new(any, 0))) {
            // Another thread has bound the socket meanwhile.
            Ok(()) | Err(Errno::EINVAL) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Binds a socket and registers it as inside. With the network off, a socket that would listen on all addresses is
    /// bound to the loopback device, which only `CAP_NET_RAW` undoes (socket(7)).
    pub(in crate::mediate) fn bind(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        address: &Address,
    ) -> Result<(), Errno> {
        if self.outside.is_none() && kind.is_internet() {
            if let Meaning::Internet(own) = address.meaning() {
                stays_on_loopback(own.ip())?;
            }
            // Holds for any address: an address without a family means all addresses (inet_bind of the
            // kernel).
            socket::keep_on_loopback(socket)?;
        }
        if kind.is_internet() {
            return self.bind_internet(caller, socket, kind, address);
        }
        socket::bind(socket, address)?;
        self.own.remember(socket)
    }

    fn bind_internet(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        address: &Address,
    ) -> Result<(), Errno> {
        let _one_at_a_time = self.binding.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_before_bind(socket, kind, address)?;
        if kind.is_stream() {
            socket::bind(socket, address).and_then(|()| self.own.remember(socket))?;
            return self.check_after_bind(socket, kind);
        }
        self.bind_datagrams(caller, socket, address)?;
        self.check_after_bind(socket, kind)?;
        self.welcome(caller, socket)
    }

    /// Binds a datagram socket. If a reservation of the broker has the address, both share it for a moment.
    fn bind_datagrams(&self, caller: &Caller<'_>, socket: &OwnedFd, address: &Address) -> Result<(), Errno> {
        match socket::bind(socket, address) {
            Err(Errno::EADDRINUSE) => self.unheard_meanwhile(caller, address.port(), || {
                self.reservations.bind(socket, address)?;
                self.own.remember(socket)
            }),
            bound => bound.and_then(|()| self.own.remember(socket)),
        }
    }

    pub(in crate::mediate) fn knows(&self, accepted: &OwnedFd, kind: SocketKind, peer: &Address) -> bool {
        match peer.meaning() {
            Meaning::Internet(peer) if Place::of(peer) == Place::Host => self.has_begun(accepted, peer),
            // For a unix socket at a path, the path decides who reaches it. An abstract name is open to all
            // processes: a client from inside was connected by this process, and no other process can have
            // the pid of this one while it lives.
            _ => kind.family == libc::AF_UNIX && (!has_abstract_name(accepted) || is_ours(accepted)),
        }
    }

    fn has_begun(&self, accepted: &OwnedFd, peer: SocketAddr) -> bool {
        let Ok(Meaning::Internet(own)) = socket::own_name(accepted).as_ref().map(Address::meaning) else {
            return false;
        };
        let client = holders::of_connection(peer, own);
        client.is_some_and(|client| self.begun.accept(client).is_some() || self.own.made(client))
    }
}

impl Outside {
    fn has(&self, place: Place, to: SocketAddr) -> bool {
        let resolver = is_resolver(to, &self.resolvers);
        place.is_within(self.reach) || resolver
    }
}

fn has_abstract_name(socket: &OwnedFd) -> bool {
    // The kernel's own name for a path of maximum length is longer than an address may be.
    !socket::own_name(socket).is_ok_and(|own| !matches!(own.meaning(), Meaning::Abstract(_)))
}

fn is_ours(accepted: &OwnedFd) -> bool {
    getsockopt(accepted, PeerCredentials).is_ok_and(|peer| peer.pid() == getpid().as_raw())
}

/// Duplicates the sockets `holders`. `EACCES` if this process may not inspect one, to which nothing can be sent.
pub(super) fn duplicates(caller: &Caller<'_>, holders: &[Holder]) -> Result<Vec<OwnedFd>, Errno> {
    let found = holders.iter().map(|holder| caller.find(holder.inode, holder.cookie));
    found.map(|found| found.ok_or(Errno::EACCES)).collect()
}

fn stays_on_loopback(address: IpAddr) -> Result<(), Errno> {
    let address = plain(address);
    if address.is_loopback() || address.is_unspecified() { Ok(()) } else { Err(Errno::EADDRNOTAVAIL) }
}
