//! Keys of the list of files, which opens after `@` at the start of a word.

use ipc::id::AgentId;
use protocol::frontend::UserActionKind;

use crate::commands::Command;
use crate::message::Action;
use crate::model::{Model, files};

pub(super) fn perform(model: &mut Model, command: Command) -> bool {
    if !files::are_offered(model) {
        return false;
    }
    let has_choice = model.files.chosen().is_some();
    match command {
        Command::HistoryBack if has_choice => model.files.choose(false),
        Command::HistoryForward if has_choice => model.files.choose(true),
        Command::Submit | Command::Complete if has_choice => take(model),
        Command::Leave => model.files.close(),
        _ => return false,
    }
    true
}

/// Replaces the typed word with the selected file name.
fn take(model: &mut Model) {
    let start = files::mention(model).map(|(start, _)| start);
    if let (Some(name), Some(start)) = (model.files.chosen_mention(), start)
        && let Err(error) = model.prompt.replace_before(start, &name)
    {
        model.remark = Some(error.to_string());
    }
}

/// Records the word at the caret, and requests the file names again if the known ones are old.
pub(super) fn follow(model: &mut Model, actions: &mut Vec<Action>) {
    let word = files::mention(model).map(|(start, word)| (start, word.to_owned()));
    let asks = model.files.follow(word, model.now);
    if asks && !model.over {
        // The main agent can see the whole project, and its worker runs from the start.
        actions.push(Action::User(AgentId::root(), UserActionKind::ListFiles));
    }
}
