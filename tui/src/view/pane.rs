use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use crate::text::{Clusters, SafeStr};

/// Area of the screen for drawing. Only sanitised text can be drawn, and only within the area.
pub(super) struct Pane<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
}

impl<'a> Pane<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, area: Rect) -> Self {
        let area = area.intersection(buffer.area);
        Self { buffer, area }
    }

    pub(super) const fn width(&self) -> u16 {
        self.area.width
    }

    pub(super) const fn height(&self) -> u16 {
        self.area.height
    }

    pub(super) fn clear(&mut self, style: Style) {
        for y in self.area.top()..self.area.bottom() {
            for x in self.area.left()..self.area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                    cell.set_style(style);
                }
            }
        }
    }

    /// Draws text, clipped at the right edge. Returns the column after the text.
    pub(super) fn put<'t>(&mut self, x: u16, y: u16, text: impl Into<SafeStr<'t>>, style: Style) -> u16 {
        let text = text.into();
        let mut x = x;
        if y >= self.area.height {
            return x;
        }
        for cluster in Clusters::new(text.as_str(), 0) {
            let columns = u16::try_from(cluster.columns).unwrap_or(u16::MAX);
            if columns == 0 || columns > self.area.width.saturating_sub(x) {
                break;
            }
            // Text that only looks like an escape differs in style from a real escape.
            let style =
                if text.is_escape(cluster.at) { style.add_modifier(Modifier::REVERSED) } else { style };
            self.cell(x, y, cluster.text, style);
            // The cells that a wide character covers are empty.
            (1..columns).for_each(|more| self.cell(x + more, y, "", style));
            x += columns;
        }
        x
    }

    /// Like [`put`](Self::put), but a text that does not fit ends with `…`.
    pub(super) fn put_cut<'t>(&mut self, x: u16, y: u16, text: impl Into<SafeStr<'t>>, style: Style) -> u16 {
        let text = text.into();
        let room = self.area.width.saturating_sub(x);
        let columns: usize = Clusters::new(text.as_str(), 0).map(|cluster| cluster.columns).sum();
        let end = self.put(x, y, text, style);
        if columns <= usize::from(room) || room == 0 || y >= self.area.height {
            return end;
        }
        let last = self.area.width - 1;
        // If the second cell of a wide character is overwritten, the character is removed.
        if end > last && last > x && self.is_wide(last - 1, y) {
            self.cell(last - 1, y, " ", style);
        }
        self.cell(last, y, "…", style);
        self.area.width
    }

    fn is_wide(&self, x: u16, y: u16) -> bool {
        let cell = self.buffer.cell((self.area.x + x, self.area.y + y));
        cell.is_some_and(|cell| cell.symbol().width() > 1)
    }

    pub(super) fn fill(&mut self, columns: Range<u16>, y: u16, style: Style) {
        if y < self.area.height {
            (columns.start..columns.end.min(self.area.width)).for_each(|x| self.cell(x, y, " ", style));
        }
    }

    pub(super) fn stress(&mut self, y: u16) {
        for x in self.area.left()..self.area.right() {
            if let Some(cell) = self.buffer.cell_mut((x, self.area.y + y)).filter(|_| y < self.area.height) {
                cell.set_style(Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED));
            }
        }
    }

    /// Marks columns of a row as selected: reversed, in the terminal's default colours, so that the selection has one
    /// colour. Escapes, which are reversed already, are underlined.
    pub(super) fn reverse(&mut self, columns: Range<u16>, y: u16) {
        for x in columns.start..columns.end.min(self.area.width) {
            let at = (self.area.x + x, self.area.y + y);
            if let Some(cell) = self.buffer.cell_mut(at).filter(|_| y < self.area.height) {
                let is_escape = cell.modifier.contains(Modifier::REVERSED);
                (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
                cell.modifier -= Modifier::DIM;
                cell.modifier |= Modifier::REVERSED;
                cell.modifier.set(Modifier::UNDERLINED, is_escape);
            }
        }
    }

    fn cell(&mut self, x: u16, y: u16, symbol: &str, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((self.area.x + x, self.area.y + y)) {
            cell.reset();
            if !symbol.is_empty() {
                cell.set_symbol(symbol);
            }
            cell.set_style(style);
        }
    }

    /// Converts a position in the area to the position on the screen; `None` if it is outside the area.
    pub(super) fn on_screen(&self, (x, y): (u16, u16)) -> Option<(u16, u16)> {
        (x < self.area.width && y < self.area.height).then(|| (self.area.x + x, self.area.y + y))
    }
}
