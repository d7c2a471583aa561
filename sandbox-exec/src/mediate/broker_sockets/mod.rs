//! Callers' sockets that cannot be duplicated, because a container's profile denies `pidfd_getfd(2)`. This process
//! creates them (`socket(2)` is mediated too), and keeps a duplicate while a call may need it ([`Registry`]).
//!
//! A caller's socket is looked up by its inode in `/proc`. No duplicate of a connected socket is kept. The mediator
//! leaves `sendmsg`, `sendmmsg` and `sendto` on it to the kernel, which ignores or denies another address. This is safe
//! only if no program can put a datagram socket under the descriptor's number before the kernel looks it up. One of
//! these ensures that:
//!
//! * No process has a datagram socket, and none gets one before the kernel has looked ([`Datagrams`]).
//! * Only the calling thread can change its table of descriptors, which it shares with no other ([`Tables`]). The
//!   thread waits for the answer, so the kernel will find the socket that `/proc` shows now.
//!
//! If neither holds within a second, the call fails with `EPERM`. The mediator cannot perform it: a duplicate that it
//! kept would outlive the programs' last close, and a new one cannot be made.
//!
//! Every socket was created here, is one end of a connection by `accept` or `socketpair`, or was handed in
//! ([`HandedIn`]): the filter denies pairs of datagram sockets.

pub(super) mod access;
mod create;
mod datagrams;
pub(super) mod registry;

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc::pid_t;

use super::call::address::{Address, Meaning};
use super::call::caller::Caller;
use super::call::socket::{self, SocketKind};
use super::kernel::descriptor_tables::Tables;
use super::kernel::open_descriptors::HoldingPlace;
use super::kernel::status::Status;
use access::HandedIn;
use datagrams::Datagrams;
use registry::Registry;

#[derive(Debug)]
pub(super) struct BrokerSockets {
    pub(super) registry: Registry,
    pub(super) tables: Tables,
    datagrams: Datagrams,
    handed_in: HandedIn,
}

#[derive(Debug)]
pub(super) enum FoundCreator {
    Held(OwnedFd),
    /// Socket that the program was started with.
    HandedIn(SocketKind),
    Connected,
}

impl BrokerSockets {
    pub(super) fn new(handed_in: HandedIn) -> Result<Self, Errno> {
        let (registry, tables) = (Registry::default(), Tables::default());
        Ok(Self { registry, tables, datagrams: Datagrams::new()?, handed_in })
    }

    /// Registers a new socket, and returns its inode. Fails with `EAGAIN` if the socket cannot be registered yet.
    pub(in crate::mediate) fn enter(&self, socket: &OwnedFd, kind: SocketKind) -> Result<u64, Errno> {
        let inode = self.registry.hold(socket)?;
        if kind.takes_addresses() && kind.leads_out() {
            self.datagrams.enter(socket, inode).inspect_err(|_| self.registry.forget(inode))?;
        }
        Ok(inode)
    }

    /// Returns the origin of a caller's socket. Valid only if the call still waits afterwards.
    pub(in crate::mediate) fn find(&self, place: HoldingPlace) -> Result<FoundCreator, Errno> {
        let inode = place.socket()?;
        if let Some(held) = self.registry.get(inode) {
            return held.map(FoundCreator::Held);
        }
        // Another thread hid the socket during the search.
        if self.datagrams.has(inode) {
            return Err(Errno::EPERM);
        }
        Ok(self.handed_in.kind(inode).map_or(FoundCreator::Connected, FoundCreator::HandedIn))
    }

    /// Duplicates a caller's socket. `EPERM` if this process keeps no duplicate.
    pub(in crate::mediate) fn duplicate(&self, place: HoldingPlace) -> Result<OwnedFd, Errno> {
        match place.socket() {
            Ok(inode) => self.registry.get(inode).unwrap_or(Err(Errno::EPERM)),
            Err(Errno::ENOTSOCK) => Err(Errno::EPERM),
            Err(errno) => Err(errno),
        }
    }

    pub(in crate::mediate) fn held(&self, inode: u32, cookie: u64) -> Option<OwnedFd> {
        let held = self.registry.get(inode.into())?.ok()?;
        socket::cookie(&held).is_ok_and(|found| found == cookie).then_some(held)
    }

    /// Drops the duplicate of a socket if the socket is connected by now.
    pub(in crate::mediate) fn settle(&self, socket: &OwnedFd) {
        if socket::is_connected_stream(socket) {
            if let Ok(inode) = nix::sys::stat::fstat(socket).map(|stat| stat.st_ino) {
                self.registry.forget(inode);
            }
        } else {
            self.registry.look_soon();
        }
    }

    pub(in crate::mediate) fn passes(&self, caller: &Caller<'_>, place: HoldingPlace) -> Result<bool, Errno> {
        if !self.handed_in.take_addresses() && self.datagrams.pass(caller.thread()) {
            return Ok(true);
        }
        let status = Status::of(caller.thread())?;
        if status.threads != 1 || !self.tables.is_private(&status) {
            return Ok(false);
        }
        // From here on no other thread changes the table.
        let found = self.find(place)?;
        caller.still_waits()?;
        match found {
            FoundCreator::Connected => Ok(true),
            FoundCreator::HandedIn(kind) => Ok(!kind.takes_addresses()),
            FoundCreator::Held(_) => Ok(false),
        }
    }

    /// Drops duplicates of closed sockets that could still hold or answer at an address.
    pub(super) fn let_go_of_closed(&self, address: &Address) {
        match address.meaning() {
            Meaning::Internet(to) => self.registry.let_go_of(|socket| {
                let own = socket::own_name(socket);
                own.is_ok_and(
                    |own| matches!(own.meaning(), Meaning::Internet(own) if own.port() == to.port()),
                )
            }),
            // Any unix socket may match, since links may lead to it.
            Meaning::Path(_) | Meaning::Abstract(_) => self.registry.let_go_of(|socket| {
                let own = socket::own_name(socket);
                own.is_ok_and(|own| matches!(own.meaning(), Meaning::Path(_) | Meaning::Abstract(_)))
            }),
            _ => 0,
        };
    }

    pub(super) fn is_back(&self, thread: pid_t) {
        self.datagrams.is_back(thread);
    }

    pub(super) fn answered(&self, thread: pid_t) {
        self.datagrams.answered(thread);
    }
}
