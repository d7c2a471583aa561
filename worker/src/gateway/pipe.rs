//! Pool of empty pipes that move bytes between sockets without copying them (`splice(2)`).

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use nix::unistd::pipe2;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Capacity of a pipe in bytes. The kernel may grant less: all pipes of a user share 64 MiB (pipe(7)).
const CAPACITY: i32 = 256 << 10;
const AT_ONCE: usize = CAPACITY.unsigned_abs() as usize;

/// Maximum number of unused pipes that are kept.
const SPARE: usize = 8;

thread_local! {
    static SPARES: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub(super) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    pub(super) fn take() -> io::Result<Self> {
        if let Some(spare) = SPARES.with_borrow_mut(Vec::pop) {
            return Ok(spare);
        }
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        if let Err(error) = fcntl(&writer, FcntlArg::F_SETPIPE_SZ(CAPACITY)) {
            tracing::debug!(%error, "a pipe stays small");
        }
        Ok(Self { reader, writer })
    }

    pub(super) fn put_back(self) {
        SPARES.with_borrow_mut(|spares| {
            if spares.len() < SPARE {
                spares.push(self);
            }
        });
    }

    /// Moves bytes from a socket to the pipe. Returns the number of bytes; 0 at the end of the socket's stream.
    pub(super) fn fill(&self, from: &TcpStream) -> io::Result<usize> {
        from.try_io(Interest::READABLE, || {
            Ok(splice(from, None, &self.writer, None, AT_ONCE, SpliceFFlags::SPLICE_F_NONBLOCK)?)
        })
    }

    /// Moves up to `most` bytes from the pipe to a socket.
    pub(super) fn drain(&self, to: &TcpStream, most: usize) -> io::Result<usize> {
        to.try_io(Interest::WRITABLE, || {
            Ok(splice(&self.reader, None, to, None, most, SpliceFFlags::SPLICE_F_NONBLOCK)?)
        })
    }
}
