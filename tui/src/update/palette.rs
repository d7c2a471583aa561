//! Keys for the list of commands that is open while a command is typed.

use crate::model::{Editor, Mode, Model, OfferedCommands};

pub(super) fn has_choice(model: &Model) -> bool {
    OfferedCommands::of(model).is_some_and(|offered| offered.choice().is_some())
}

/// Selects the previous or next row. Returns false if no row is selected.
pub(super) fn choose(model: &mut Model, down: bool) -> bool {
    let row = OfferedCommands::of(model).and_then(|offered| offered.beside(down));
    row.map(|row| model.palette.choose(row)).is_some()
}

/// Completes the name of the selected command. True if Enter must not run the command yet.
pub(super) fn complete(model: &mut Model) -> bool {
    let completed = OfferedCommands::of(model).and_then(|offered| offered.completed());
    let Some((text, waits)) = completed else { return false };
    let is_line = model.mode == Mode::Command;
    let (sign, editor) = if is_line { ("", &mut model.line) } else { ("/", &mut model.prompt) };
    *editor = Editor::with(format!("{sign}{text}"));
    waits
}

/// Resets the selections in the list of commands and in the search through sent messages after the text has changed.
pub(super) fn follow(model: &mut Model) {
    model.palette.follow(model.mode == Mode::Insert && !model.prompt.is_empty());
    if let Some(recall) = &mut model.recall {
        recall.choose(0);
    }
}
