//! Output of a command, passed on by a separate thread, so that a blocked destination does not delay signals.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::thread;

use ipc::confinement::Identity;
use tokio::sync::oneshot;

use super::pipe::pipe_of;
use super::{PIECE, wait_for};
use crate::process::tty::write_all;

/// Number of bytes at the end of the output that are kept, so that they can be searched for denials.
const REMEMBERED: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Outlet {
    passed: oneshot::Receiver<SandboxPassed>,
}

/// Reaction if the output has no reader any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadOutput {
    /// The command gets SIGPIPE.
    Ends,
    /// The command continues, and the output is dropped.
    IsLost,
}

#[derive(Debug, Default)]
pub(super) struct SandboxPassed {
    pub(super) tail: Tail,
    pub(super) failure: Option<io::Error>,
}

#[derive(Debug, Default)]
pub(in crate::front::sandbox) struct Tail(VecDeque<u8>);

impl Outlet {
    /// Returns the descriptor to which the command writes instead of `destination`, and the thread that passes this on.
    pub(super) fn open(
        destination: OwnedFd,
        unread: UnreadOutput,
        owner: Option<Identity>,
    ) -> io::Result<(OwnedFd, Self)> {
        let (ours, theirs) = pipe_of(owner)?;
        let (done, passed) = oneshot::channel();
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            // The receiver may have been dropped.
            let _ = done.send(empty(File::from(ours), File::from(destination), unread));
        })?;
        Ok((theirs, Self { passed }))
    }

    /// Waits until all output is passed on. The command and its children must have ended: until then the pipe is open.
    pub(super) async fn finish(self) -> SandboxPassed {
        self.passed.await.unwrap_or_default()
    }
}

/// Passes the pipe's output to its destination. `unread` decides what happens if the destination has no reader.
fn empty(mut pipe: File, mut destination: File, unread: UnreadOutput) -> SandboxPassed {
    let mut passed = SandboxPassed::default();
    let mut buffer = vec![0; PIECE];
    let ended = pump(&mut pipe, &mut destination, &mut buffer, &mut passed.tail);
    passed.failure = ended.err().filter(|error| error.kind() != ErrorKind::BrokenPipe);
    if unread == UnreadOutput::IsLost {
        while let Ok(read @ 1..) = pipe.read(&mut buffer) {
            passed.tail.remember(&buffer[..read]);
        }
    }
    passed
}

fn pump(pipe: &mut File, destination: &mut File, buffer: &mut [u8], tail: &mut Tail) -> io::Result<()> {
    loop {
        if !wait_for(pipe, destination)? {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let read = match pipe.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        tail.remember(&buffer[..read]);
        write_all(destination, &buffer[..read]).map_err(|(_, error)| error)?;
    }
}

impl Tail {
    pub(in crate::front::sandbox) fn remember(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(REMEMBERED)..];
        self.0.extend(bytes);
        let surplus = self.0.len().saturating_sub(REMEMBERED);
        self.0.drain(..surplus);
    }

    pub(in crate::front::sandbox) fn into_bytes(self) -> Vec<u8> {
        self.0.into()
    }
}
