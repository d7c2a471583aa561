//! Introduces datagram sockets from inside to each other, where the network is off and is the host's: they
//! hear no other senders.
//!
//! A socket is made here, tied to the loopback device, and hears nobody: this holds even if its program never
//! binds it, since the kernel does so unasked (`send` on an unbound socket). Only this process changes the
//! set of senders that it hears (the programs may attach no filter, see [`super::filter`]). Before a socket
//! from inside sends to it, or is connected to it, the port of that sender is added, and reserved at all
//! addresses: no other process gets that port for as long as it is heard ([`super::reservations`]).
//!
//! When another socket from inside is bound to such a port too, or connected to it, the port can be shared
//! for a moment, by strangers as well: for that moment it is not heard, and afterwards only if no stranger
//! has it.
//!
//! Duplicates of receivers would keep their ports taken. So each receiver is looked up for that moment, and
//! ports whose last socket was closed are forgotten when others are added.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;

use nix::errno::Errno;
use nix::libc;

use super::admitted::{self, MOST};
use super::caller::Caller;
use super::holders::Holder;
use super::host::{HostNetwork, Inside, duplicates};
use super::reservations::{Hearer, everywhere};
use super::socket::{self, SocketKind, port};

/// Number of ports that a socket hears before the first search for closed ones; the next search comes at
/// twice as many, and so on.
const FEW: usize = 64;

const DATAGRAM: SocketKind = SocketKind { family: libc::AF_INET, style: libc::SOCK_DGRAM };

impl HostNetwork {
    /// Ties a socket that no program has yet to the loopback device, since the kernel gives it a port unasked
    /// (`listen`, `send`); makes a datagram socket hear nobody.
    pub(super) fn guard(&self, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        if self.outside.is_some() || !kind.is_internet() {
            return Ok(());
        }
        socket::keep_on_loopback(socket)?;
        if kind.is_stream() { Ok(()) } else { admitted::hear_only(socket, &[]) }
    }

    /// Makes the receivers of an address hear a sender, which has a port.
    pub(super) fn introduce(
        &self,
        caller: &Caller<'_>,
        sender: &OwnedFd,
        inside: &Inside,
    ) -> Result<(), Errno> {
        if self.outside.is_some() {
            return Ok(());
        }
        let from = everywhere(plain(inside.at), port(sender)?);
        let _one_at_a_time = self.introducing.lock().unwrap_or_else(PoisonError::into_inner);
        for receiver in &inside.receivers {
            if !self.reservations.is_heard(receiver.cookie, from) {
                let found = caller.find(receiver.inode, receiver.cookie).ok_or(Errno::EACCES)?;
                self.let_hear(caller, &found, from)?;
            }
        }
        Ok(())
    }

    /// Acts while no socket hears a port. A datagram from inside may be lost meanwhile.
    pub(super) fn unheard_meanwhile(
        &self,
        caller: &Caller<'_>,
        port: u16,
        act: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let _one_at_a_time = self.introducing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.reservations.hearers_of(port).into_iter().map(|hearer| {
            // A hearer that cannot be found would hear any later owner of the port.
            Some((hearer, caller.find(hearer.inode, hearer.cookie)?))
        });
        let hearers = found.collect::<Option<Vec<_>>>().ok_or(Errno::EADDRINUSE)?;
        let deafen = |(hearer, receiver): &(Hearer, OwnedFd)| {
            let mut heard = self.reservations.heard_by(hearer.cookie);
            heard.retain(|from| from.port() != port);
            admitted::hear_only(receiver, &heard)
        };
        let acted = hearers.iter().try_for_each(deafen).and_then(|()| act());
        for (hearer, receiver) in &hearers {
            if self.own_at(hearer.from).is_err() {
                self.reservations.release(hearer.cookie, hearer.from);
            }
            let _is_deaf_to_more = admitted::hear_only(receiver, &self.reservations.heard_by(hearer.cookie));
        }
        acted
    }

    /// Makes a newly bound socket hear the sockets that are connected to its port, which was another socket's
    /// before.
    pub(super) fn welcome(&self, caller: &Caller<'_>, receiver: &OwnedFd) -> Result<(), Errno> {
        if self.outside.is_some() {
            return Ok(());
        }
        let _one_at_a_time = self.introducing.lock().unwrap_or_else(PoisonError::into_inner);
        let senders = self.reservations.connected_to(port(receiver)?);
        senders.into_iter().try_for_each(|from| self.let_hear(caller, receiver, from))
    }

    fn let_hear(&self, caller: &Caller<'_>, receiver: &OwnedFd, from: SocketAddr) -> Result<(), Errno> {
        let cookie = socket::cookie(receiver)?;
        let (mut heard, closed) = self.heard_by(cookie);
        if heard.len() >= MOST {
            return Err(Errno::ENOBUFS);
        }
        let holders = self.own_at(from)?;
        self.reservations.reserve(receiver, from, || duplicates(caller, &holders))?;
        heard.push(from);
        // A stranger may have had the port before, or have taken it while ports could be shared.
        let heard = self.own_at(from).and_then(|_| admitted::hear_only(receiver, &heard));
        let unheard = if heard.is_ok() { closed } else { vec![from] };
        for address in unheard {
            self.reservations.release(cookie, address);
        }
        heard
    }

    /// Returns the ports that a socket hears; for a socket with many, also those that no socket has any more.
    fn heard_by(&self, cookie: u64) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let heard = self.reservations.heard_by(cookie);
        if heard.len() < FEW || !heard.len().is_power_of_two() {
            return (heard, vec![]);
        }
        let is_open = |&from: &SocketAddr| self.own_at(from).is_ok_and(|holders| !holders.is_empty());
        heard.into_iter().partition(is_open)
    }

    /// Returns the sockets that have a port, at any address of a family: `EADDRINUSE` unless all of them are
    /// from inside.
    fn own_at(&self, from: SocketAddr) -> Result<Vec<Holder>, Errno> {
        let mut holders = self.holders(DATAGRAM, from.port())?;
        holders.retain(|holder| holder.is_in_family(from.is_ipv4()));
        if self.are_own(&holders) { Ok(holders) } else { Err(Errno::EADDRINUSE) }
    }
}

/// Returns an address as packets carry it.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(ipc::place::plain(address.ip()), address.port())
}
