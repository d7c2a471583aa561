//! Lines to standard output, written by a thread of their own: a reader that stops reading stops nothing else.

use std::io::{self, Write};
use std::thread;

use tokio::sync::{mpsc, oneshot};

/// The thread that writes: one line at a time is its own, what waits is the server's.
#[derive(Debug)]
pub(super) struct Writer {
    /// Where a line goes; closed when nobody reads any more.
    pub(super) lines: mpsc::Sender<String>,
    /// Comes when everything that was sent is written, or cannot be.
    pub(super) finished: oneshot::Receiver<()>,
}

/// Starts the thread.
pub(super) fn start() -> io::Result<Writer> {
    let (lines, received) = mpsc::channel(1);
    let (done, finished) = oneshot::channel();
    thread::Builder::new().name("write".to_owned()).spawn(move || {
        // An error closes the channel: that is how the server learns of it.
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
