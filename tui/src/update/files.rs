//! Keys of the file list that opens after `@` at the start of a word.

use ipc::id::AgentId;
use protocol::frontend::UserActionKind;

use crate::commands::Command;
use crate::message::Action;
use crate::model::Model;

pub(super) fn perform(model: &mut Model, command: Command) -> bool {
    if !model.offers_files() {
        return false;
    }
    let has_choice = model.chosen_file().is_some();
    match command {
        Command::HistoryBack if has_choice => model.choose_file(false),
        Command::HistoryForward if has_choice => model.choose_file(true),
        Command::Submit | Command::Complete if has_choice => model.take_file(),
        Command::Leave => model.close_files(),
        _ => return false,
    }
    true
}

/// Requests new file names if needed.
pub(super) fn follow(model: &mut Model, actions: &mut Vec<Action>) {
    let word = model.mention().map(|(start, word)| (start, word.to_owned()));
    let asks = model.files.follow(word, model.now);
    if asks && !model.over {
        // The first agent can see the whole project, and its worker runs from the start.
        actions.push(Action::User(AgentId::root(), UserActionKind::ListFiles));
    }
}
