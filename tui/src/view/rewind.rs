use protocol::event::RewindTarget;
use ratatui::style::Style;

use super::pane::Pane;
use super::rows;
use super::theme::Theme;
use crate::commands::{Command, KeyMode};
use crate::model::{Model, Unfolded, plan_rows};
use crate::text::SafeText;

pub(super) fn view(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let sheet = &model.rewind.sheet;
    let rows = plan_rows(pane.height());
    let top = sheet.top(pane.width(), rows);
    for y in 0..rows {
        if let Some(row) = sheet.block.row(top + usize::from(y), pane.width(), Unfolded::default()) {
            rows::draw(pane, y, &sheet.block, row, &model.start.keymap, theme, Style::new());
        }
    }
    let below = sheet.rows(pane.width()).saturating_sub(top + usize::from(rows));
    let more = match below {
        0 => String::new(),
        1 => "1 more line  ".to_owned(),
        below => format!("{below} more lines  "),
    };
    pane.put(0, rows, SafeText::line(&format!("{more}{}", hints(model))).all(), theme.dim());
}

fn hints(model: &Model) -> String {
    let key = |command| model.start.keymap.hint(KeyMode::Rewind, command);
    let close = key(Command::CloseRewind);
    let named = |pairs: &[(Command, &str)]| {
        pairs.iter().map(|(command, word)| format!("{} {word}", key(*command))).collect::<Vec<_>>().join("  ")
    };
    let scopes = [
        (Command::RewindBoth, "both"),
        (Command::RewindFiles, "files"),
        (Command::RewindConversation, "conversation"),
    ];
    match (&model.rewind.asked, model.rewind.is_known()) {
        (Some(_), true) if model.rewind.turn.is_some() => {
            format!("{}  {close} keep the changes", named(&[(Command::ConfirmRewind, "undo the whole turn")]))
        }
        (None, _) => {
            let first = [
                (Command::RewindTo, "show what would change"),
                (Command::UndoRewind, "undo the last rewind"),
            ];
            format!("{}  {close} close", named(&first))
        }
        (Some(_), false) => format!("{close} back"),
        (Some(RewindTarget { to, .. }), true) if to.is_none() || !model.rewind.only.is_empty() => {
            format!("{}  {close} back", named(&[(Command::ConfirmRewind, "restore")]))
        }
        (Some(_), true) => {
            format!("{}  {}  {close} back", named(&[(Command::ConfirmRewind, "restore")]), named(&scopes))
        }
    }
}
