use crate::commands::Command;
use crate::model::{Editor, Motion};

pub(super) fn edit(editor: &mut Editor, command: Command) -> bool {
    use Motion::{Left, LineEnd, LineStart, Right, WordLeft, WordRight};
    match command {
        Command::Left => editor.go(Left),
        Command::Right => editor.go(Right),
        Command::WordLeft => editor.go(WordLeft),
        Command::WordRight => editor.go(WordRight),
        Command::LineStart => editor.go(LineStart),
        Command::LineEnd => editor.go(LineEnd),
        Command::DeleteBack => editor.delete(Left),
        Command::DeleteForward => editor.delete(Right),
        Command::DeleteWord => editor.delete(WordLeft),
        Command::DeleteToStart => editor.delete(LineStart),
        Command::DeleteToEnd => editor.delete(LineEnd),
        _ => return false,
    }
    true
}
