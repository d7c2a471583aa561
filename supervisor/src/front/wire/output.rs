//! The lines of standard output, written by a separate thread, so that a blocked reader delays nothing else.

use std::io::{self, Write};
use std::thread;

use tokio::sync::{mpsc, oneshot};

/// Handle of the thread that writes lines. The thread has one line at a time; further lines wait in the server's queue.
#[derive(Debug)]
pub(in crate::front) struct Writer {
    /// Channel for lines, which is closed after a write has failed.
    pub(in crate::front) lines: mpsc::Sender<String>,
    /// Resolves when all lines are written, or when a write has failed.
    pub(in crate::front) finished: oneshot::Receiver<()>,
}

/// Starts the thread that writes lines to standard output.
pub(super) fn start() -> io::Result<Writer> {
    let (lines, received) = mpsc::channel(1);
    let (done, finished) = oneshot::channel();
    thread::Builder::new().name("write".to_owned()).spawn(move || {
        // An error closes the channel, which tells the server.
        let _ = write(received);
        let _ = done.send(());
    })?;
    Ok(Writer { lines, finished })
}

fn write(mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    while let Some(mut line) = lines.blocking_recv() {
        line.push('\n');
        let mut stdout = io::stdout().lock();
        stdout.write_all(line.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}
