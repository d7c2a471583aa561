//! Whom datagram sockets from inside hear, where the network is off and is the host's: each other.
//!
//! A socket is made here, tied to the loopback device, and hears nobody: nothing depends on whether its program ever binds it, since the
//! kernel does so unasked (`send` on an unbound socket). What it hears only this process changes (the programs may attach no filter,
//! see [`super::filter`]). Before somebody from inside sends to it, or is connected to it, the port of that sender is added, and
//! reserved at all addresses: that port is nobody else's for as long as it is heard ([`super::reservations`]).
//!
//! When somebody from inside is bound to such a port too, or connected to it, it can be shared for a moment, by strangers as well: for that
//! moment it is not heard, and afterwards only if no stranger has it.
//!
//! To hold receivers would keep their ports taken. So each is found for that moment, and ports whose last socket was closed are
//! forgotten when others are added.

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

/// How many ports a socket hears before it is looked which of them are closed: so many, twice as many …
const FEW: usize = 64;

const DATAGRAM: SocketKind = SocketKind { family: libc::AF_INET, style: libc::SOCK_DGRAM };

impl HostNetwork {
    /// Ties a socket that no program has yet to the loopback device, since the kernel gives it a port unasked (`listen`, `send`); and
    /// has one of datagrams hear nobody.
    pub(super) fn guard(&self, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        if self.outside.is_some() || !kind.is_internet() {
            return Ok(());
        }
        socket::keep_on_loopback(socket)?;
        if kind.is_stream() { Ok(()) } else { admitted::hear_only(socket, &[]) }
    }

    /// Has the receivers of an address hear a sender, which has a port.
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

    /// Acts while nobody hears a port. A datagram from inside may be lost meanwhile.
    pub(super) fn unheard_meanwhile(
        &self,
        caller: &Caller<'_>,
        port: u16,
        act: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let _one_at_a_time = self.introducing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.reservations.hearers_of(port).into_iter().map(|hearer| {
            // Who cannot be found would hear whoever comes.
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

    /// Has a socket that was bound just now hear who is connected to its port: it was another's.
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
        // Somebody outside may have been there before, or have come while ports could be shared.
        let heard = self.own_at(from).and_then(|_| admitted::hear_only(receiver, &heard));
        let unheard = if heard.is_ok() { closed } else { vec![from] };
        for address in unheard {
            self.reservations.release(cookie, address);
        }
        heard
    }

    /// The ports that a socket hears; and of many those that nobody has any more.
    fn heard_by(&self, cookie: u64) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let heard = self.reservations.heard_by(cookie);
        if heard.len() < FEW || !heard.len().is_power_of_two() {
            return (heard, vec![]);
        }
        let is_open = |&from: &SocketAddr| self.own_at(from).is_ok_and(|holders| !holders.is_empty());
        heard.into_iter().partition(is_open)
    }

    /// Who has a port, at whatever address of a family: `EADDRINUSE` unless they are all from inside.
    fn own_at(&self, from: SocketAddr) -> Result<Vec<Holder>, Errno> {
        let mut holders = self.holders(DATAGRAM, from.port())?;
        holders.retain(|holder| holder.is_in_family(from.is_ipv4()));
        if self.are_own(&holders) { Ok(holders) } else { Err(Errno::EADDRINUSE) }
    }
}

/// An address as packets have it.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(ipc::place::plain(address.ip()), address.port())
}
