//! Answer to a command, on a page or above the prompt.

use ratatui::style::Style;

use super::pane::Pane;
use super::rows;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::model::{Model, Part, Unfolded, plan_rows};
use crate::text::SafeText;

/// Draws the page, with key hints in the last row. True if some of the visible code has not been highlighted.
pub(super) fn view(model: &Model, pane: &mut Pane<'_>, theme: Theme) -> bool {
    let sheet = &model.page;
    let height = plan_rows(pane.height());
    let top = sheet.top(pane.width(), height);
    for y in 0..height {
        if let Some(row) = sheet.block.row(top + usize::from(y), pane.width(), Unfolded::default()) {
            rows::draw(pane, y, &sheet.block, row, &model.start.keymap, theme, theme.dim());
        }
    }
    let key = |command| model.start.keymap.hint(KeyMode::Page, command);
    let more = match sheet.rows(pane.width()).saturating_sub(top + usize::from(height)) {
        0 => String::new(),
        1 => "  1 more line".to_owned(),
        below => format!("  {below} more lines"),
    };
    let choose = match &model.known_list {
        Some(_) => format!("{} choose  ", key(Command::ChooseRow)),
        None => String::new(),
    };
    let moves = if model.known_list.is_some() { "move" } else { "scroll" };
    let [close, down, up] = [Command::ClosePage, Command::LineDown, Command::LineUp].map(key);
    pane.put(
        0,
        height,
        SafeText::line(&format!("{choose}{close} close  {down}/{up} {moves}{more}")).all(),
        theme.dim(),
    );
    sheet.block.parts.iter().any(Part::is_plain)
}

pub(super) fn answer(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let Some(answer) = &model.answer else { return };
    pane.clear(Style::new());
    for y in 0..pane.height() {
        if let Some(row) = answer.block().row(usize::from(y), pane.width(), Unfolded::default()) {
            rows::draw(pane, y, answer.block(), row, &model.start.keymap, theme, Style::new());
        }
    }
}
