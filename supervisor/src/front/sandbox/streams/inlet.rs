use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc;
use std::thread;

use boundary::system::unread;
use ipc::confinement::Identity;
use tokio::sync::oneshot;

use super::pipe::{is_anonymous_pipe, pipe_of};
use super::{PIECE, wait_for};
use crate::process::messages::say;
use crate::process::tty::write_all;

/// A pipe that a thread fills from the person's standard input.
#[derive(Debug)]
pub(super) struct Inlet {
    /// Sender that is dropped to tell the thread that the command has ended.
    running: mpsc::Sender<()>,
    /// Closed by the thread after the position of the source is set back.
    given_back: oneshot::Receiver<()>,
    is_file: bool,
}

impl Inlet {
    /// Returns the descriptor that the command gets for `source`, and the filled pipe; `None` if nothing fills a pipe.
    pub(super) fn open(source: OwnedFd, owner: Option<Identity>) -> io::Result<(OwnedFd, Option<Self>)> {
        if is_anonymous_pipe(&source)? {
            return Ok((source, None));
        }
        let source = File::from(source);
        let kind = source.metadata()?.file_type();
        if kind.is_dir() {
            let why =
                "standard input is a directory: the command could reach everything below that directory";
            return Err(io::Error::new(ErrorKind::IsADirectory, why));
        }
        let (theirs, ours) = pipe_of(owner)?;
        if source.is_terminal() {
            // A command without a terminal of its own gets no keys of the person's terminal, so the pipe ends at once.
            return Ok((theirs, None));
        }
        let (running, over) = mpsc::channel();
        let (done, given_back) = oneshot::channel::<()>();
        thread::Builder::new().name("input".to_owned()).spawn(move || {
            fill(source, File::from(ours), &over);
            drop(done);
        })?;
        Ok((theirs, Some(Self { running, given_back, is_file: kind.is_file() })))
    }

    /// Waits until the thread has set a file's position to the first byte that the command did not read.
    pub(super) async fn finish(self) {
        drop(self.running);
        if self.is_file {
            // The thread closes this channel at its end, without a value.
            let _ = self.given_back.await;
        }
    }
}

/// Fills the pipe until the source ends or nobody reads the pipe, then sets the source back to the first unread byte.
fn fill(mut source: File, mut pipe: File, over: &mpsc::Receiver<()>) {
    let mut passed = 0;
    let left = match pump(&mut source, &mut pipe, &mut passed) {
        Ok(()) => {
            // After the command's end, this reading end shows how many bytes are unread. The writing end must be closed
            // now, or the command would wait for more.
            let rest = File::open(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
            drop(pipe);
            // Returns when the sender is dropped, after the command's end.
            let _ = over.recv();
            rest.map_or(0, |rest| unread(&rest))
        }
        Err((left, error)) => {
            if error.kind() != ErrorKind::BrokenPipe {
                say(&format!("cannot read standard input: {error}"));
            }
            left + unread(&pipe)
        }
    };
    // The command could write into the pipe itself, so the position never goes back beyond our own reads.
    let left = i64::try_from(left.min(passed)).unwrap_or(0);
    // Only files have a position.
    let _ = source.seek(SeekFrom::Current(-left));
}

/// Passes a source to a pipe. An error comes with the number of bytes that were read but not passed on.
fn pump(source: &mut File, pipe: &mut File, passed: &mut usize) -> Result<(), (usize, io::Error)> {
    let mut buffer = vec![0; PIECE];
    loop {
        if !wait_for(source, pipe).map_err(|error| (0, error))? {
            return Err((0, ErrorKind::BrokenPipe.into()));
        }
        let read = match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            // Another reader of the same source took the bytes.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => continue,
            Err(error) => return Err((0, error)),
        };
        *passed += read;
        write_all(pipe, &buffer[..read])?;
    }
}
