//! Keys of the search through the sent messages.

use crate::commands::Command;
use crate::model::{Editor, Model, Recall, Recalled, is_recalling};

pub(super) fn begin(model: &mut Model) {
    model.recall = Some(Recall::new(std::mem::take(&mut model.prompt)));
}

pub(super) fn perform(model: &mut Model, command: Command) -> bool {
    if !is_recalling(model) {
        return false;
    }
    match command {
        Command::SearchHistory | Command::HistoryBack => choose(model, true),
        Command::HistoryForward => choose(model, false),
        Command::Submit | Command::Complete => end(model, true),
        Command::Leave | Command::Cancel => end(model, false),
        _ => return false,
    }
    true
}

fn choose(model: &mut Model, older: bool) {
    let beside = Recalled::of(model).map(|recalled| recalled.beside(older));
    if let (Some(recall), Some(beside)) = (&mut model.recall, beside) {
        recall.choose(beside);
    }
}

/// Ends the search. The prompt gets the selected message if `takes` is true, else the text from before the search.
pub(super) fn end(model: &mut Model, takes: bool) {
    let chosen = Recalled::of(model).and_then(|recalled| recalled.chosen_text()).map(str::to_owned);
    let Some(recall) = model.recall.take() else { return };
    model.prompt = chosen.filter(|_| takes).map_or_else(|| recall.into_draft(), Editor::with);
    // A recalled command opens no list, so that the next key still moves through the history.
    model.palette.close();
}
