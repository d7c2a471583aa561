//! Keys for approving a part of a change.

use ipc::path::WirePath;

use super::approval::{answer, set_stage, text_rows};
use super::scrolled;
use crate::card::{Asked, DroppedKey, PartPage, Stage};
use crate::commands::{Command, KeyMode};
use crate::keymap::Key;
use crate::message::Action;
use crate::model::{Areas, Look, Model};
use crate::moment::UiTime;

/// Opens the page on which parts of a change are selected. If it was open before, its selection is kept.
pub(super) fn begin(model: &mut Model, at: UiTime) {
    let Some(card) = model.cards.front_mut() else { return };
    let Some(params) = card.request.in_part() else { return };
    if card.part.is_none() {
        card.part = PartPage::of(params);
    }
    if card.part.is_some() {
        card.open_page(at, Stage::Part);
        lay(model);
    }
}

pub(super) fn key(model: &mut Model, at: UiTime, key: Key, actions: &mut Vec<Action>) -> bool {
    let command = model.start.keymap.command(KeyMode::Part, key);
    let Some(card) = model.cards.front_mut() else { return false };
    // The letters "hey" may begin a message.
    let is_text = card.has_just_opened(at) && command != Some(Command::Back);
    if is_text || command.is_none() && key.is_letter() {
        card.open_page(at, Stage::Part);
        return card.drops(if is_text { DroppedKey::TooEarly(key) } else { DroppedKey::WithoutMeaning(key) });
    }
    let Some(part) = &mut card.part else { return false };
    match command {
        Some(Command::Confirm) => {
            approve(model, at, actions);
            return true;
        }
        Some(Command::Back) => {
            set_stage(model, Stage::Deciding);
            return true;
        }
        Some(Command::EditText) => {
            edit(model, actions);
            return true;
        }
        Some(Command::LineUp) => return choose(model, -1, -1),
        Some(Command::LineDown) => return choose(model, 1, 1),
        Some(Command::Top) => return choose(model, isize::MIN, isize::MIN),
        Some(Command::Bottom) => return choose(model, isize::MAX, isize::MAX),
        Some(Command::Toggle) => part.toggle(),
        Some(Command::Undo) => part.undo(),
        Some(command) => {
            let size = size(model);
            let rows = scrolled(command, size.1);
            let part = model.cards.front_mut().and_then(|card| card.part.as_mut());
            let (Some(rows), Some(part)) = (rows, part) else { return false };
            part.sheet.scroll(rows, size);
            return true;
        }
        None => return false,
    }
    lay(model);
    true
}

/// Moves the cursor by `by` parts of the change. Scrolls by `rows` too if the cursor cannot move or `by` is more than
/// one: lines about access follow after the last part.
fn choose(model: &mut Model, by: isize, rows: isize) -> bool {
    let Some(part) = model.cards.front_mut().and_then(|card| card.part.as_mut()) else { return false };
    let scrolls = !part.choose(by) || by.unsigned_abs() > 1;
    lay(model);
    let size = size(model);
    let part = model.cards.front_mut().and_then(|card| card.part.as_mut());
    part.into_iter().filter(|_| scrolls).for_each(|part| part.sheet.scroll(rows, size));
    true
}

/// Approves the selected parts. Does nothing while an approval does not count yet.
fn approve(model: &mut Model, at: UiTime, actions: &mut Vec<Action>) {
    let Some(card) = model.cards.front() else { return };
    let chosen = card.part.as_ref().zip(card.request.in_part());
    let decision = chosen.and_then(|(part, params)| part.decision(params));
    if let (Ok(()), Some(decision)) = (card.approvable(at), decision) {
        answer(model, decision, actions);
    }
}

fn edit(model: &mut Model, actions: &mut Vec<Action>) {
    let Some(card) = model.cards.front() else { return };
    match card.part.as_ref().and_then(PartPage::text) {
        Some((path, text)) => {
            let Asked { agent, id } = card.asked.clone();
            actions.push(Action::EditText { agent, id, path, text });
        }
        None => model.answer(Look::Notice, "the change removes this file: there is no text to edit"),
    }
}

/// Stores the text of a file that the external editor returned.
pub(super) fn edited(
    model: &mut Model,
    asked: &Asked,
    path: &WirePath,
    edited: Result<Option<String>, String>,
) -> bool {
    let part = model.cards.iter_mut().find(|card| card.asked == *asked).and_then(|card| card.part.as_mut());
    match (edited, part) {
        (Err(why), _) => model.answer(Look::Error, &why),
        (Ok(None), _) => model.answer(Look::Notice, "the text is unchanged"),
        (Ok(Some(_)), None) => {
            model.answer(Look::Error, "the edit was discarded: the change no longer waits for your approval");
        }
        (Ok(Some(text)), Some(part)) => {
            part.edit(path, text);
            lay(model);
        }
    }
    true
}

fn lay(model: &mut Model) {
    let revision = model.next_revision();
    let size = size(model);
    let project = &model.start.project;
    let Some(card) = model.cards.front_mut() else { return };
    if let (Some(part), Some(params)) = (&mut card.part, card.request.in_part()) {
        part.lay(params, project, revision, size);
    }
}

fn size(model: &Model) -> (u16, u16) {
    let area = Areas::now(model).card.unwrap_or_default();
    let card = model.cards.front();
    (area.width, card.map_or(0, |card| text_rows(card, &model.start.keymap, area)))
}
