//! Frames are drawn in memory and written by a separate thread, one at a time.
//!
//! A blocked terminal stops only this thread. The session continues. Frames do not accumulate, because a frame is drawn
//! only after the last one is written.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::layout::Size;
use tokio::sync::mpsc;

use super::painter::Painter;
use super::tty::Tty;

/// Shortest time between two frames, for 60 frames a second.
const PACE: Duration = Duration::from_micros(16_667);

pub(super) struct Frames {
    painter: Painter,
    to_write: mpsc::UnboundedSender<Vec<u8>>,
    written: mpsc::UnboundedReceiver<io::Result<()>>,
    /// Bytes to write before the next frame.
    before: Vec<u8>,
    in_flight: bool,
    last: Option<Instant>,
}

impl Frames {
    pub(super) fn new(tty: Arc<Tty>) -> io::Result<Self> {
        let painter = Painter::new(tty.size())?;
        let (to_write, frames) = mpsc::unbounded_channel();
        let (done, written) = mpsc::unbounded_channel();
        thread::Builder::new().name("screen".to_owned()).spawn(move || write(&tty, frames, &done))?;
        Ok(Self { painter, to_write, written, before: Vec::new(), in_flight: false, last: None })
    }

    /// Returns the time at which the next frame may be drawn; `None` while a frame is being written.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = || self.last.map_or_else(Instant::now, |last| last + PACE);
        (!self.in_flight).then(due)
    }

    pub(super) fn write_with_next(&mut self, bytes: &[u8]) {
        self.before.extend_from_slice(bytes);
    }

    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let mut frame = std::mem::take(&mut self.before);
        frame.extend(self.painter.draw(view)?);
        self.last = Some(Instant::now());
        self.in_flight = self.to_write.send(frame).is_ok();
        Ok(())
    }

    /// Waits until the current frame is written. Cancel safe.
    pub(super) async fn written(&mut self) -> io::Result<()> {
        match self.written.recv().await {
            Some(result) => {
                self.in_flight = false;
                result
            }
            None => std::future::pending().await,
        }
    }

    /// Sets a new window size. The next frame is drawn completely.
    pub(super) fn resize(&mut self, size: Size) -> io::Result<()> {
        self.painter.resize(size)
    }
}

fn write(
    tty: &Tty,
    mut frames: mpsc::UnboundedReceiver<Vec<u8>>,
    done: &mpsc::UnboundedSender<io::Result<()>>,
) {
    while let Some(frame) = frames.blocking_recv() {
        if done.send(tty.write_frame(&frame)).is_err() {
            return;
        }
    }
}
