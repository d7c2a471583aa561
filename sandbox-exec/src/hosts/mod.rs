//! Hosts that a program without a network reaches by name. The picture shows the full tier; in the floor tier the
//! resolver and the listener are on the host's loopback ([`crate::mediate::Led`]).
//!
//! ```text
//! program ── "a.example?" ──► resolver      198.19.0.1: an address that stands for the name in this sandbox
//! program ── connect ───────► mediator      is there a name for the address, and does the list have the port?
//!         ◄═ connection ════► listener      accepted by init, in a namespace beside the program's
//!                               └─ Arrival and the connection ──► gateway: connects to the real host
//! ```
//!
//! If the user may be asked, connections to unlisted hosts are also accepted and passed on, at the ports of the list
//! and at [`ASKED`]. Each is reported like a denied connection.
//!
//! This process looks up no name in the real network and connects to no host.
//!
//! * `names`: the list, and the addresses that stand for its names. `question`: messages of the Domain Name System.
//!   `resolver`: their sockets. `acceptor`: the thread that answers and accepts.

mod acceptor;
mod names;
mod question;
mod resolver;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use ipc::gateway::{Arrival, PROXY};
use ipc::rights::Hosts;

pub(crate) use acceptor::start;
pub use names::NamedHosts;
pub(crate) use names::Permission;

/// Address of the program's end of the virtual network link (veth pair).
pub(crate) const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Address of the other end of the virtual network link, at which the resolver answers.
pub(crate) const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// First placeholder address of hosts. All placeholders are in 198.19.0.0/16.
pub(crate) const OF_HOSTS: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 0);

/// Placeholder address of the gateway's proxy ([`ipc::gateway::PROXY`]).
pub(crate) const OF_PROXY: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);

/// Ports at which the user may be asked about hosts that are not on the list: web, ssh, git, common databases and test
/// servers. Connections to other ports of such hosts are denied at once.
const ASKED: [u16; 12] = [22, 80, 443, 3000, 3306, 5000, 5432, 6379, 8000, 8080, 8443, 9418];

#[derive(Debug, Default)]
pub(crate) struct Entrances {
    pub(crate) datagrams: Vec<UdpSocket>,
    pub(crate) streams: Vec<TcpListener>,
    pub(crate) ports: Vec<TcpListener>,
}

pub(crate) trait Arrivals: Debug + Send + Sync {
    /// Returns the host and port of a connection; `None` if the connection may not be passed on.
    fn arrival(&self, connection: &TcpStream) -> Option<Arrival>;
}

impl Arrivals for NamedHosts {
    fn arrival(&self, connection: &TcpStream) -> Option<Arrival> {
        connection.local_addr().ok().and_then(|at| self.arrival(at))
    }
}

pub(crate) fn ports(hosts: &Hosts, asks: bool) -> BTreeSet<u16> {
    let asked = ASKED.into_iter().filter(|_| asks);
    hosts.rules().iter().map(ipc::rights::HostRule::port).chain([PROXY.1]).chain(asked).collect()
}
