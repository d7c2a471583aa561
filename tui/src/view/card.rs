//! A request for an approval: a title, what is to be read, and the keys that count now.

use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use super::{Shown, prompt, rows};
use crate::card::{Card, Menu, NotYet, Stage};
use crate::commands::{Command, KeyMode};
use crate::keymap::Keymap;
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
            rows::draw(pane, y + 1, (&sheet.block, row), &model.start.keymap, theme);
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
    let open = card.is_open(model.now);
    let (style, word_style) = if open { (theme.strong(), Style::new()) } else { (theme.dim(), theme.dim()) };
    let mut x = 0;
    for word in words {
        let text = SafeText::line(&word);
        if x + columns(text.as_str()) > pane.width() {
            break;
        }
        let key = text.as_str().find(' ').unwrap_or(text.len());
        x = pane.put(x, y, text.slice(0..key), style);
        x = pane.put(x, y, text.slice(key..text.len()), word_style);
        x = pane.put(x, y, "  ", word_style);
    }
}

fn columns(text: &str) -> u16 {
    u16::try_from(text.chars().count()).unwrap_or(u16::MAX)
}

/// The keys that count now, each with its word; the first ones matter most.
fn words(model: &Model, card: &Card, below: usize) -> Vec<String> {
    let rest = (below > 0).then(|| format!("↓ {below} more rows"));
    let keys = Keys { keymap: &model.start.keymap };
    let words = match &card.stage {
        _ if card.editor().is_some() => keys.writing(),
        Stage::Scope(menu) => keys.choosing(menu, rest),
        _ if card.approvable(model.now) == Err(NotYet::Unread) => keys.reading(rest),
        _ => keys.deciding(rest),
    };
    words.into_iter().flatten().collect()
}

/// Keys with words, where they have a key.
struct Keys<'a> {
    keymap: &'a Keymap,
}

impl Keys<'_> {
    fn key(&self, mode: KeyMode, command: Command, word: &str) -> Option<String> {
        let key = self.keymap.hint(mode, command);
        (!key.is_empty()).then(|| format!("{key} {word}"))
    }

    fn pair(&self, first: Command, second: Command, word: &str) -> Option<String> {
        let [first, second] = [first, second].map(|command| self.keymap.hint(KeyMode::Scope, command));
        (!first.is_empty() && !second.is_empty()).then(|| format!("{first}/{second} {word}"))
    }

    fn writing(&self) -> Vec<Option<String>> {
        let key = |command, word| self.key(KeyMode::Insert, command, word);
        vec![key(Command::Submit, "ends the writing"), key(Command::Leave, "back")]
    }

    fn choosing(&self, menu: &Menu, rest: Option<String>) -> Vec<Option<String>> {
        let key = |command, word| self.key(KeyMode::Scope, command, word);
        vec![
            rest,
            key(Command::Confirm, "approve so"),
            self.pair(Command::LineDown, Command::LineUp, "choose"),
            self.pair(Command::Shorter, Command::Longer, "words").filter(|_| menu.has_prefix_chosen()),
            key(Command::Edit, "edit").filter(|_| menu.has_pattern_chosen()),
            key(Command::Back, "back"),
        ]
    }

    fn reading(&self, rest: Option<String>) -> Vec<Option<String>> {
        let key = |command, word| self.key(KeyMode::Approval, command, word);
        vec![
            rest,
            key(Command::Deny, "no"),
            key(Command::DenyWithWord, "no+word"),
            key(Command::Whole, "whole"),
            Some("read to the end to approve".to_owned()),
        ]
    }

    fn deciding(&self, rest: Option<String>) -> Vec<Option<String>> {
        let key = |command, word| self.key(KeyMode::Approval, command, word);
        vec![
            key(Command::ApproveOnce, "once"),
            key(Command::ApproveSession, "session"),
            key(Command::Deny, "no"),
            key(Command::DenyWithWord, "no+word"),
            rest,
            key(Command::Abort, "stop"),
            key(Command::Whole, "whole"),
        ]
    }
}
