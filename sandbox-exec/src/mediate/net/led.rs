//! Hosts that a program in the host's network namespace reaches by name. The mediator redirects calls to the machine's
//! resolvers, and to placeholder addresses of hosts, to two sockets of this process on loopback:
//!
//! ```text
//! program ── question to a resolver of /etc/resolv.conf ──► 0.0.0.0:R, on loopback alone
//! program ── connect to 198.19.a.b:P ─────────────────────► 127.0.0.1:H
//! ```
//!
//! Every process of the machine can send to these sockets. So the first, the resolver's, receives only from registered
//! ports of the sandbox, like a program's datagram sockets ([`super::introductions`]). They may all receive from it: no
//! other process can have its port, since it has the port at all IPv4 addresses. The second accepts a connection only
//! if the mediator has recorded the client's cookie before, with the host's name.

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

#[derive(Debug)]
pub struct Led {
    hosts: Arc<NamedHosts>,
    resolvers: Vec<IpAddr>,
    resolver: OwnedFd,
    listener: OwnedFd,
    ports: Ports,
    noted: Connections<Arrival>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    resolver: u16,
    hosts: u16,
}

#[derive(Debug)]
pub(super) struct LedSocket {
    pub(super) at: SocketAddr,
    pub(super) named: HostAddress,
}

impl Led {
    /// Opens the sockets of the redirections, and returns them also for the thread that answers and accepts. `asks` is
    /// true if the user may be asked about unlisted hosts.
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

    pub(super) fn resolver(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports.resolver).into()
    }

    pub(in crate::mediate) fn find(&self, cookie: u64) -> Option<OwnedFd> {
        let is_it = socket::cookie(&self.resolver) == Ok(cookie);
        is_it.then(|| self.resolver.try_clone().ok()).flatten()
    }

    /// Redirects a call to a placeholder address or to a resolver, and records the host. Returns `None` for other
    /// addresses. Denies unlisted hosts.
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

/// Returns the domains that programs append to names: those of resolv.conf(5), or else this machine's.
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
