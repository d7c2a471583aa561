//! `/` in Normal mode: search in the shown transcript.

use crate::commands::{Command, KeyMode};
use crate::model::{Areas, Found, LineFor, Mode, Model};
use crate::text::SafeText;

pub(super) fn begin(model: &mut Model) {
    model.mode = Mode::Command;
    model.line_for = LineFor::Search;
}

pub(super) fn submit(model: &mut Model) {
    let typed = model.line.take();
    model.line_for = LineFor::Command;
    model.mode = model.came_from;
    if !typed.is_empty() {
        // The transcript shows invisible characters as escapes, so the search text is escaped too.
        SafeText::line(&typed).as_str().clone_into(&mut model.sought);
        model.agents.shown_mut().transcript.forget_found();
    }
    next(model, true);
}

pub(super) fn next(model: &mut Model, down: bool) {
    let hint = |command| model.start.keymap.hint(KeyMode::Normal, command);
    if model.sought.is_empty() {
        let key = hint(Command::Search);
        return model.remark = Some(format!("{key} searches the transcript for a text"));
    }
    let keys = format!("{} next · {} previous", hint(Command::SearchNext), hint(Command::SearchPrevious));
    let area = Areas::now(model).transcript;
    let transcript = &mut model.agents.shown_mut().transcript;
    let found = transcript.find(&model.sought, down, (area.width, area.height));
    model.remark = Some(match found {
        Some(Found { number, of }) => format!("line {number} of {of} · {keys}"),
        None => format!("no line has {:?}", model.sought),
    });
}
