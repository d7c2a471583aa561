//! A request for an approval: a title, what is to be read, and the keys that count now.

use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use super::{Shown, prompt, rows};
use crate::card::{Card, NotYet, Stage};
use crate::commands::{Command, KeyMode};
use crate::model::{CARD_FRAME, Model, Unfolded};
use crate::text::SafeText;

/// Draws the request before the person; says what of it is on the screen, and where the caret is.
pub(super) fn card(
    model: &Model,
    card: &Card,
    pane: &mut Pane<'_>,
    theme: Theme,
) -> (Shown, Option<(u16, u16)>) {
    pane.clear(Style::new());
    title(model, card, pane, theme);
    let height = pane.height().saturating_sub(CARD_FRAME + card.extra_rows());
    let sheet = card.sheet();
    let (top, rows) = (sheet.top(pane.width(), height), sheet.rows(pane.width()));
    for y in 0..height {
        if let Some(row) = sheet.block.row(top + usize::from(y), pane.width(), Unfolded::default()) {
            rows::draw(pane, y + 1, &sheet.block, row, theme);
        }
    }
    let below = rows.saturating_sub(top + usize::from(height));
    let last = pane.height().saturating_sub(1);
    keys(model, card, (pane, last), below, theme);
    let mark = if matches!(card.stage, Stage::Word(_)) { "a word to the model › " } else { "pattern › " };
    let caret = card.editor().and_then(|editor| {
        let at = (0, last.saturating_sub(1));
        prompt::one_line(pane, at, mark, editor, theme)
    });
    let to_end = (below == 0 && height > 0).then(|| sheet.revision());
    (Shown { card: Some(card.id), whole: height > 0, to_end }, caret)
}

fn title(model: &Model, card: &Card, pane: &mut Pane<'_>, theme: Theme) {
    let left = card.remaining(model.now).as_secs();
    let waiting = match model.cards.len() {
        1 => String::new(),
        all => format!(" · 1 of {all}"),
    };
    let text = format!(" {} · {}:{:02} left{waiting} ", card.title(), left / 60, left % 60);
    let x = pane.put(0, 0, SafeText::line(&text).all(), theme.alarm());
    let dashes = "─".repeat(usize::from(pane.width().saturating_sub(x)));
    pane.put(x, 0, SafeText::prose(&dashes).all(), theme.dim());
}

fn keys(model: &Model, card: &Card, (pane, y): (&mut Pane<'_>, u16), below: usize, theme: Theme) {
    let words = words(model, card, below);
    // Keys that do not count yet look like it.
    let style = if card.is_open(model.now) { theme.strong() } else { theme.dim() };
    let mut x = 0;
    for word in words {
        let text = SafeText::line(&word);
        if x + columns(text.as_str()) > pane.width() {
            break;
        }
        x = pane.put(x, y, text.all(), style);
        x = pane.put(x, y, "  ", style);
    }
}

fn columns(text: &str) -> u16 {
    u16::try_from(text.chars().count()).unwrap_or(u16::MAX)
}

fn words(model: &Model, card: &Card, below: usize) -> Vec<String> {
    let key = |mode, command, word: &str| {
        let keys = model.start.keymap.keys(mode, command);
        keys.first().map(|key| format!("{key} {word}"))
    };
    if card.editor().is_some() {
        return vec!["enter ends the writing".to_owned(), "esc back".to_owned()];
    }
    let rest = (below > 0).then(|| format!("↓ {below} more rows"));
    let unread = card.approvable(model.now) == Err(NotYet::Unread);
    let of = |command, word| key(KeyMode::Approval, command, word);
    match &card.stage {
        Stage::Scope(menu) => {
            let of = |command, word| key(KeyMode::Scope, command, word);
            let longer = menu.has_prefix_chosen().then(|| "←/→ words".to_owned());
            let edit = of(Command::Edit, "edit").filter(|_| menu.has_pattern_chosen());
            [
                rest,
                of(Command::Confirm, "approve so"),
                Some("↑/↓ choose".to_owned()),
                longer,
                edit,
                of(Command::Back, "back"),
            ]
            .into_iter()
            .flatten()
            .collect()
        }
        _ if unread => {
            let read = Some("read to the end to approve".to_owned());
            [
                rest,
                of(Command::Deny, "no"),
                of(Command::DenyWithWord, "no+word"),
                of(Command::Whole, "whole"),
                read,
            ]
            .into_iter()
            .flatten()
            .collect()
        }
        _ => [
            of(Command::ApproveOnce, "once"),
            of(Command::ApproveSession, "session"),
            of(Command::Deny, "no"),
            of(Command::DenyWithWord, "no+word"),
            rest,
            of(Command::Abort, "stop"),
            of(Command::Whole, "whole"),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

/// The first key of a command on a request.
pub(super) fn key_of(model: &Model, command: Command) -> String {
    model.start.keymap.keys(KeyMode::Approval, command).into_iter().next().unwrap_or_default()
}
