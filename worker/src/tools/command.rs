//! Running command: followed from its start until it and all its descendants are gone.

use std::io::{self, ErrorKind};
use std::time::Duration;

use ipc::message::Chunk;
use sandbox_exec::command::{Ending, Running};
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};

use super::head_tail::HeadTail;
use super::save::Saving;
use crate::open_call::{OpenCall, Slot};

/// Maximum size in bytes of one piece of output: the capacity of a pipe (pipe(7)).
const PIECE: usize = 64 << 10;
/// Size in bytes of the first read: most commands print little, and each page of buffer costs a fault.
const FIRST: usize = 4 << 10;
/// Time to gather output before a piece is sent.
const GATHER: Duration = Duration::from_millis(10);
/// Maximum number of bytes that are streamed of one command: 1 MiB. The end comes with the result in any
/// case.
const STREAMED: usize = 1 << 20;
const NO_MORE: &[u8] =
    b"\n[more output follows; it is not streamed; the result of a command that ends by itself has its end]\n";

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself.
    Itself(Ending),
    /// It ran too long and was ended.
    TimedOut,
    /// Its call was cancelled and it was ended.
    Cancelled,
    /// Its reaper was killed: the command's end is unknown.
    Lost,
}

/// Kept part of a command's output.
#[derive(Debug)]
pub struct KeptOutput {
    /// Beginning and end.
    pub ends: HeadTail,
    /// File for the whole output, if it is to be saved.
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

/// Follows a command: keeps its output, streams it if `stream`, and ends it at the deadline or when the call
/// is cancelled. Returns once none of its processes is alive.
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
    // No writer is alive: the content of the pipe is the rest.
    while output.take(|block| Ok(nix::unistd::read(&running.output, block)?)) {}
    while early != Some(End::Cancelled) && !output.pending.is_empty() {
        output.send(listener.slot().await);
    }
    let itself = ending.map_or(End::Lost, |status| End::Itself(Ending::from_bytes(status)));
    Ok(early.unwrap_or(itself))
}

/// Output that is not sent yet, and the kept part.
struct Output<'a> {
    kept: &'a mut KeptOutput,
    pending: Vec<u8>,
    block: Vec<u8>,
    /// Number of bytes that may still be streamed.
    room: usize,
    /// Time to send the pending bytes.
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

    /// True if more output should be read: a command waits while nobody takes its output.
    fn wants_more(&self) -> bool {
        !self.ended && self.pending.len() < PIECE
    }

    fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && !self.is_due
    }

    /// Takes the next bytes, if any are available now. An error ends the output; the status still comes.
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

    /// Sends the first pending bytes; a missing reader does not stop the command here.
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
