//! Listeners from inside, by where they were last asked for connections.
//!
//! Whether an address leads to one is in the kernel's tables, which are asked before a connection is begun, and after. A duplicate of
//! the listener that is held in between says the same in a quarter of that time: nobody else listens where it does
//! (`inet_csk_get_port` of the kernel), and while it is open nobody else can, unless its programs have it listen no more. That
//! shows afterwards, as it does in the tables.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc::place::plain;

use super::address::{Address, Meaning};
use super::caller::{Caller, duplicate};
use super::socket;

/// How many are known: a program seldom has more that it connects to.
const MOST: usize = 8;

/// The last ones.
#[derive(Debug, Default)]
pub(super) struct Listening(Mutex<VecDeque<KnownListener>>);

/// A listener, and where it was.
#[derive(Clone, Debug)]
struct KnownListener {
    cookie: u64,
    at: SocketAddr,
    thread: Arc<OwnedFd>,
    number: RawFd,
}

/// A listener that stays open.
#[derive(Debug)]
pub(super) struct HeldListener {
    listener: OwnedFd,
    at: SocketAddr,
}

impl Listening {
    /// Remembers a listener by the descriptor through which it is asked for connections, until it is not there any more.
    pub(super) fn learn(&self, caller: &Caller<'_>, number: RawFd, listener: &OwnedFd) {
        let Ok(cookie) = socket::cookie(listener) else { return };
        if self.lock().iter().any(|known| known.cookie == cookie) {
            return;
        }
        let (Some(at), Some(thread)) = (place(listener), caller.opened()) else { return };
        let mut all = self.lock();
        all.truncate(MOST - 1);
        all.push_front(KnownListener { cookie, at, thread, number });
    }

    /// The listener to which a connection to an address leads, if one is known that `is_alone` with its port.
    pub(super) fn hold(&self, to: SocketAddr, is_alone: impl Fn(u64) -> bool) -> Option<HeldListener> {
        let leads_to =
            |known: &&KnownListener| known.at.port() == to.port() && receives(known.at.ip(), to.ip());
        let known = self.lock().iter().find(leads_to).cloned()?;
        let held = known.duplicate().filter(HeldListener::listens);
        if held.is_none() {
            self.lock().retain(|other| other.cookie != known.cookie);
        }
        held.filter(|_| is_alone(known.cookie))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KnownListener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownListener {
    /// The descriptor can be another socket by now.
    fn duplicate(&self) -> Option<HeldListener> {
        let listener = duplicate(&self.thread, self.number).ok()?;
        let is_it = socket::cookie(&listener) == Ok(self.cookie);
        is_it.then_some(HeldListener { listener, at: self.at })
    }
}

impl HeldListener {
    /// Whether it takes connections at its address.
    pub(super) fn listens(&self) -> bool {
        socket::listens(&self.listener) && place(&self.listener) == Some(self.at)
    }
}

/// The address of an internet socket.
fn place(socket: &OwnedFd) -> Option<SocketAddr> {
    match socket::own_name(socket).as_ref().map(Address::meaning) {
        Ok(Meaning::Internet(at)) => Some(SocketAddr::new(plain(at.ip()), at.port())),
        _ => None,
    }
}

/// Whether what goes to an address surely arrives at one that listens at another.
fn receives(own: IpAddr, to: IpAddr) -> bool {
    let to = plain(to);
    own == to || own.is_unspecified() && own.is_ipv4() == to.is_ipv4()
}
