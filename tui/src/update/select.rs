use super::{scrolled, walk};
use crate::commands::Command;
use crate::message::{Action, Copied};
use crate::model::{CursorMove, Look, Mode, Model, Shape, Stop};

pub(super) fn begin(model: &mut Model, shape: Shape) {
    let size = walk::size(model);
    let transcript = &mut model.agents.shown_mut().transcript;
    if model.mode == Mode::Select {
        transcript.set_selection_shape(shape);
    } else if transcript.begin_selection(shape, size) {
        model.mode = Mode::Select;
    } else {
        model.answer(Look::Notice, "there is no text to select");
    }
}

pub(super) fn walk(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let size = walk::size(model);
    let transcript = &mut model.agents.shown_mut().transcript;
    if let Some(by) = moved(command, size.1) {
        return transcript.move_cursor(by, size);
    }
    match command {
        Command::SelectCharacters => transcript.set_selection_shape(Shape::Characters),
        Command::SelectLines => transcript.set_selection_shape(Shape::Lines),
        Command::SelectColumns => transcript.set_selection_shape(Shape::Columns),
        Command::OtherEnd => transcript.swap_ends(size),
        Command::SelectAround => transcript.select_around(size),
        Command::CopySelection => copy(model, actions),
        Command::Repaint => actions.push(Action::Repaint),
        _ => close(model),
    }
}

pub(super) fn copy(model: &mut Model, actions: &mut Vec<Action>) {
    let (width, _) = walk::size(model);
    let text = model.agents.shown().transcript.selected_text(width);
    close(model);
    match text.filter(|text| !text.is_empty()) {
        Some(text) => super::copy::copy(Copied::Selection, &text, actions),
        None => model.answer(Look::Notice, "the selection has no text to copy"),
    }
}

pub(super) fn close(model: &mut Model) {
    model.agents.shown_mut().transcript.end_selection();
    if model.mode == Mode::Select {
        model.mode = model.came_from;
    }
}

fn moved(command: Command, height: u16) -> Option<CursorMove> {
    Some(match command {
        Command::Left => CursorMove::Column { right: false },
        Command::Right => CursorMove::Column { right: true },
        Command::WordLeft => CursorMove::Word { right: false },
        Command::WordRight => CursorMove::Word { right: true },
        Command::LineStart => CursorMove::LineStart,
        Command::LineEnd => CursorMove::LineEnd,
        Command::PreviousMessage => CursorMove::To { stop: Stop::Message, down: false },
        Command::NextMessage => CursorMove::To { stop: Stop::Message, down: true },
        Command::PreviousOutput => CursorMove::To { stop: Stop::Output, down: false },
        Command::NextOutput => CursorMove::To { stop: Stop::Output, down: true },
        command => CursorMove::Rows(scrolled(command, height)?),
    })
}
