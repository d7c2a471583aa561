use ratatui::Frame;
use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::picker::{Picker, TALL};
use crate::text::SafeText;
use crate::tool_summary::cut;

const FIRST: u16 = 3;

pub fn pick(picker: &Picker, frame: &mut Frame<'_>) {
    let area = frame.area();
    let theme = Theme::new(picker.capabilities);
    let mut pane = Pane::new(frame.buffer_mut(), area);
    pane.clear(Style::new());
    pane.put(0, 0, SafeText::line(&picker.heading).all(), theme.strong());
    let caret = typed(picker, &mut pane, theme);
    let last = pane.height().saturating_sub(1);
    for (at, (row, is_chosen)) in (0..).zip(picker.visible()) {
        let y = FIRST + at * TALL;
        if y >= last {
            break;
        }
        let style = if is_chosen { theme.strong() } else { Style::new() };
        if is_chosen {
            pane.put(0, y, "▸", style);
        }
        let within =
            |text: &str, x: u16| SafeText::line(&cut(text, usize::from(pane.width().saturating_sub(x))));
        let (title, about) = (within(&row.title, 2), within(&row.about, 4));
        pane.put(2, y, title.all(), style);
        if y + 1 < last {
            pane.put(4, y + 1, about.all(), theme.dim());
        }
    }
    let other = if picker.shows_all { "this project" } else { "every project" };
    if last > 1 {
        let keys = format!("↑ ↓ choose · Enter open · Tab {other} · Esc leave");
        let keys = SafeText::line(&cut(&keys, usize::from(pane.width())));
        pane.put(0, last, keys.all(), theme.dim());
    }
    if let Some(caret) = pane.on_screen(caret) {
        frame.set_cursor_position(caret);
    }
}

/// Draws the typed filter. Returns the position of the caret.
fn typed(picker: &Picker, pane: &mut Pane<'_>, theme: Theme) -> (u16, u16) {
    pane.put(0, 1, ">", theme.strong());
    let end = pane.put(2, 1, SafeText::line(&picker.typed).all(), Style::new());
    let (found, all) = picker.count();
    let hint = if picker.typed.is_empty() { "type to filter · " } else { " · " };
    let count = SafeText::line(&format!("{hint}{found} of {all}"));
    pane.put(end, 1, count.all(), theme.dim());
    (end, 1)
}
