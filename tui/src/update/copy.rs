//! Copying to the clipboard (`y` in Normal mode), with hidden characters made visible.

use super::walk;
use crate::markdown::last_code;
use crate::message::{Action, Copied};
use crate::model::{Look, Model};
use crate::text::shown;

/// Copies the marked message or output; without a mark, the line of the last search match; else the last answer.
pub(super) fn answer(model: &mut Model, actions: &mut Vec<Action>) {
    let size = walk::size(model);
    let view = model.agents.shown();
    if let Some(marked) = view.transcript.marked(size) {
        let text = view.transcript.text_of(view.transcript.extent(marked), size.0);
        return copy(Copied::Selection, &text, actions);
    }
    match (view.transcript.found_text(size.0), &view.answer) {
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

pub(super) fn copy(what: Copied, text: &str, actions: &mut Vec<Action>) {
    actions.push(Action::Copy { what, text: shown(text) });
}
