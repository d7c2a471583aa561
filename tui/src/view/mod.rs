//! The model, drawn.

use ratatui::Frame;

use crate::model::Model;

/// What a frame put on the screen; goes back by [`Msg::Drawn`](crate::Msg::Drawn) once the frame is flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown(());

/// Draws the model as it is.
pub fn view(model: &Model, frame: &mut Frame<'_>) -> Shown {
    let _ = (model, frame);
    Shown::default()
}
