use std::io;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use protocol::rpc::{ErrorWord, Line, Lines, failure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Maximum number of lines that wait for the front end. A front end that leaves more unread is disconnected.
const WAITING: usize = 64;

const PIECE: usize = 16 << 10;

/// A connected front end. Dropping the value closes the connection.
pub(super) struct SocketPeer {
    lines: mpsc::Receiver<Line>,
    sender: mpsc::Sender<String>,
    _tasks: JoinSet<()>,
}

impl SocketPeer {
    /// Starts to read from and write to a connection.
    pub(super) fn new(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        let (received, lines) = mpsc::channel(4);
        let (sender, waiting) = mpsc::channel(WAITING);
        let mut tasks = JoinSet::new();
        tasks.spawn(reading(read, received));
        tasks.spawn(writing(write, waiting));
        Self { lines, sender, _tasks: tasks }
    }

    /// Returns the next line from the front end; `None` after it disconnected. Cancel safe.
    pub(super) async fn line(&mut self) -> Option<Line> {
        let sender = self.sender.clone();
        tokio::select! {
            line = self.lines.recv() => line,
            () = sender.closed() => None,
        }
    }

    /// Queues a line for the front end. Returns false if the queue is full or the front end disconnected.
    pub(super) fn send(&self, line: String) -> bool {
        self.sender.try_send(line).is_ok()
    }
}

/// True if the peer has this process's user id.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw())
}

pub(super) fn turn_away(stream: &UnixStream) {
    let error = ErrorWord::Occupied.because("another front end is connected");
    if let Ok(mut line) = failure(None, &error) {
        line.push('\n');
        // Nothing was written to the connection before, so this line fits into its buffer.
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
