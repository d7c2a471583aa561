//! The lines of standard input, read by a separate thread, because a blocked read cannot be cancelled.

use std::io::{self, Read};
use std::thread;

use protocol::rpc::{Line, Lines};
use tokio::sync::mpsc;

/// Maximum number of lines that are read ahead.
const AHEAD: usize = 4;

const PIECE: usize = 64 << 10;

/// Starts the thread that reads lines. The channel closes at the end of standard input.
pub(super) fn start() -> io::Result<mpsc::Receiver<Line>> {
    let (sender, lines) = mpsc::channel(AHEAD);
    thread::Builder::new().name("read".to_owned()).spawn(move || read(io::stdin(), &sender))?;
    Ok(lines)
}

fn read(mut input: impl Read, sender: &mpsc::Sender<Line>) {
    let mut lines = Lines::default();
    let mut piece = vec![0; PIECE];
    loop {
        let complete = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => lines.push(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for line in complete {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    }
    if let Some(cut) = lines.end() {
        let _ = sender.blocking_send(cut);
    }
}
