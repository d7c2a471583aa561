//! Mediated calls on sockets. The arguments are copied, the copy is judged, then the call is performed.

use ipc::refusal::Act;
use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::Shared;
use super::call::address::{Address, Meaning, integer};
use super::call::caller::Caller;
use super::call::control::Control;
use super::call::listener::{Notification, NotificationAnswer};
use super::call::message::{Data, HEADER, HEADER_WITH_LENGTH, Message};
use super::call::socket::{self, SocketKind};
use super::call::threads::Turn;
use super::call::waiting::Stop;
use super::listen::accept_flags;
use super::refusals::Denied;
use super::rules::Target;
use super::signals::owner::set_owner;
use super::sysv::use_object;
use std::os::fd::OwnedFd;

/// Maximum number of bytes of a stream that are copied at once.
const PIECE: usize = 128 << 10;
const DATAGRAM: usize = 0xffff;
/// Maximum number of messages of one `sendmmsg` (`UIO_MAXIOV`).
const MAX_MESSAGES: u64 = 1024;

pub(super) struct MediatedCall<'a, 'b> {
    pub(super) shared: &'a Shared,
    pub(super) caller: Caller<'a>,
    pub(super) arguments: [u64; 6],
    pub(super) turn: &'a Turn<'b>,
    pub(super) held: Option<OwnedFd>,
}

impl MediatedCall<'_, '_> {
    pub(in crate::mediate) fn act(&mut self, notification: &Notification) -> NotificationAnswer {
        if let Some(made) = &self.shared.made {
            match self.act_on_made(made, notification.call) {
                Ok(Some(answer)) => return answer,
                Ok(None) => {}
                Err(stop) => return stop.into(),
            }
        }
        let result = match notification.call {
            libc::SYS_connect => self.connect(),
            libc::SYS_sendto => self.send_to(),
            libc::SYS_sendmsg => self.send_message(),
            libc::SYS_sendmmsg => self.send_messages(),
            libc::SYS_bind => return self.bind().unwrap_or_else(NotificationAnswer::from),
            libc::SYS_accept | libc::SYS_accept4 => {
                return self
                    .accept(accept_flags(notification.call, &self.arguments))
                    .unwrap_or_else(NotificationAnswer::from);
            }
            libc::SYS_socket => return self.make_guarded().unwrap_or_else(NotificationAnswer::Failed),
            call @ (libc::SYS_shmget
            | libc::SYS_shmat
            | libc::SYS_shmctl
            | libc::SYS_semget
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_semctl
            | libc::SYS_msgget
            | libc::SYS_msgsnd
            | libc::SYS_msgrcv
            | libc::SYS_msgctl) => return use_object(self, call).unwrap_or_else(NotificationAnswer::Failed),
            call @ (libc::SYS_fcntl | libc::SYS_ioctl) => {
                return set_owner(self, call).unwrap_or_else(NotificationAnswer::Failed);
            }
            call => return self.signal(call).unwrap_or_else(NotificationAnswer::Failed),
        };
        match result {
            Ok(value) => NotificationAnswer::Value(value),
            Err(stop) => stop.into(),
        }
    }

    fn connect(&mut self) -> Result<i64, Stop> {
        let [number, start, length, ..] = self.arguments;
        let (socket, kind) = self.socket(number)?;
        let address = Address::read(self.caller.memory(), start, length)?;
        self.shared.let_go_of_closed(&address);
        let target = self.shared.rules.target(&self.caller, &socket, kind, address);
        let mut target = target.map_err(|hindrance| self.refused(Act::Connect, hindrance))?;
        if let Some(asked) = target.asked.take() {
            // Before the connection can arrive anywhere: so whoever is asked about it finds the report.
            self.refused(Act::Connect, asked);
        }
        self.shared.rules.prepare(&self.caller, &socket, kind, &target)?;
        self.caller.still_waits()?;
        let connect = || socket::connect(&socket, &target.address);
        // Datagram sockets only note the address.
        let waits = kind.style != libc::SOCK_DGRAM && socket::is_blocking(&socket)?;
        let connected = if waits {
            let soon = self.shared.rules.answers_at_once(kind, &target);
            self.wait(&socket, libc::SO_SNDTIMEO, soon, connect)
        } else {
            connect().map_err(Stop::from)
        };
        // A name whose server was gone leaves the socket as it was: it can try again.
        if connected.is_ok() || kind.family != libc::AF_UNIX {
            self.confirm(&socket, kind, &target)?;
        }
        self.shared.settle(&socket, kind);
        connected.map(|()| 0).map_err(|stop| self.unreached(Act::Connect, kind, &target, stop))
    }

    pub(in crate::mediate) fn refused(&self, act: Act, hindrance: Denied) -> Errno {
        self.shared.refusals.tell(self.caller.thread(), act, hindrance)
    }

