use crate::commands::Command;
use crate::model::Model;

pub(super) fn perform(model: &mut Model, command: Command) -> bool {
    if !model.is_recalling() {
        return false;
    }
    match command {
        Command::SearchHistory | Command::HistoryBack => model.recall_beside(true),
        Command::HistoryForward => model.recall_beside(false),
        Command::Submit | Command::Complete => model.end_recall(true),
        Command::Leave | Command::Cancel => model.end_recall(false),
        _ => return false,
    }
    true
}
