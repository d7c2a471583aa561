//! Permissions of datagram sockets inside the sandbox to receive from each other. In the host's network namespace, with
//! the network off, they receive from no other senders.
//!
//! A new socket is bound to the loopback device. It receives from nobody, even if the kernel gives it a port at a
//! `send`. Its filter has the ports of its permitted senders. Only this process changes the filter, since programs may
//! attach none (see [`crate::mediate::filter`]). Before another socket inside sends to it or is connected to it, the
//! sender's port is added to the filter. As long as it is there, that port is reserved at all addresses
//! ([`super::reservations`]).
//!
//! While another socket inside is bound or connected to such a port, processes outside could share the port for a
//! moment. During that moment no socket inside receives from the port, nor afterwards if a process outside has it.
//!
//! A duplicate of a receiver would keep its port taken after the program has closed it. So no duplicate is kept; the
//! receiver is looked up each time.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;

use nix::errno::Errno;
use nix::libc;

use super::holders::Holder;
use super::host::{HostNetwork, Inside, duplicates};
use super::port_filter::MOST;
use super::reservations::{Hearer, everywhere};
use crate::mediate::call::caller::Caller;
use crate::mediate::call::socket::{self, SocketKind, port};

/// Number of ports in a filter at which closed ones are first searched for; the next search is at twice as many.
const FEW: usize = 64;

const DATAGRAM: SocketKind = SocketKind { family: libc::AF_INET, style: libc::SOCK_DGRAM };

impl HostNetwork {
    /// Binds a new socket to the loopback device, since the kernel may give it a port without a `bind` (`listen`,
    /// `send`). Makes a datagram socket receive from nobody at first.
    pub(in crate::mediate) fn guard(&self, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        if self.outside.is_some() || !kind.is_internet() {
            return Ok(());
        }
        socket::keep_on_loopback(socket)?;
        if kind.is_stream() { Ok(()) } else { self.hear_only(socket, &[]) }
    }

    pub(in crate::mediate) fn introduce(
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
                let found = self.find(caller, receiver.cookie, receiver.inode).ok_or(Errno::EACCES)?;
                self.let_hear(caller, &found, from)?;
            }
        }
        Ok(())
    }

    /// Calls `act` while no socket inside receives from the port. A datagram from inside may be lost meanwhile.
    pub(super) fn unheard_meanwhile(
        &self,
        caller: &Caller<'_>,
        port: u16,
        act: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let _one_at_a_time = self.introducing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.reservations.hearers_of(port).into_iter().map(|hearer| {
            // A hearer that cannot be found would hear any later owner of the port.
            Some((hearer, self.find(caller, hearer.cookie, hearer.inode)?))
        });
        let hearers = found.collect::<Option<Vec<_>>>().ok_or(Errno::EADDRINUSE)?;
        let deafen = |(hearer, receiver): &(Hearer, OwnedFd)| {
            let mut heard = self.reservations.heard_by(hearer.cookie);
            heard.retain(|from| from.port() != port);
            self.hear_only(receiver, &heard)
        };
        let acted = hearers.iter().try_for_each(deafen).and_then(|()| act());
        for (hearer, receiver) in &hearers {
            if self.own_at(hearer.from).is_err() {
                self.reservations.release(hearer.cookie, hearer.from);
            }
            let _is_deaf_to_more = self.hear_only(receiver, &self.reservations.heard_by(hearer.cookie));
        }
        acted
    }

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
        // The resolver has a port, too.
        if heard.len() + usize::from(self.led.is_some()) >= MOST {
            return Err(Errno::ENOBUFS);
        }
        let holders = self.own_at(from)?;
        self.reservations.reserve(receiver, from, || duplicates(caller, &holders))?;
        heard.push(from);
        // A stranger may have had the port before, or have taken it while ports could be shared.
        let heard = self.own_at(from).and_then(|_| self.hear_only(receiver, &heard));
        let unheard = if heard.is_ok() { closed } else { vec![from] };
        for address in unheard {
            self.reservations.release(cookie, address);
        }
        heard
    }

    fn heard_by(&self, cookie: u64) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let heard = self.reservations.heard_by(cookie);
        if heard.len() < FEW || !heard.len().is_power_of_two() {
            return (heard, vec![]);
        }
        let is_open = |&from: &SocketAddr| self.own_at(from).is_ok_and(|holders| !holders.is_empty());
        heard.into_iter().partition(is_open)
    }

    /// Returns the sockets that have the port at the address. Fails with `EADDRINUSE` unless all of them are inside.
    fn own_at(&self, from: SocketAddr) -> Result<Vec<Holder>, Errno> {
        let mut holders = self.holders(DATAGRAM, from.port())?;
        holders.retain(|holder| holder.is_in_family(from.is_ipv4()));
        if self.are_own(&holders) { Ok(holders) } else { Err(Errno::EADDRINUSE) }
    }
}

/// Returns the address in the form that packets have: an IPv4 address for an IPv6 one that stands for it.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(ipc::place::plain(address.ip()), address.port())
}
