//! Short help with the most important keys, shown while the prompt is a single `?`.

use super::{Mode, Model};
use crate::commands::{Command, KeyMode};

pub(crate) fn is_shown(model: &Model) -> bool {
    model.mode == Mode::Insert
        && model.recall.is_none()
        && model.cards.is_empty()
        && model.prompt.text() == "?"
}

/// Returns keys and their effects; empty while the short help is not shown.
pub(crate) fn rows(model: &Model) -> Vec<(String, &'static str)> {
    if !is_shown(model) {
        return Vec::new();
    }
    let key = |command| model.start.keymap.hint(KeyMode::Insert, command);
    let pair = |one, other| format!("{} {}", key(one), key(other));
    let leave =
        if model.start.is_plain { "stop the turn" } else { "stop the turn; when idle: keys are commands" };
    let rows = [
        ("/ :".to_owned(), "commands"),
        ("@".to_owned(), "a file of the project"),
        ("!".to_owned(), "a command of your own, in the sandbox"),
        (key(Command::Newline), "new line"),
        (key(Command::EditPrompt), "write the message in $EDITOR"),
        (pair(Command::HistoryBack, Command::SearchHistory), "earlier messages; search them"),
        (key(Command::CycleMode), "from mode ask to auto, and back"),
        (pair(Command::PageUp, Command::PreviousMessage), "read what is above; by message"),
        (key(Command::FoldOutput), "show or fold the output of tools"),
        (key(Command::Leave), leave),
        (key(Command::Cancel), "empty the prompt; twice: end the session"),
        (key(Command::Submit), "now: all commands and all keys (:help)"),
    ];
    rows.into_iter().filter(|(key, _)| !key.is_empty()).collect()
}
