//! Writes to the user's terminal on a thread of its own: a terminal that stands still must not keep signals waiting.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use tokio::sync::{mpsc, oneshot};

use crate::process::tty::write_all;

/// How many pieces wait at most; then the command waits.
const WAITING: usize = 16;

/// The writing end.
#[derive(Debug)]
pub(super) struct Screen {
    pieces: mpsc::Sender<Vec<u8>>,
    finished: oneshot::Receiver<()>,
}

impl Screen {
    /// Starts the thread for a duplicate of a terminal's descriptor.
    pub(super) fn start(terminal: OwnedFd) -> io::Result<Self> {
        let (pieces, mut inbox) = mpsc::channel::<Vec<u8>>(WAITING);
        let (done, finished) = oneshot::channel();
        let mut terminal = File::from(terminal);
        thread::Builder::new().name("screen".to_owned()).spawn(move || {
            while let Some(piece) = inbox.blocking_recv() {
                // A terminal that is gone shows nothing; the command goes on until SIGHUP says otherwise.
                let _ = write_all(&mut terminal, &piece);
            }
            let _ = done.send(());
        })?;
        Ok(Self { pieces, finished })
    }

    /// Shows something, once there is room.
    pub(super) async fn show(&self, piece: Vec<u8>) {
        // It fails when the thread is gone, which it is only after this.
        let _ = self.pieces.send(piece).await;
    }

    /// Waits until everything is shown.
    pub(super) async fn finish(self) {
        drop(self.pieces);
        let _ = self.finished.await;
    }
}
