//! Pictures that are attached to a message: from the clipboard (Ctrl+V), or from a pasted path.

use ipc::image::Image;

use crate::commands::{Command, KeyMode};
use crate::message::Action;
use crate::model::{Dropped, Editor, Look, Mode, Model, path_in};

/// Attaches the picture whose path was pasted, in place of the path; else requests the picture in the clipboard.
pub(super) fn paste(model: &mut Model, actions: &mut Vec<Action>) {
    if let Some(Dropped { text, image }) = model.dropped.take()
        && let Some((before, after)) = model.prompt.text().split_once(&text)
    {
        model.prompt = Editor::with(format!("{before}{}", after.trim_start()));
        return model.attached.push(image);
    }
    actions.push(Action::AttachClipboard);
}

/// Requests the picture at a pasted path. Does nothing if the paste is not the path of a picture.
pub(super) fn pasted(model: &mut Model, text: &str, actions: &mut Vec<Action>) {
    model.dropped = None;
    if model.mode == Mode::Insert
        && let Some(path) = path_in(text)
    {
        actions.push(Action::FindPicture { text: text.trim().to_owned(), path });
    }
}

/// Offers to attach a picture that was found at a pasted path.
pub(super) fn found(model: &mut Model, text: String, image: Image) -> bool {
    let key = model.start.keymap.hint(KeyMode::Insert, Command::PastePicture);
    model.answer(Look::Notice, &format!("{key} attaches this picture instead of its path: {image}"));
    model.dropped = Some(Dropped { text, image });
    true
}
