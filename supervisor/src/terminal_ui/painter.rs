//! Frames as bytes: what has to be written so that the terminal shows the next one.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Rect, Size};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

/// Around a frame, so that the terminal shows all of it or nothing (synchronized output, DECSET 2026).
const BEGIN: &[u8] = b"\x1b[?2026h";

/// The end of a frame.
pub(crate) const END: &[u8] = b"\x1b[?2026l";

/// Draws into memory. It asks the terminal nothing.
pub(crate) struct Painter {
    terminal: Terminal<CrosstermBackend<Page>>,
    page: Page,
}

impl Painter {
    /// For a window of this size on which nothing stands.
    pub(crate) fn new(size: Size) -> io::Result<Self> {
        let page = Page::default();
        let options = TerminalOptions { viewport: Viewport::Fixed(whole(size)) };
        Ok(Self { terminal: Terminal::with_options(CrosstermBackend::new(page.clone()), options)?, page })
    }

    /// What makes the last frame this one.
    pub(crate) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<Vec<u8>> {
        self.page.write_all(BEGIN)?;
        self.terminal.draw(view)?;
        self.page.write_all(END)?;
        Ok(self.page.0.take())
    }

    /// From now on the window has this size, and what stands on it is not known.
    pub(crate) fn resize(&mut self, size: Size) -> io::Result<()> {
        self.terminal.resize(whole(size))
    }
}

fn whole(size: Size) -> Rect {
    Rect::new(0, 0, size.width, size.height)
}

/// What is drawn and not taken yet.
#[derive(Clone, Default)]
struct Page(Rc<RefCell<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
