//! `y` in Normal mode: copies text to the clipboard as it is on the screen, with hidden characters made visible.

use crate::markdown::last_code;
use crate::message::{Action, Copied};
use crate::model::{Areas, Look, Model};
use crate::text::shown;

/// Copies the line of the last search match, else the last answer.
pub(super) fn answer(model: &mut Model, actions: &mut Vec<Action>) {
    let width = Areas::now(model).transcript.width;
    let view = model.agents.shown();
    match (view.transcript.found_text(width), &view.answer) {
        (Some(line), _) => copy(Copied::Line, &line, actions),
        (None, answer) if answer.is_empty() => model.answer(Look::Notice, "there is no answer yet to copy"),
        (None, answer) => copy(Copied::Answer, answer, actions),
    }
}

pub(super) fn code(model: &mut Model, actions: &mut Vec<Action>) {
    match last_code(&model.agents.shown().answer) {
        Some(code) => copy(Copied::Code, &code, actions),
        None => model.answer(Look::Notice, "the last answer has no code to copy"),
    }
}

fn copy(what: Copied, text: &str, actions: &mut Vec<Action>) {
    actions.push(Action::Copy { what, text: shown(text) });
}