    fn unreached(&self, act: Act, kind: SocketKind, target: &Target, stop: Stop) -> Stop {
        match stop {
            Stop::Failed(errno) => {
                Stop::Failed(self.refused(act, self.shared.rules.hindrance_of_way(kind, target, errno)))
            }
            Stop::Interrupted => stop,
        }
    }

    /// Disconnects the socket again if another process took the port meanwhile and has received the connection.
    fn confirm(&self, socket: &OwnedFd, kind: SocketKind, target: &Target) -> Result<(), Errno> {
        if self.shared.rules.has_led_inside(kind, target) {
            return Ok(());
        }
        if kind.family == libc::AF_UNIX && kind.style == libc::SOCK_DGRAM {
            // It may still receive.
            socket::release_port(socket);
        } else {
            socket::disconnect(socket);
        }
        Err(Errno::ECONNREFUSED)
    }

    fn send_to(&mut self) -> Result<i64, Stop> {
        let [number, start, length, flags, name, name_length] = self.arguments;
        let (socket, kind) = self.socket(number)?;
        let message =
            Message { name: Some((name, name_length)), data: Data::of(start, length), control: vec![] };
        self.send(&socket, kind, message, integer(flags))
    }

    fn send_message(&mut self) -> Result<i64, Stop> {
        let [number, header, flags, ..] = self.arguments;
        let (socket, kind) = self.socket(number)?;
        let message = Message::read(self.caller.memory(), header)?;
        self.send(&socket, kind, message, integer(flags))
    }

