use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use super::{Shown, prompt, rows};
use crate::card::{Card, DroppedKey, LAST_MINUTE, Stage, hints};
use crate::model::{Model, Unfolded};
use crate::text::SafeText;

pub(super) fn card(
    model: &Model,
    card: &Card,
    pane: &mut Pane<'_>,
    theme: Theme,
) -> (Shown, Option<(u16, u16)>) {
    pane.clear(Style::new());
    title(model, card, pane, theme);
    let keymap = &model.start.keymap;
    let height = pane.height() - card.frame_rows(keymap, (pane.width(), pane.height()));
    let sheet = card.sheet();
    let (top, rows) = (sheet.top(pane.width(), height), sheet.rows(pane.width()));
    for y in 0..height {
        if let Some(row) = sheet.block.row(top + usize::from(y), pane.width(), Unfolded::default()) {
            rows::draw(pane, y + 1, &sheet.block, row, keymap, theme, Style::new());
        }
    }
    let below = rows.saturating_sub(top + usize::from(height));
    let editor_row = height + 1;
    let editor_rows = card.editor_rows((pane.width(), pane.height()));
    let first = editor_row + editor_rows;
    keys(model, card, pane, first, below, theme);
    let mark = SafeText::line(&mark(card));
    let caret = card
        .editor()
        .and_then(|editor| prompt::marked(pane, (0, editor_row), mark.all(), editor, editor_rows, theme));
    let to_end = (below == 0 && height > 0).then(|| sheet.revision());
    (Shown { card: Some(card.number()), whole: height > 0, to_end, plain: false }, caret)
}

fn mark(card: &Card) -> String {
    match (&card.stage, &card.comments) {
        (Stage::Comments, Some(comments)) => comments.mark(),
        (Stage::Form, _) => card.form.as_ref().map(crate::card::FormDraft::mark).unwrap_or_default(),
        (Stage::Steps, _) => card.steps.as_ref().map_or("", |steps| steps.mark()).to_owned(),
        (Stage::Word(_), _) => "no, because › ".to_owned(),
        _ => "pattern › ".to_owned(),
    }
}

fn title(model: &Model, card: &Card, pane: &mut Pane<'_>, theme: Theme) {
    let dropped = card.dropped().map(|dropped| match dropped {
        DroppedKey::TooEarly(key) => format!("too early: {}", key.label()),
        DroppedKey::WithoutMeaning(key) => format!("{} does nothing here", key.label()),
    });
    let remarks = [dropped, time_left(model, card), place_in_queue(model)];
    let remarks: Vec<_> = remarks.into_iter().flatten().collect();
    let remarks = if remarks.is_empty() { String::new() } else { format!(" {}", remarks.join(" · ")) };
    let columns = u16::try_from(remarks.chars().count()).unwrap_or(u16::MAX);
    let right = pane.width().saturating_sub(columns);
    let text = format!(" {} ", card.title.within(usize::from(right.saturating_sub(3))));
    let x = pane.put(
        0,
        0,
        SafeText::line(&text).all(),
        if card.is_about_denial() { theme.open() } else { theme.alarm() },
    );
    let dashes = "─".repeat(usize::from(right.saturating_sub(x)));
    pane.put(x, 0, SafeText::prose(&dashes).all(), theme.dim());
    pane.put(right, 0, SafeText::line(&remarks).all(), theme.strong());
}

/// Returns the time that is left for an answer, in words; `None` before the last minute.
fn time_left(model: &Model, card: &Card) -> Option<String> {
    let left = card.remaining(model.now);
    (left <= LAST_MINUTE).then(|| format!("0:{:02} left", left.as_secs().min(59)))
}

/// Returns the position of the shown request among those answered and open, such as `2 of 3`; `None` for a single one.
fn place_in_queue(model: &Model) -> Option<String> {
    let (place, all) = (model.answered + 1, model.answered + model.cards.len());
    (all > 1).then(|| format!("{place} of {all}"))
}

fn keys(model: &Model, card: &Card, pane: &mut Pane<'_>, first: u16, below: usize, theme: Theme) {
    let hints = hints::hints(card, &model.start.keymap, below, pane.width());
    // While keys do not count yet, they are drawn without emphasis.
    let style = if card.is_open(model.now) { theme.strong() } else { Style::new() };
    for (y, row) in (first..).zip(hints::laid(&hints, pane.width())) {
        let mut x = 0;
        for hint in row {
            let text = SafeText::line(&hint.text);
            x = pane.put(x, y, text.slice(0..hint.strong), style);
            x = pane.put(x, y, text.slice(hint.strong..text.len()), Style::new()) + hints::APART;
        }
    }
}
