//! Creation of sockets, and the other calls that are mediated only if the mediator creates all sockets.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long};

use crate::mediate::act::MediatedCall;
use crate::mediate::broker_sockets::{BrokerSockets, FoundCreator};
use crate::mediate::call::address::{Address, integer};
use crate::mediate::call::listener::NotificationAnswer;
use crate::mediate::call::socket::{self, SocketKind};
use crate::mediate::call::waiting::Stop;
use crate::mediate::kernel::open_descriptors::HoldingPlace;
use crate::mediate::kernel::status::Status;

/// Maximum number of attempts: the first at once, then after delays of 1 ms, 2 ms …, a second in all.
const PATIENCE: u32 = 11;

impl MediatedCall<'_, '_> {
    pub(in crate::mediate) fn act_on_made(
        &mut self,
        made: &BrokerSockets,
        call: c_long,
    ) -> Result<Option<NotificationAnswer>, Stop> {
        match call {
            libc::SYS_socket => return self.make(made).map(Some),
            libc::SYS_clone => return self.share_table(made).map(Some),
            call if !is_on_a_socket(call) => return Ok(None),
            _ => {}
        }
        let place = self.caller.place(integer(self.arguments[0]));
        let found = made.find(place);
        self.caller.still_waits()?;
        match found? {
            FoundCreator::Held(socket) => {
                self.held = Some(socket);
                Ok(None)
            }
            FoundCreator::HandedIn(kind) if kind.takes_addresses() || !self.is_plain_send(call) => {
                Err(Errno::EACCES.into())
            }
            FoundCreator::HandedIn(_) | FoundCreator::Connected => {
                self.act_on_connection(made, call, place).map(Some)
            }
        }
    }

    /// Creates a socket and gives it to the caller. Accepts all arguments that the seccomp programs allow.
    fn make(&mut self, made: &BrokerSockets) -> Result<NotificationAnswer, Stop> {
        let [family, style, protocol, ..] = self.arguments.map(integer);
        let socket = socket::make(family, style, protocol).map_err(no_fault_of_the_caller)?;
        let kind = SocketKind::of(&socket)?;
        self.shared.rules.guard(&socket, kind)?;
        let inode = self.patiently(Errno::ENOBUFS, |_| match made.enter(&socket, kind) {
            Err(Errno::EAGAIN) => Ok(None),
            entered => Ok(Some(entered?)),
        })?;
        match self.give(&socket, style & libc::SOCK_CLOEXEC != 0) {
            Ok(number) => {
                made.registry.given(inode, self.caller.place(number));
                Ok(NotificationAnswer::Given)
            }
            Err(errno) => {
                made.registry.forget(inode);
                Err(errno.into())
            }
        }
    }

    /// Creates a socket that can receive only from sockets inside the sandbox.
    pub(in crate::mediate) fn make_guarded(&self) -> Result<NotificationAnswer, Errno> {
        let [family, style, protocol, ..] = self.arguments.map(integer);
        let descriptor = socket::make(family, style, protocol).map_err(no_fault_of_the_caller)?;
        self.shared.rules.guard(&descriptor, SocketKind::of(&descriptor)?)?;
        Ok(NotificationAnswer::Descriptor { descriptor, close_on_exec: style & libc::SOCK_CLOEXEC != 0 })
    }

    fn give(&self, socket: &OwnedFd, close_on_exec: bool) -> Result<c_int, Errno> {
        self.shared.listener.add(self.caller.id(), socket, close_on_exec)
    }

    fn act_on_connection(
        &mut self,
        made: &BrokerSockets,
        call: c_long,
        place: HoldingPlace,
    ) -> Result<NotificationAnswer, Stop> {
        match call {
            libc::SYS_bind | libc::SYS_accept | libc::SYS_accept4 => return Err(Errno::EINVAL.into()),
            libc::SYS_connect => {
                let [_, start, length, ..] = self.arguments;
                let address = Address::read(self.caller.memory(), start, length)?;
                let has_family = address.bytes().len() >= size_of::<libc::sa_family_t>();
                return Err(if has_family { Errno::EISCONN } else { Errno::EINVAL }.into());
            }
            _ if !self.is_plain_send(call) => return Err(Errno::EISCONN.into()),
            _ => {}
        }
        self.patiently(Errno::EPERM, |call| {
            if made.passes(&call.caller, place)? {
                return Ok(Some(NotificationAnswer::GoesOn));
            }
            // A counted datagram socket may be one that only this process has.
            made.registry.let_go();
            Ok(None)
        })
    }

    fn is_plain_send(&self, call: c_long) -> bool {
        let flags = match call {
            libc::SYS_sendmsg => self.arguments[2],
            libc::SYS_sendto | libc::SYS_sendmmsg => self.arguments[3],
            _ => return false,
        };
        integer(flags) & libc::MSG_FASTOPEN == 0
    }

    /// Calls `attempt` with growing delays until it returns a value. Fails with `otherwise` after the last one.
    fn patiently<T>(
        &mut self,
        otherwise: Errno,
        mut attempt: impl FnMut(&Self) -> Result<Option<T>, Stop>,
    ) -> Result<T, Stop> {
        for doubled in 0..PATIENCE {
            if let Some(result) = attempt(self)? {
                return Ok(result);
            }
            self.caller.still_waits()?;
            if let Some(doubled) = doubled.checked_sub(1) {
                self.turn.step_aside();
                thread::sleep(Duration::from_millis(1 << doubled));
            }
        }
        Err(otherwise.into())
    }

    /// Mediates `clone(2)` with `CLONE_FILES` and without `CLONE_THREAD`. The flags are in a register, so no other
    /// thread can change them after the check.
    fn share_table(&self, made: &BrokerSockets) -> Result<NotificationAnswer, Stop> {
        let status = Status::of(self.caller.thread())?;
        self.caller.still_waits()?;
        made.tables.share(&status, integer(self.arguments[0]))?;
        Ok(NotificationAnswer::GoesOn)
    }
}

fn is_on_a_socket(call: c_long) -> bool {
    matches!(
        call,
        libc::SYS_connect
            | libc::SYS_bind
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
    )
}

/// Maps the error that this process's table of descriptors is full to `ENOBUFS`, since the caller's table is not full.
fn no_fault_of_the_caller(errno: Errno) -> Errno {
    if matches!(errno, Errno::EMFILE | Errno::ENFILE) { Errno::ENOBUFS } else { errno }
}
