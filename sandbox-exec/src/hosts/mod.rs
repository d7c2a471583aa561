//! Hosts that a program of the full tier may reach by name, although its network leads nowhere.
//!
//! ```text
//! program ── "a.example?" ──► resolver      198.19.0.1: an address that stands for the name in this sandbox
//! program ── connect ───────► mediator      is there a name for the address, and does the list have the port?
//!         ◄═ connection ════► listener      accepted by init, in a namespace beside the program's
//!                               └─ Arrival and the connection ──► gateway: connects to the real host
//! ```
//!
//! Nothing that is asked here leaves this process: no name is looked up anywhere, and no connection is made.
//!
//! * `names`: the list, and the addresses that stand for its names. `question`: messages of the Domain Name
//!   System. `resolver`: their sockets. `acceptor`: the thread that answers and accepts.

mod acceptor;
mod names;
mod question;
mod resolver;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use ipc::rights::Hosts;

pub(crate) use acceptor::start;
pub use names::NamedHosts;
pub(crate) use names::Permission;

/// Address of the program's end of the pair.
pub(crate) const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Address of the other end.
pub(crate) const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// First address of those that stand for hosts: 198.19.0.0/16.
pub(crate) const OF_HOSTS: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 0);

/// Open sockets that stand for hosts, none of which waits.
#[derive(Debug, Default)]
pub(crate) struct Entrances {
    /// Resolver, by datagrams and by connections.
    pub(crate) datagrams: Vec<UdpSocket>,
    pub(crate) streams: Vec<TcpListener>,
    /// Ports of the hosts.
    pub(crate) ports: Vec<TcpListener>,
}

/// Returns the ports of a list.
pub(crate) fn ports(hosts: &Hosts) -> BTreeSet<u16> {
    hosts.rules().iter().map(ipc::rights::HostRule::port).collect()
}
