//! Wait for a running command until all its processes have ended. Meanwhile its output is read.

use std::io::{self, ErrorKind};
use std::time::Duration;

use ipc::message::Chunk;
use sandbox_exec::command::{Ending, Running};
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};

use super::head_tail::HeadTail;
use super::save::Saving;
use crate::open_call::{OpenCall, Slot};

/// Maximum number of bytes that are read or sent at once: the capacity of a pipe (pipe(7)).
const PIECE: usize = 64 << 10;
/// Initial size of the read buffer in bytes. Most output is short, and each page of the buffer costs a page fault.
const FIRST: usize = 4 << 10;
/// Time during which output is collected before it is sent.
const GATHER: Duration = Duration::from_millis(10);
/// Maximum number of bytes that are sent while a command runs. The result has the end of the output in any case.
const STREAMED: usize = 1 << 20;
const NO_MORE: &[u8] =
    b"\n[more output follows, but is not streamed; if the command ends by itself, its result has the end of the output]\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself.
    Itself(Ending),
    /// The command exceeded its time limit and was killed.
    TimedOut,
    /// The call was cancelled and the command was killed.
    Cancelled,
    /// The process that supervises the command was killed; the exit status is unknown.
    Lost,
}

/// Parts of a command's output that are kept for its result.
#[derive(Debug)]
pub struct KeptOutput {
    pub ends: HeadTail,
    pub saving: Option<Saving>,
}

impl KeptOutput {
    fn push(&mut self, bytes: &[u8]) {
        self.ends.push(bytes);
        if let Some(saving) = &mut self.saving {
            saving.push(bytes);
        }
    }
}

/// Reads a command's output until all its processes have ended; sends it meanwhile if `stream`. Kills the command at
/// the deadline or on cancellation.
pub async fn follow(
    running: Running,
    deadline: Instant,
    kept: &mut KeptOutput,
    stream: bool,
    open: &mut OpenCall,
) -> io::Result<End> {
    let ended = pump(&running, deadline, Output::new(kept, stream), open).await?;
    running.reap()?;
    Ok(ended)
}

async fn pump(
    running: &Running,
    deadline: Instant,
    mut output: Output<'_>,
    open: &mut OpenCall,
) -> io::Result<End> {
    let printed = Receiver::from_owned_fd_unchecked(running.output.try_clone()?)?;
    let status = Receiver::from_owned_fd_unchecked(running.status.try_clone()?)?;
    let listener = open.clone();
    let mut early = None;
    let ending = loop {
        tokio::select! {
            ready = status.readable() => {
                ready?;
                let mut bytes = [0; 4];
                match status.try_read(&mut bytes) {
                    Ok(4) => break Some(bytes),
                    Ok(_) => break None,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            ready = printed.readable(), if output.wants_more() => {
                ready?;
                output.take(|block| printed.try_read(block));
            }
            () = sleep_until(output.due), if output.is_waiting() => output.is_due = true,
            slot = listener.slot(), if output.is_due => output.send(slot),
            () = sleep_until(deadline), if early.is_none() => {
                early = Some(End::TimedOut);
                running.end()?;
            }
            () = open.cancelled(), if early.is_none() => {
                early = Some(End::Cancelled);
                running.end()?;
            }
        }
    };
    // All writers have ended: the pipe contains the rest of the output.
    while output.take(|block| Ok(nix::unistd::read(&running.output, block)?)) {}
    while early != Some(End::Cancelled) && !output.pending.is_empty() {
        output.send(listener.slot().await);
    }
    let itself = ending.map_or(End::Lost, |status| End::Itself(Ending::from_bytes(status)));
    Ok(early.unwrap_or(itself))
}

struct Output<'a> {
    kept: &'a mut KeptOutput,
    pending: Vec<u8>,
    block: Vec<u8>,
    /// Number of bytes that may still be sent while the command runs.
    room: usize,
    /// Time at which the collected bytes are sent.
    due: Instant,
    is_due: bool,
    ended: bool,
}

impl<'a> Output<'a> {
    fn new(kept: &'a mut KeptOutput, stream: bool) -> Self {
        let room = if stream { STREAMED } else { 0 };
        Self {
            kept,
            pending: Vec::new(),
            block: vec![0; FIRST],
            room,
            due: Instant::now(),
            is_due: false,
            ended: false,
        }
    }

    /// True if more output is to be read. While this is false, a command that fills the pipe blocks.
    fn wants_more(&self) -> bool {
        !self.ended && self.pending.len() < PIECE
    }

    fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && !self.is_due
    }

    /// Reads some output; true if there was any. An error counts as the end of the output.
    fn take(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> bool {
        match read(&mut self.block) {
            Ok(read) if read > 0 => {
                self.kept.push(&self.block[..read]);
                self.queue(read);
                if read == self.block.len() {
                    self.block.resize((2 * read).min(PIECE), 0);
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => {
                self.ended = true;
                false
            }
        }
    }

    fn queue(&mut self, read: usize) {
        if self.room == 0 || read == 0 {
            return;
        }
        if self.pending.is_empty() {
            self.due = Instant::now() + GATHER;
        }
        let streamed = read.min(self.room);
        self.pending.extend_from_slice(&self.block[..streamed]);
        self.room -= streamed;
        if self.room == 0 {
            self.pending.extend_from_slice(NO_MORE);
        }
        self.is_due |= self.pending.len() >= PIECE;
    }

    /// Sends the next piece of the collected output. Without a slot, drops all of it; the command continues.
    fn send(&mut self, slot: Option<Slot<'_>>) {
        let piece: Vec<_> = self.pending.drain(..self.pending.len().min(PIECE)).collect();
        self.is_due = !self.pending.is_empty();
        if let Some(slot) = slot {
            slot.send(Chunk::Text(piece));
        } else {
            self.room = 0;
            self.pending.clear();
        }
    }
}
