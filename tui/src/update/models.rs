//! Page of language models, from which the person chooses one.

use crate::model::{Areas, Block, Model, ModelList, plan_rows};

pub(super) fn open(model: &mut Model) {
    let now = &model.agents.shown().session.model;
    let list = ModelList::all(&model.start.models, now);
    open_list(model, list);
}

/// Opens a page of models whose names are similar to the unknown name `name`.
pub(super) fn ask_about(model: &mut Model, name: &str) {
    let list = ModelList::near(&model.start.models, name);
    open_list(model, list);
}

fn open_list(model: &mut Model, list: ModelList) {
    model.open_page(Block::default());
    model.known_list = Some(list);
    lay(model);
}

/// Moves the selection in the list of models. Returns false if no such list is open.
pub(super) fn go(model: &mut Model, rows: isize) -> bool {
    let Some(list) = &mut model.known_list else { return false };
    list.go(rows);
    lay(model);
    true
}

fn lay(model: &mut Model) {
    let revision = model.next_revision();
    let Some(list) = &model.known_list else { return };
    let block = list.block(&model.agents.shown().session.model);
    let row = list.chosen_row();
    let area = Areas::now(model).transcript;
    model.page.renew(block, revision);
    model.page.reveal(row, 0, (area.width, plan_rows(area.height)));
}
