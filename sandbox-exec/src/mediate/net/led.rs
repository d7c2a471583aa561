//! Hosts by name on the machine's own network, where no namespace can stand for them.
//!
//! What goes to the machine's resolvers, or to an address that stands for a name, is led to two sockets of this
//! process on loopback:
//!
//! ```text
//! program ── question to a resolver of /etc/resolv.conf ──► 0.0.0.0:R, on loopback alone
//! program ── connect to 198.19.a.b:P ─────────────────────► 127.0.0.1:H
//! ```
//!
//! Every process of the machine may knock at them. The first hears only ports from inside, as each datagram
//! socket of a program does ([`super::introductions`]), and is the only sender that all of these hear: it has its port
//! at all addresses of IPv4, for as long as this process lives. The second passes a connection on only if its
//! client was noted here, by its cookie, before it connected; the note says which host was meant.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ipc::gateway::Arrival;
use ipc::place::{is_resolver, plain, resolvers};
use ipc::rights::{HostName, Hosts};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{Backlog, listen};

use super::connections::Connections;
use super::{holders, port_filter};
use crate::hosts::{Arrivals, Entrances, NamedHosts};
use crate::mediate::call::address::Address;
use crate::mediate::call::caller::Caller;
use crate::mediate::call::socket::{self, SocketKind};
use crate::mediate::refusals::Denied;
use crate::mediate::rules::{HostAddress, hosted};
use crate::namespace::resolving::host_name;

/// Way to the hosts that programs reach by name.
#[derive(Debug)]
pub struct Led {
    hosts: Arc<NamedHosts>,
    /// Addresses of the machine's resolvers.
    resolvers: Vec<IpAddr>,
    /// Sockets that serve in place of the resolvers and the hosts, and their ports.
    resolver: OwnedFd,
    listener: OwnedFd,
    ports: Ports,
    /// Hosts that are meant by connections, which are not accepted yet.
    noted: Connections<Arrival>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    resolver: u16,
    hosts: u16,
}

/// Way to a socket of this process.
#[derive(Debug)]
pub(super) struct LedSocket {
    pub(super) at: SocketAddr,
    pub(super) named: HostAddress,
}

impl Led {
    /// Opens the sockets; returns them for the thread that answers and accepts.
    ///
    /// With `asks`, somebody may be asked about hosts beyond the list.
    pub(crate) fn open(hosts: Hosts, asks: bool) -> Result<(Self, Entrances), Errno> {
        let settings = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let own = host_name();
        let search = searched(&settings, own.as_ref());
        let hosts = NamedHosts::new(hosts, own).searched(search);
        let hosts = Arc::new(if asks { hosts.asking() } else { hosts });
        let resolver = socket::datagram(libc::AF_INET)?;
        socket::keep_on_loopback(&resolver)?;
        port_filter::hear_only(&resolver, &[])?;
        socket::bind(&resolver, &Address::of_internet((Ipv4Addr::UNSPECIFIED, 0).into()))?;
        let listener = socket::make(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        socket::bind(&listener, &Address::of_internet((Ipv4Addr::LOCALHOST, 0).into()))?;
        listen(&listener, Backlog::MAXALLOWABLE)?;
        let clone = |socket: &OwnedFd| socket.try_clone().map_err(|_| Errno::EMFILE);
        let (datagrams, streams) = (UdpSocket::from(clone(&resolver)?), TcpListener::from(clone(&listener)?));
        let set = datagrams.set_nonblocking(true).and_then(|()| streams.set_nonblocking(true));
        set.map_err(|_| Errno::EINVAL)?;
        let entrances = Entrances { datagrams: vec![datagrams], streams: vec![], ports: vec![streams] };
        let ports = Ports { resolver: socket::port(&resolver)?, hosts: socket::port(&listener)? };
        let (resolvers, noted) = (resolvers(&settings), Connections::default());
        Ok((Self { hosts, resolvers, resolver, listener, ports, noted }, entrances))
    }

    pub(crate) fn hosts(&self) -> &Arc<NamedHosts> {
        &self.hosts
    }

    pub(super) fn sockets(&self) -> [&OwnedFd; 2] {
        [&self.resolver, &self.listener]
    }

    /// Returns the address of the socket that serves in place of the resolvers.
    pub(super) fn resolver(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports.resolver).into()
    }

    /// Returns the socket that serves in place of the resolvers, if it has this cookie.
    pub(in crate::mediate) fn find(&self, cookie: u64) -> Option<OwnedFd> {
        let is_it = socket::cookie(&self.resolver) == Ok(cookie);
        is_it.then(|| self.resolver.try_clone().ok()).flatten()
    }

    /// Returns the way to a socket that takes the place of an address; `None` if none does. Notes which host a
    /// connection means, and denies hosts that are not on the list.
    pub(super) fn lead(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        kind: SocketKind,
        to: SocketAddr,
    ) -> Result<Option<LedSocket>, Denied> {
        if !kind.is_stream() && is_resolver(to, &self.resolvers) {
            return Ok(Some(LedSocket {
                at: in_family(kind, self.ports.resolver),
                named: HostAddress::default(),
            }));
        }
        let at = SocketAddr::new(plain(to.ip()), to.port());
        let Some(named) = hosted(&self.hosts, caller, kind, at)? else { return Ok(None) };
        let meant = self.hosts.arrival(at).ok_or(Errno::ECONNREFUSED)?;
        self.noted.begin(socket::cookie(socket)?, meant);
        Ok(Some(LedSocket { at: in_family(kind, self.ports.hosts), named }))
    }
}

impl Arrivals for Led {
    fn arrival(&self, connection: &TcpStream) -> Option<Arrival> {
        let (client, own) = (connection.peer_addr().ok()?, connection.local_addr().ok()?);
        let client = holders::of_connection(client, own)?;
        // A stranger that is gone may have left its port to the client that was found (then ENOTCONN).
        connection.peer_addr().ok()?;
        self.noted.accept(client)
    }
}

/// Returns the domains that programs add to names: those of resolv.conf(5), else this machine's.
fn searched(settings: &str, own: Option<&HostName>) -> Vec<HostName> {
    let domains = |line| {
        let (keyword, domains) = str::split_once(line, [' ', '\t'])?;
        matches!(keyword, "search" | "domain").then_some(domains)
    };
    let mut found: Vec<_> =
        settings.lines().filter_map(domains).flat_map(str::split_ascii_whitespace).collect();
    if found.is_empty() {
        found.extend(own.and_then(|own| own.as_str().split_once('.')).map(|(_, domain)| domain));
    }
    found.iter().filter_map(|domain| domain.parse().ok()).collect()
}

/// Returns a loopback address that sockets of this kind can use.
fn in_family(kind: SocketKind, port: u16) -> SocketAddr {
    let loopback = Ipv4Addr::LOCALHOST;
    let ip: IpAddr =
        if kind.family == libc::AF_INET6 { loopback.to_ipv6_mapped().into() } else { loopback.into() };
    SocketAddr::new(ip, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_searched_as_the_library_searches_them() {
        let own: HostName = "machine.own.example".parse().unwrap();
        let found = |settings| {
            let found = searched(settings, Some(&own));
            found.iter().map(HostName::as_str).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            found("nameserver 10.0.0.1\nsearch a.example\tb.example\noptions ndots:5\n"),
            "a.example b.example"
        );
        assert_eq!(found("domain c.example\n"), "c.example");
        assert_eq!(found("nameserver 10.0.0.1\n# search d.example\n"), "own.example");
        assert_eq!(searched("", Some(&"machine".parse().unwrap())), []);
    }
}
