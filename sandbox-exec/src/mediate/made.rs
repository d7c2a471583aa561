//! The callers' sockets where they cannot be duplicated (`pidfd_getfd(2)` is denied by the profiles of
//! containers): this process makes them (`socket(2)` is mediated too), and keeps a duplicate of each as long
//! as a call may need it ([`Registry`]).
//!
//! The socket of a caller's number is read from `/proc` and looked up by inode. A connection has left the
//! registry, and its end is the kernel's alone; of the mediated calls only `sendmsg`, `sendmmsg` and `sendto`
//! mean anything on it, and they go on by themselves. This is no decision about an address: for a connection
//! there is none. The kernel must find no datagram socket under that number, and one of these ensures that:
//!
//! * No datagram socket is open in any process, and none is given out before the kernel has looked
//!   ([`Datagrams`]).
//! * The caller's thread is the only one that could change its table: its process has no other thread, and
//!   shares the table with no other process ([`Tables`]). It waits, so what is read in `/proc` now is what
//!   the kernel will find.
//!
//! Otherwise the call waits a moment for the datagram sockets to be closed, and fails with `EPERM`. It cannot
//! be performed here instead: a duplicate that was kept would keep the connection from ending when its
//! programs close it, and later none is to be had. Nor is it enough that the caller's process has no datagram
//! socket now: another may pass it one over a unix socket before the kernel looks.
//!
//! Every socket was made here, or is one end of a connection that `accept` or `socketpair` made, or was
//! handed in ([`HandedIn`]): the filter denies pairs of datagram sockets.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc::pid_t;

use super::address::{Address, Meaning};
use super::caller::Caller;
use super::datagrams::Datagrams;
use super::holding::HoldingPlace;
use super::registry::Registry;
use super::socket::{self, SocketKind};
use super::sockets::HandedIn;
use super::status::Status;
use super::tables::Tables;

/// Sockets that were made here.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) registry: Registry,
    /// Processes that share tables.
    pub(super) tables: Tables,
    datagrams: Datagrams,
    handed_in: HandedIn,
}

/// Meaning of a caller's descriptor number.
#[derive(Debug)]
pub(super) enum FoundCreator {
    /// Duplicate of a socket that is held.
    Held(OwnedFd),
    /// Socket that was not made here.
    HandedIn(SocketKind),
    Connected,
}

impl Made {
    pub(super) fn new(handed_in: HandedIn) -> Result<Self, Errno> {
        let (registry, tables) = (Registry::default(), Tables::default());
        Ok(Self { registry, tables, datagrams: Datagrams::new()?, handed_in })
    }

    /// Holds a socket that a program is to get, and returns its inode. `EAGAIN` if the socket has to wait a
    /// moment.
    pub(super) fn enter(&self, socket: &OwnedFd, kind: SocketKind) -> Result<u64, Errno> {
        let inode = self.registry.hold(socket)?;
        if kind.takes_addresses() && kind.leads_out() {
            self.datagrams.enter(socket, inode).inspect_err(|_| self.registry.forget(inode))?;
        }
        Ok(inode)
    }

    /// Finds the socket at a place in a caller's table. It is the caller's own only if the call still waits
    /// afterwards.
    pub(super) fn find(&self, place: HoldingPlace) -> Result<FoundCreator, Errno> {
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

    /// Returns a duplicate of the socket at a place, to be passed along. `EPERM` if no duplicate is held.
    pub(super) fn duplicate(&self, place: HoldingPlace) -> Result<OwnedFd, Errno> {
        match place.socket() {
            Ok(inode) => self.registry.get(inode).unwrap_or(Err(Errno::EPERM)),
            Err(Errno::ENOTSOCK) => Err(Errno::EPERM),
            Err(errno) => Err(errno),
        }
    }

    /// Returns a duplicate of a socket that is held, if its cookie matches.
    pub(super) fn held(&self, inode: u32, cookie: u64) -> Option<OwnedFd> {
        let held = self.registry.get(inode.into())?.ok()?;
        socket::cookie(&held).is_ok_and(|found| found == cookie).then_some(held)
    }

    /// Drops a socket that is a connection by now.
    pub(super) fn settle(&self, socket: &OwnedFd) {
        if socket::is_connected_stream(socket) {
            if let Ok(inode) = nix::sys::stat::fstat(socket).map(|stat| stat.st_ino) {
                self.registry.forget(inode);
            }
        } else {
            self.registry.look_soon();
        }
    }

    /// True if a caller's call on a connection can be left to the kernel.
    pub(super) fn passes(&self, caller: &Caller<'_>, place: HoldingPlace) -> Result<bool, Errno> {
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

    /// Drops sockets that may answer at an address and that all programs have closed, so that they do not
    /// answer.
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

    /// Records that a thread makes a call.
    pub(super) fn is_back(&self, thread: pid_t) {
        self.datagrams.is_back(thread);
    }

    /// Records that a thread's call was answered.
    pub(super) fn answered(&self, thread: pid_t) {
        self.datagrams.answered(thread);
    }
}
