//! Keys while the answer to a command is shown as a page.

use super::scrolled;
use crate::card::CardPage;
use crate::commands::Command;
use crate::message::Action;
use crate::model::{Areas, Model, plan_rows};

/// Handles a key of the page. A key that does not scroll closes the page.
pub(super) fn read(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let area = Areas::now(model).transcript;
    let size = (area.width, plan_rows(area.height));
    match scrolled(command, size.1) {
        Some(rows) => model.page.scroll(rows, size),
        None if command == Command::Repaint => actions.push(Action::Repaint),
        None => close(model),
    }
}

pub(super) fn close(model: &mut Model) {
    model.page = CardPage::default();
    model.mode = model.came_from;
}
