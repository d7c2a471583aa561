//! Writes to the terminal on a separate thread, so that a blocked terminal does not delay signals.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use tokio::sync::{mpsc, oneshot};

use crate::process::tty::write_all;

/// Maximum number of pieces of output that wait for the terminal. If more arrive, the command has to wait.
const WAITING: usize = 16;

#[derive(Debug)]
pub(super) struct Screen {
    pieces: mpsc::Sender<Vec<u8>>,
    finished: oneshot::Receiver<()>,
}

impl Screen {
    pub(super) fn start(terminal: OwnedFd) -> io::Result<Self> {
        let (pieces, mut inbox) = mpsc::channel::<Vec<u8>>(WAITING);
        let (done, finished) = oneshot::channel();
        let mut terminal = File::from(terminal);
        thread::Builder::new().name("screen".to_owned()).spawn(move || {
            while let Some(piece) = inbox.blocking_recv() {
                // Output to a closed terminal is dropped. The command continues until SIGHUP.
                let _ = write_all(&mut terminal, &piece);
            }
            let _ = done.send(());
        })?;
        Ok(Self { pieces, finished })
    }

    pub(super) async fn show(&self, piece: Vec<u8>) {
        // This fails only after the thread has ended.
        let _ = self.pieces.send(piece).await;
    }

    pub(super) async fn finish(self) {
        drop(self.pieces);
        let _ = self.finished.await;
    }
}
