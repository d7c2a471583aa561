//! `bind` and `accept`, which are mediated only in the host's network namespace.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use ipc::place::Place;
use ipc::refusal::{Act, Target};
use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::act::MediatedCall;
use super::call::address::{Address, Meaning, integer};
use super::call::listener::NotificationAnswer;
use super::call::socket::{self, SocketKind};
use super::call::waiting::Stop;
use super::refusals::Denied;
use super::unix::socket_file::SocketFile;

impl MediatedCall<'_, '_> {
    /// Mediates `bind(2)`. Leaves a unix socket that is an end of a pair or a connection without a name.
    pub(super) fn bind(&mut self) -> Result<NotificationAnswer, Stop> {
        let [number, start, length, ..] = self.arguments;
        let (socket, kind) = self.socket(number)?;
        let address = Address::read(self.caller.memory(), start, length)?;
        // A command that only reads has no other unix sockets than connected ones, and its own domain is not
        // asked here. The peer may be gone; its identity stays.
        if kind.family == libc::AF_UNIX && socket::has_met_a_peer(&socket) {
            return Err(Errno::EINVAL.into());
        }
        if let (libc::AF_UNIX, Meaning::Path(path)) = (kind.family, address.meaning()) {
            let file = SocketFile::of(&self.caller, path, &address)?;
            self.caller.still_waits()?;
            // A file system may take its time.
            self.turn.step_aside();
            file.bind(self.shared.domain.as_deref().ok_or(Errno::EACCES)?, &socket)?;
            return Ok(NotificationAnswer::Value(0));
        }
        self.caller.still_waits()?;
        self.bind_unless_taken(&socket, kind, &address).map_err(|errno| {
            self.refused(Act::Bind, self.shared.rules.hindrance_of_bind(kind, &address, errno))
        })?;
        Ok(NotificationAnswer::Value(0))
    }

    /// Binds a socket. An address counts as free if the programs have closed all sockets that have it.
    fn bind_unless_taken(&self, socket: &OwnedFd, kind: SocketKind, address: &Address) -> Result<(), Errno> {
        let bind = || self.shared.rules.bind(&self.caller, socket, kind, address);
        match (bind(), &self.shared.made) {
            (Err(Errno::EADDRINUSE), Some(made)) => {
                made.registry.let_go();
                bind()
            }
            (bound, _) => bound,
        }
    }

    /// Mediates `accept(2)`. Closes connections from outside the sandbox, and then waits for the next.
    pub(super) fn accept(&mut self, flags: c_int) -> Result<NotificationAnswer, Stop> {
        let [number, name, length, ..] = self.arguments;
        let (socket, kind) = self.socket(number)?;
        // Checked before accept, since a later failure would lose the connection.
        let room = self.room(name, length)?;
        self.caller.still_waits()?;
        let (shared, thread) = (self.shared, self.caller.thread());
        let accept = || loop {
            let (accepted, peer) = socket::accept(&socket, flags & libc::SOCK_NONBLOCK)?;
            if shared.rules.knows(&accepted, kind, &peer) {
                return Ok((accepted, peer));
            }
            if let Meaning::Internet(peer) = peer.meaning() {
                // The port differs for each connection of the same peer.
                let target = Target::Internet(SocketAddr::new(peer.ip(), 0), Place::of(peer));
                let errno = Errno::ECONNABORTED;
                shared.refusals.tell(thread, Act::Accept, Denied::Rules { target, errno });
            }
        };
        let unknown = flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
        let (descriptor, peer) = if unknown != 0 {
            return Err(Errno::EINVAL.into());
        } else if socket::is_blocking(&socket)? {
            self.accept_when_there_is_one(&socket, accept)?
        } else {
            accept()?
        };
        if let Some(room) = room {
            self.caller.still_waits()?;
            self.write_name(name, length, &peer, room)?;
        }
        Ok(NotificationAnswer::Descriptor { descriptor, close_on_exec: flags & libc::SOCK_CLOEXEC != 0 })
    }

    fn accept_when_there_is_one(
        &mut self,
        socket: &OwnedFd,
        accept: impl FnMut() -> Result<(OwnedFd, Address), Errno>,
    ) -> Result<(OwnedFd, Address), Stop> {
        self.wait(socket, libc::SO_RCVTIMEO, socket::is_readable(socket), accept)
    }

    fn room(&self, name: u64, length: u64) -> Result<Option<usize>, Errno> {
        if name == 0 {
            return Ok(None);
        }
        let room = c_int::from_ne_bytes(self.caller.memory().read(length)?);
        usize::try_from(room).map(Some).map_err(|_| Errno::EINVAL)
    }

    fn write_name(&self, name: u64, length: u64, peer: &Address, room: usize) -> Result<(), Errno> {
        let bytes = peer.bytes();
        let memory = self.caller.memory();
        if room > 0 && !bytes.is_empty() {
            memory.write(name, &bytes[..room.min(bytes.len())])?;
        }
        memory.write(length, &u32::try_from(bytes.len()).unwrap_or(0).to_ne_bytes())
    }
}

pub(super) fn accept_flags(call: libc::c_long, arguments: &[u64; 6]) -> c_int {
    if call == libc::SYS_accept4 { integer(arguments[3]) } else { 0 }
}

/// True for control data that does not choose the path of a packet, as source routes do (`IP_RETOPTS`, `IPV6_RTHDR`).
pub(in crate::mediate) fn is_harmless(kind: SocketKind, level: c_int, name: c_int) -> bool {
    !kind.is_internet()
        || match level {
            libc::IPPROTO_IP => matches!(name, libc::IP_PKTINFO | libc::IP_TTL | libc::IP_TOS),
            libc::IPPROTO_IPV6 => matches!(
                name,
                libc::IPV6_PKTINFO
                    | libc::IPV6_HOPLIMIT
                    | libc::IPV6_TCLASS
                    | libc::IPV6_FLOWINFO
                    | libc::IPV6_DONTFRAG
            ),
            libc::SOL_UDP => name == libc::UDP_SEGMENT,
            libc::SOL_SOCKET => true,
            _ => false,
        }
}
