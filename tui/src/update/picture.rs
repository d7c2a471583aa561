//! Pictures from the clipboard (Ctrl+V), and from a path that was pasted.

use ipc::image::Image;

use crate::commands::{Command, KeyMode};
use crate::message::Action;
use crate::model::{Dropped, Editor, Look, Mode, Model, path_in};

/// The picture whose path was pasted replaces the path; otherwise the one in the clipboard.
pub(super) fn paste(model: &mut Model, actions: &mut Vec<Action>) {
    if let Some(Dropped { text, image }) = model.dropped.take()
        && let Some((before, after)) = model.prompt.text().split_once(&text)
    {
        model.prompt = Editor::with(format!("{before}{}", after.trim_start()));
        return model.attached.push(image);
    }
    actions.push(Action::AttachClipboard);
}

/// For a paste that may be a path.
pub(super) fn pasted(model: &mut Model, text: &str, actions: &mut Vec<Action>) {
    model.dropped = None;
    if model.mode == Mode::Insert
        && let Some(path) = path_in(text)
    {
        actions.push(Action::FindPicture { text: text.trim().to_owned(), path });
    }
}

/// Offers a picture that was found.
pub(super) fn found(model: &mut Model, text: String, image: Image) -> bool {
    let key = model.start.keymap.hint(KeyMode::Insert, Command::PastePicture);
    model.answer(Look::Notice, &format!("{key} attaches this picture instead of its path: {image}"));
    model.dropped = Some(Dropped { text, image });
    true
}
