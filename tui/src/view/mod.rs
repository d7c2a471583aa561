//! Drawing of the model to a frame.

mod beside;
mod card;
#[cfg(test)]
mod contrast;
mod findings;
mod listed;
mod log;
mod page;
mod palette;
mod pane;
mod picker;
mod plan;
mod prompt;
mod rewind;
mod rows;
mod status;
mod tasks;
mod theme;
mod tree;

use protocol::error_code::ErrorCode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::commands::{Command, KeyMode};
use crate::model::{Areas, Mode, Model, Part, is_tiny};
use crate::text::SafeText;
use beside::Beside;
use pane::Pane;
pub use picker::pick;
use theme::Theme;

/// Facts about a drawn frame, passed to [`Msg::Drawn`](crate::Msg::Drawn) once the terminal shows the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub(crate) card: Option<u64>,
    /// True if the frame shows the text of the approval request and not only its title.
    pub(crate) whole: bool,
    /// Revision of the approval request's text; `None` unless the last row of the text is visible.
    pub(crate) to_end: Option<u64>,
    /// True if the frame contains code that has not been highlighted.
    pub(crate) plain: bool,
}

pub fn view(model: &Model, frame: &mut Frame<'_>) -> Shown {
    let screen = frame.area();
    let theme = Theme::new(model.start.capabilities);
    if is_tiny((screen.width, screen.height)) {
        return tiny(model, frame, theme);
    }
    let areas = Areas::of(model, screen);
    let mut pane = Pane::new(frame.buffer_mut(), areas.transcript);
    let mut plain = model.cards.front().is_some_and(|card| card.body.block.parts.iter().any(Part::is_plain));
    if model.mode == Mode::Plan {
        plan::view(model, &mut pane, theme);
    } else if model.shows_log() {
        log::view(model, &mut pane, theme);
    } else if model.mode == Mode::Rewind {
        rewind::view(model, &mut pane, theme);
    } else if model.mode == Mode::Findings {
        findings::view(model, &mut pane, theme);
    } else if model.mode == Mode::Page {
        plain |= page::view(model, &mut pane, theme);
    } else {
        plain |= transcript(model, &mut pane, theme);
    }
    if let Some(area) = areas.tree {
        let Beside { agents, steps } = Beside::of(model, area);
        tree::tree(model, &mut Pane::new(frame.buffer_mut(), agents), theme);
        plan::steps(model, &mut Pane::new(frame.buffer_mut(), steps), theme);
        tasks::list(model, &mut Pane::new(frame.buffer_mut(), steps), theme);
    }
    tasks::row(model, &mut Pane::new(frame.buffer_mut(), areas.tasks), theme);
    prompt::queue(model, &mut Pane::new(frame.buffer_mut(), areas.queue), theme);
    prompt::rule(model, &areas, &mut Pane::new(frame.buffer_mut(), areas.rule), theme);
    let mut caret = prompt::prompt(model, &mut Pane::new(frame.buffer_mut(), areas.prompt), theme);
    status::status(model, &mut Pane::new(frame.buffer_mut(), areas.status), theme);
    if model.mode == Mode::Select {
        let area = areas.transcript;
        let cursor = model.agents.shown().transcript.cursor_on_screen((area.width, area.height));
        caret = cursor.map(|(x, y)| (area.x + x, area.y + y));
    }
    let mut shown = Shown::default();
    if let (Some(area), Some(card)) = (areas.card, model.card()) {
        let mut pane = Pane::new(frame.buffer_mut(), area);
        let hides_prompt = area.intersects(areas.prompt);
        let (what, where_to) = card::card(model, card, &mut pane, theme);
        shown = what;
        // If keys go to the request, the caret is in the request, too.
        if model.mode != Mode::Command && (hides_prompt || card.is_open(model.now)) {
            caret = where_to;
        }
    }
    page::answer(model, &mut Pane::new(frame.buffer_mut(), areas.answer), theme);
    if let Some(area) = areas.palette {
        listed::palette(model, &mut Pane::new(frame.buffer_mut(), area), theme);
        // A list may cover the text of the request.
        (shown.whole, shown.to_end) = (false, None);
    }
    shown.plain = plain;
    if let Some(caret) = caret {
        frame.set_cursor_position(caret);
    }
    shown
}

/// Draws the transcript. True if some of the visible code has not been highlighted.
fn transcript(model: &Model, pane: &mut Pane<'_>, theme: Theme) -> bool {
    let visible = model.agents.shown().transcript.visible(pane.width(), pane.height());
    for (y, row) in (0..).zip(&visible) {
        rows::draw(pane, y, row.block, row.row, &model.start.keymap, theme, theme.dim());
        if row.is_found {
            pane.stress(y);
        }
        pane.reverse(row.selected.clone(), y);
    }
    visible.iter().any(|row| row.block.parts.iter().any(Part::is_plain))
}

/// Draws one line on a screen that is too small: the required size, and the key that denies an open request.
fn tiny(model: &Model, frame: &mut Frame<'_>, theme: Theme) -> Shown {
    let screen = frame.area();
    let mut pane = Pane::new(frame.buffer_mut(), Rect { height: screen.height.min(1), ..screen });
    let Some(card) = model.cards.front() else {
        let text = SafeText::line(&ErrorCode::TinyTerminal.mark("needs 40x10"));
        pane.put(0, 0, text.all(), Style::new());
        return Shown::default();
    };
    let key = model.start.keymap.hint(KeyMode::Approval, Command::Deny);
    let text = SafeText::line(&format!("{key} no · needs 40x10"));
    pane.put(0, 0, text.all(), theme.alarm());
    Shown { card: Some(card.number()), ..Shown::default() }
}