    /// Sends messages until one fails, and returns the number of sent messages. Fails only if no message was sent.
    fn send_messages(&mut self) -> Result<i64, Stop> {
        let [number, start, count, flags, ..] = self.arguments;
        let (socket, kind) = self.socket(number)?;
        let mut sent = 0;
        for index in 0..(count & 0xffff_ffff).min(MAX_MESSAGES) {
            let header = start.wrapping_add(index * HEADER_WITH_LENGTH);
            match self.send_one(&socket, kind, header, integer(flags)) {
                Ok(()) => sent += 1,
                Err(stop) if sent == 0 => return Err(stop),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    fn send_one(
        &mut self,
        socket: &OwnedFd,
        kind: SocketKind,
        header: u64,
        flags: c_int,
    ) -> Result<(), Stop> {
        let message = Message::read(self.caller.memory(), header)?;
        let sent = self.send(socket, kind, message, flags)?;
        let sent = u32::try_from(sent).unwrap_or(u32::MAX);
        self.caller.still_waits()?;
        Ok(self.caller.memory().write(header.wrapping_add(HEADER), &sent.to_ne_bytes())?)
    }

    fn send(
        &mut self,
        socket: &OwnedFd,
        kind: SocketKind,
        message: Message,
        flags: c_int,
    ) -> Result<i64, Stop> {
        let target = self.name(socket, kind, message.name, flags)?;
        let control = Control::carry(&self.caller, message.control, |level, name| {
            self.shared.rules.allows_control(kind, level, name)
        })?;
        let flags = without_zero_copy(socket, flags)?;
        let sent = if kind.is_stream() {
            self.send_stream(socket, target.as_ref(), &control, message.data, flags)
        } else {
            self.send_datagram(socket, target.as_ref(), &control, &message.data, flags)
        };
        if sent == Err(Stop::Failed(Errno::EPIPE)) && kind.is_stream() && flags & libc::MSG_NOSIGNAL == 0 {
            self.caller.signal(libc::SIGPIPE);
        }
        self.shared.settle(socket, kind);
        let sent = match &target {
            Some(target) => sent.map_err(|stop| self.unreached(Act::Send, kind, target, stop)),
            None => sent,
        };
        sent.map(|sent| i64::try_from(sent).unwrap_or(i64::MAX))
    }

    fn name(
        &self,
        socket: &OwnedFd,
        kind: SocketKind,
        name: Option<(u64, u64)>,
        flags: c_int,
    ) -> Result<Option<Target>, Errno> {
        let Some((start, length)) = name else {
            return Ok(None);
        };
        let mut address = Address::read(self.caller.memory(), start, length)?;
        if kind.is_internet() && address.meaning() == Meaning::Unspecified {
            if kind.family == libc::AF_INET6 {
                // For udpv6_sendmsg of the kernel this equals no address. Passed on, it would be an IPv4
                // address to a socket that became one of IPv4 meanwhile (IPV6_ADDRFORM).
                return Ok(None);
            }
            // udp_sendmsg takes this address for one of its own family.
            address = address.in_family(libc::AF_INET);
        }
        if kind.is_internet() && kind.is_stream() && flags & libc::MSG_FASTOPEN == 0 {
            // TCP sends to its peer, whatever the address says.
            return Ok(None);
        }
        self.shared.let_go_of_closed(&address);
        let target = self.shared.rules.target(&self.caller, socket, kind, address);
        let mut target = target.map_err(|hindrance| self.refused(Act::Send, hindrance))?;
        if let Some(asked) = target.asked.take() {
            // The first bytes would go with the connection; callers fall back to connect(2).
            return Err(self.refused(Act::Send, asked));
        }
        if target.inside.is_some() && flags & libc::MSG_FASTOPEN != 0 {
            // The first bytes would arrive before the destination is known; callers fall back to connect(2).
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(Some(target))
    }

    /// Sends a stream's data in pieces, the first one with the control data. Fails only if no byte was sent.
    fn send_stream(
        &mut self,
        socket: &OwnedFd,
        target: Option<&Target>,
        control: &Control,
        mut data: Data,
        flags: c_int,
    ) -> Result<usize, Stop> {
        let mut sent = 0;
        loop {
            let piece = self.caller.memory().gather(&data.first(PIECE));
            let control: &[u8] = if sent == 0 { &control.bytes } else { &[] };
            let result = match piece {
                Ok(piece) => self.send_bytes(socket, target, &piece, control, flags),
                Err(errno) => Err(errno.into()),
            };
            match result {
                Ok(0) => return Ok(sent),
                Ok(more) => {
                    sent += more;
                    data.advance(more);
                }
                Err(stop) if sent == 0 => return Err(stop),
                Err(_) => return Ok(sent),
            }
            if data.left == 0 {
                return Ok(sent);
            }
        }
    }

    /// Sends a datagram as a whole: the socket's send buffer bounds its size.
    fn send_datagram(
        &mut self,
        socket: &OwnedFd,
        target: Option<&Target>,
        control: &Control,
        data: &Data,
        flags: c_int,
    ) -> Result<usize, Stop> {
        let buffer = socket::option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF)?;
        if data.left > usize::try_from(buffer).unwrap_or(0).max(DATAGRAM) {
            return Err(Errno::EMSGSIZE.into());
        }
        let bytes = self.caller.memory().gather(&data.first(data.left))?;
        self.send_bytes(socket, target, &bytes, &control.bytes, flags)
    }

    /// Sends bytes. First tries without waiting; waits only if that is not possible.
    fn send_bytes(
        &mut self,
        socket: &OwnedFd,
        target: Option<&Target>,
        bytes: &[u8],
        control: &[u8],
        flags: c_int,
    ) -> Result<usize, Stop> {
        let address = target.map(|target| &target.address);
        let flags = flags | libc::MSG_NOSIGNAL;
        let waits = flags & libc::MSG_DONTWAIT == 0 && socket::is_blocking(socket)?;
        self.caller.still_waits()?;
        // Fast Open connects: started without waiting, it would go on unseen (EINPROGRESS).
        if !(waits && flags & libc::MSG_FASTOPEN != 0) {
            match socket::send(socket, address, bytes, control, flags | libc::MSG_DONTWAIT) {
                Err(Errno::EAGAIN) if waits => {}
                sent => return Ok(sent?),
            }
        }
        self.wait(socket, libc::SO_SNDTIMEO, false, || socket::send(socket, address, bytes, control, flags))
    }

    pub(in crate::mediate) fn socket(&mut self, number: u64) -> Result<(OwnedFd, SocketKind), Errno> {
        let held = self.held.take();
        let socket = held.map_or_else(|| self.caller.descriptor(integer(number)), Ok)?;
        let kind = SocketKind::of(&socket)?;
        Ok((socket, kind))
    }

    /// Performs a call that may wait, at most for the socket's `timeout`. `soon` is true if no wait is expected.
    pub(super) fn wait<T>(
        &self,
        socket: &OwnedFd,
        timeout: c_int,
        soon: bool,
        act: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Stop> {
        self.turn.shared().have_watched()?;
        if !soon {
            self.turn.step_aside();
        }
        let lead = soon.then(|| self.turn.lead());
        match self.shared.waiting.perform(&self.caller, lead, act) {
            Err(Stop::Interrupted) if socket::has_timeout(socket, timeout) => Err(Errno::EINTR.into()),
            result => result,
        }
    }
}

/// Returns the flags without `MSG_ZEROCOPY`, with which the kernel would read this process's memory after the call.
/// Fails with `ENOBUFS` if the socket has zero-copy enabled; programs must expect that from the kernel as well.
fn without_zero_copy(socket: &OwnedFd, flags: c_int) -> Result<c_int, Errno> {
    let wanted = flags & libc::MSG_ZEROCOPY != 0;
    if wanted && socket::option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY)? != 0 {
        return Err(Errno::ENOBUFS);
    }
    Ok(flags & !libc::MSG_ZEROCOPY)
}
