//! Network namespaces of a program in the full tier. The program's own leads nowhere. If the program may reach hosts by
//! name, there is a second one, in which sockets of init stand for the hosts.
//!
//! ```text
//! program's namespace                        namespace beside it: no process, only sockets of init
//!   lo      127.0.0.1, ::1                     lo      local 198.19.0.0/16: all of them are its own
//!   hosts   198.18.0.1/15 ═══════ veth ═══════ hosts   198.18.0.2/15
//!   127.0.0.1:53  resolver                     198.18.0.2:53  resolver
//!                                              0.0.0.0:443 …  a listener for each port of the hosts
//! ```
//!
//! The program cannot create sockets in the second namespace. So it can neither answer there as a host nor take the
//! listeners' ports.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use ipc::place::DOMAIN;
use ipc::rights::Hosts;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{Backlog, listen};

use super::machine::Refusal;
use super::netlink::{Device, LOOPBACK, Netlink, Subnet};
use crate::hosts::{Entrances, OF_HOSTS, OWN, RESOLVER};

/// Index of the device at both ends of the pair. In a new namespace the indexes of other devices are small.
const PAIR: Device = Device(64);
const NAME: &str = "hosts";

/// Prefix length of the test networks (RFC 2544), which contain all addresses of program, resolver and hosts.
const WHOLE: u8 = 15;
const OF_ALL_HOSTS: Subnet = Subnet { address: OF_HOSTS, prefix: 16 };

#[derive(Debug)]
pub(crate) struct Networks {
    own: Option<OwnedFd>,
}

/// Creates the network namespaces, and enters the one that has to be set up first.
pub(crate) fn separate(hosts: Option<&Hosts>) -> Result<Networks, Refusal> {
    let make = || {
        let made = unshare(CloneFlags::CLONE_NEWNET);
        made.map_err(|errno| Refusal::new("make a network namespace", errno))
    };
    make()?;
    let Some(_) = hosts else { return Ok(Networks { own: None }) };
    let own =
        File::open("/proc/self/ns/net").map_err(|error| Refusal::new("open a network namespace", error))?;
    make()?;
    Ok(Networks { own: Some(own.into()) })
}

impl Networks {
    /// Enables the devices, opens the sockets that accept connections to hosts, and enters the program's namespace.
    pub(super) fn furnish(self, ports: Option<&BTreeSet<u16>>) -> Result<Option<Entrances>, Refusal> {
        let refused = |act| move |source: io::Error| Refusal::new(act, source);
        let Some((own, ports)) = self.own.zip(ports) else {
            return lonely().map(|()| None).map_err(refused("switch the loopback device on"));
        };
        beside(own.as_fd()).map_err(refused("make a pair of veth devices for the list of hosts"))?;
        let mut entrances = Entrances::default();
        resolve_at(RESOLVER, &mut entrances).map_err(refused("open the resolver's port"))?;
        for port in ports {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port));
            let opened = listener.and_then(|listener| open(listener, &mut entrances.ports));
            opened.map_err(refused("open a port of the hosts"))?;
        }
        setns(own, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| Refusal::new("enter a network namespace", errno))?;
        joined().map_err(refused("switch the network devices on"))?;
        resolve_at(Ipv4Addr::LOCALHOST, &mut entrances).map_err(refused("open the resolver's port"))?;
        Ok(Some(entrances))
    }
}

/// Sets up a network without hosts: the loopback device alone.
///
/// The device also gets an address of the test networks. With `127.0.0.1` alone, getaddrinfo(3) takes the machine for
/// one without IPv4, and with `AI_ADDRCONFIG` does not find `localhost`.
fn lonely() -> io::Result<()> {
    let mut kernel = Netlink::open()?;
    kernel.switch_on(LOOPBACK)?;
    kernel.add_address(LOOPBACK, Subnet { address: OWN, prefix: WHOLE }, "lo:0")
}

/// Sets up the second namespace, and the pair of devices that connects it with the program's.
fn beside(program: impl AsFd) -> io::Result<()> {
    let mut kernel = Netlink::open()?;
    kernel.switch_on(LOOPBACK)?;
    kernel.make_pair(PAIR, NAME, program.as_fd())?;
    end(&mut kernel, RESOLVER)?;
    kernel.own_range(OF_ALL_HOSTS)
}

/// Sets up the program's namespace. Routes to all hosts lead over one neighbour, since the kernel's small table of
/// neighbours is shared by all namespaces.
fn joined() -> io::Result<()> {
    let mut kernel = Netlink::open()?;
    kernel.switch_on(LOOPBACK)?;
    end(&mut kernel, OWN)?;
    kernel.send_by(OF_ALL_HOSTS, RESOLVER)
}

fn end(kernel: &mut Netlink, address: Ipv4Addr) -> io::Result<()> {
    kernel.forbid_v6(PAIR)?;
    kernel.add_address(PAIR, Subnet { address, prefix: WHOLE }, NAME)?;
    kernel.switch_on(PAIR)
}

fn resolve_at(address: Ipv4Addr, entrances: &mut Entrances) -> io::Result<()> {
    let datagrams = UdpSocket::bind((address, DOMAIN))?;
    datagrams.set_nonblocking(true)?;
    entrances.datagrams.push(datagrams);
    open(TcpListener::bind((address, DOMAIN))?, &mut entrances.streams)
}

fn open(listener: TcpListener, listeners: &mut Vec<TcpListener>) -> io::Result<()> {
    // As many connections wait as the kernel allows (`net.core.somaxconn`, 4,096 in a new namespace).
    listen(&listener, Backlog::MAXALLOWABLE)?;
    listener.set_nonblocking(true)?;
    listeners.push(listener);
    Ok(())
}
