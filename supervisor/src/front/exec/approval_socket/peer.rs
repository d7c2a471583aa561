//! A front end that is connected: lines from it, lines to it.

use std::io;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use protocol::rpc::{ErrorWord, Line, Lines, failure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How many lines wait for a front end before it is too slow to be one.
const WAITING: usize = 64;

/// How many bytes are read at once.
const PIECE: usize = 16 << 10;

/// A front end that is connected; with this value its connection goes.
pub(super) struct SocketPeer {
    lines: mpsc::Receiver<Line>,
    sender: mpsc::Sender<String>,
    _tasks: JoinSet<()>,
}

impl SocketPeer {
    /// Takes a connection on.
    pub(super) fn new(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        let (received, lines) = mpsc::channel(4);
        let (sender, waiting) = mpsc::channel(WAITING);
        let mut tasks = JoinSet::new();
        tasks.spawn(reading(read, received));
        tasks.spawn(writing(write, waiting));
        Self { lines, sender, _tasks: tasks }
    }

    /// The next line; `None` when it is gone. Cancel safe.
    pub(super) async fn line(&mut self) -> Option<Line> {
        let sender = self.sender.clone();
        tokio::select! {
            line = self.lines.recv() => line,
            () = sender.closed() => None,
        }
    }

    /// Sends a line; whether it could be.
    pub(super) fn send(&self, line: String) -> bool {
        self.sender.try_send(line).is_ok()
    }
}

/// Whether the other end is a process of our own user.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw())
}

/// Tells a front end that there is one already.
pub(super) fn turn_away(stream: &UnixStream) {
    let error = ErrorWord::Occupied.because("another front end is connected");
    if let Ok(mut line) = failure(None, &error) {
        line.push('\n');
        // Nothing was written yet: there is room.
        let _ = stream.try_write(line.as_bytes());
    }
}

async fn reading(mut read: OwnedReadHalf, received: mpsc::Sender<Line>) {
    let mut lines = Lines::default();
    let mut piece = vec![0; PIECE];
    while let Ok(count) = read.read(&mut piece).await {
        let (complete, over) = if count == 0 {
            (lines.end().into_iter().collect(), true)
        } else {
            (lines.push(&piece[..count]), false)
        };
        for line in complete {
            if received.send(line).await.is_err() {
                return;
            }
        }
        if over {
            return;
        }
    }
}

async fn writing(mut write: OwnedWriteHalf, mut waiting: mpsc::Receiver<String>) {
    let mut one = async |mut line: String| -> io::Result<()> {
        line.push('\n');
        write.write_all(line.as_bytes()).await
    };
    while let Some(line) = waiting.recv().await {
        if one(line).await.is_err() {
            return;
        }
    }
}
