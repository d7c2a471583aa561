//! Frames on their way to the terminal: drawn into memory, written by a thread of its own, one at a time.
//!
//! A terminal that stands still stops this thread and nothing else: the session goes on, its deadlines run, and no frames
//! pile up, because the next one is drawn only when the last one is out.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Rect, Size};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use tokio::sync::mpsc;

use super::tty::Tty;

/// The shortest time between two frames: 60 of them a second.
const PACE: Duration = Duration::from_micros(16_667);

/// Around a frame, so that the terminal shows all of it or nothing (synchronized output, DECSET 2026).
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Draws, and knows when it may draw next.
pub(super) struct Frames {
    terminal: Terminal<CrosstermBackend<Page>>,
    page: Page,
    to_write: mpsc::UnboundedSender<Vec<u8>>,
    written: mpsc::UnboundedReceiver<io::Result<()>>,
    in_flight: bool,
    last: Option<Instant>,
}

impl Frames {
    /// For a terminal that is engaged.
    pub(super) fn new(tty: Arc<Tty>) -> io::Result<Self> {
        let page = Page::default();
        // The window's size is ours to learn: nothing here asks the terminal for anything.
        let viewport = Viewport::Fixed(whole(tty.size()));
        let terminal =
            Terminal::with_options(CrosstermBackend::new(page.clone()), TerminalOptions { viewport })?;
        let (to_write, frames) = mpsc::unbounded_channel();
        let (done, written) = mpsc::unbounded_channel();
        thread::Builder::new().name("screen".to_owned()).spawn(move || write(&tty, frames, &done))?;
        Ok(Self { terminal, page, to_write, written, in_flight: false, last: None })
    }

    /// When the next frame may be drawn; not before the last one is written.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = || self.last.map_or_else(Instant::now, |last| last + PACE);
        (!self.in_flight).then(due)
    }

    /// Draws a frame, to be written at once.
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.page.write_all(BEGIN)?;
        self.terminal.draw(view)?;
        self.page.write_all(END)?;
        self.last = Some(Instant::now());
        self.in_flight = self.to_write.send(self.page.take()).is_ok();
        Ok(())
    }

    /// Waits until the frame in flight is what the terminal has. Cancel safe.
    pub(super) async fn written(&mut self) -> io::Result<()> {
        match self.written.recv().await {
            Some(result) => {
                self.in_flight = false;
                result
            }
            None => std::future::pending().await,
        }
    }

    /// From now on the window has another size, or nothing that was drawn is there any more.
    pub(super) fn resize(&mut self, size: Size) -> io::Result<()> {
        self.terminal.resize(whole(size))
    }
}

/// The thread: it ends with the sender.
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

fn whole(size: Size) -> Rect {
    Rect::new(0, 0, size.width, size.height)
}

/// What is drawn and not sent yet.
#[derive(Clone, Default)]
struct Page(Rc<RefCell<Vec<u8>>>);

impl Page {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
