//! Converts frames to the bytes that update the terminal.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Rect, Size};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use super::disputed::Disputed;

/// Bytes before a frame. They make the terminal show the frame completely or not at all (synchronized output, DECSET
/// 2026).
const BEGIN: &[u8] = b"\x1b[?2026h";

/// Bytes after a frame, which end the synchronized output.
pub const END: &[u8] = b"\x1b[?2026l";

pub struct Painter {
    terminal: Terminal<CrosstermBackend<PaintedPage>>,
    page: PaintedPage,
    disputed: Disputed,
}

impl Painter {
    pub fn new(size: Size) -> io::Result<Self> {
        let page = PaintedPage::default();
        let options = TerminalOptions { viewport: Viewport::Fixed(whole(size)) };
        Ok(Self {
            terminal: Terminal::with_options(CrosstermBackend::new(page.clone()), options)?,
            page,
            disputed: Disputed::default(),
        })
    }

    pub fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<Vec<u8>> {
        self.page.write_all(BEGIN)?;
        let Self { terminal, page, disputed } = self;
        terminal.draw(|frame| {
            view(frame);
            let erase = disputed.settle(frame.buffer_mut());
            page.0.borrow_mut().extend_from_slice(erase.as_bytes());
        })?;
        self.page.write_all(END)?;
        Ok(self.page.0.take())
    }

    /// Sets a new window size. The next frame is drawn completely.
    pub(crate) fn resize(&mut self, size: Size) -> io::Result<()> {
        self.disputed.forget();
        self.terminal.resize(whole(size))
    }
}

fn whole(size: Size) -> Rect {
    Rect::new(0, 0, size.width, size.height)
}

/// The bytes of drawn output that the painter has not yet returned.
#[derive(Clone, Default)]
struct PaintedPage(Rc<RefCell<Vec<u8>>>);

impl Write for PaintedPage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::{Color, Style};

    use super::*;

    const SIZE: Size = Size { width: 20, height: 4 };

    /// Rows that terminals draw in different widths, and rows that would leave remains of the previous row.
    const ROWS: [&str; 12] = [
        "👨\u{200d}👩\u{200d}👧\u{200d}👦",
        "",
        "⚠\u{fe0f} abc",
        "plain text of a row",
        "a 👍🏽 b",
        "",
        "1\u{fe0f}\u{20e3}",
        "漢字漢字",
        "🇩🇪🇫🇷 x",
        "e\u{301}e\u{301}",
        "x 👩🏽\u{200d}💻",
        "",
    ];

    fn draw(painter: &mut Painter, from: usize) -> Vec<u8> {
        let rows = ROWS.iter().cycle().skip(from).take(usize::from(SIZE.height));
        let draw = |frame: &mut Frame<'_>| {
            for (y, row) in (0..).zip(rows) {
                let style = if row.len() % 2 == 0 { Style::new() } else { Style::new().bg(Color::Blue) };
                frame.buffer_mut().set_string(0, y, row, style);
            }
        };
        painter.draw(draw).unwrap()
    }

    fn terminal() -> vt100::Parser {
        let [rows, columns] = [SIZE.height, SIZE.width].map(|size| size.try_into().unwrap());
        vt100::Parser::new(rows, columns, 0)
    }

    fn cells(terminal: &vt100::Parser) -> Vec<(String, vt100::Color)> {
        let places = (0..SIZE.height).flat_map(|y| (0..SIZE.width).map(move |x| (y, x)));
        let cells = places.map(|(y, x)| terminal.screen().cell(y, x).unwrap());
        cells.map(|cell| (cell.contents().replace(' ', ""), cell.bgcolor())).collect()
    }

    #[test]
    fn nothing_of_an_emoji_is_left_when_its_row_scrolls() {
        // This simulated terminal draws each character of an emoji in its own columns, and no variation selectors.
        let mut terminal = terminal();
        let mut painter = Painter::new(SIZE).unwrap();
        for from in (0..30).chain((0..30).rev()).chain([0, 5, 5, 9, 2]) {
            terminal.process(&draw(&mut painter, from));
            let mut fresh = self::terminal();
            fresh.process(&draw(&mut Painter::new(SIZE).unwrap(), from));
            assert_eq!(cells(&terminal), cells(&fresh), "{from}: {:?}", terminal.screen().contents());
        }
    }

    #[test]
    fn a_row_that_stays_is_not_written_again() {
        let mut painter = Painter::new(SIZE).unwrap();
        assert!(draw(&mut painter, 0).len() > 60);
        draw(&mut painter, 0);
        let nothing = String::from_utf8(draw(&mut painter, 0)).unwrap();
        assert!(!nothing.contains('👨') && !nothing.contains("abc"), "{nothing:?}");
    }
}
