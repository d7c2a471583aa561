use super::{models, scrolled, typed};
use crate::card::CardPage;
use crate::commands::Command;
use crate::message::Action;
use crate::model::{Areas, Editor, Look, Mode, Model, ModelList, plan_rows};

/// Handles a key on a page: scrolls, chooses a row, or else closes the page.
pub(super) fn read(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let area = Areas::now(model).transcript;
    let size = (area.width, plan_rows(area.height));
    match scrolled(command, size.1) {
        Some(rows) if models::go(model, rows) => {}
        Some(rows) => model.page.scroll(rows, size),
        None if command == Command::Repaint => actions.push(Action::Repaint),
        None if command == Command::ChooseRow => choose(model, actions),
        None => close(model),
    }
}

/// Changes to the selected language model. If its name ends with `*`, it stands for several models, so the beginning of
/// a `:model` command is written instead.
fn choose(model: &mut Model, actions: &mut Vec<Action>) {
    let name = model.known_list.as_ref().and_then(ModelList::chosen).map(str::to_owned);
    close(model);
    let Some(name) = name else { return };
    match name.strip_suffix('*') {
        Some(beginning) => {
            model.line = Editor::with(format!("model {beginning}"));
            model.mode = Mode::Command;
        }
        None if name == model.agents.shown().session.model => {
            model.answer(Look::Notice, &format!("nothing changed: the model is {name}"));
        }
        None => typed::set_model(&name, actions),
    }
}

pub(super) fn close(model: &mut Model) {
    (model.page, model.known_list) = (CardPage::default(), None);
    model.mode = model.came_from;
}
