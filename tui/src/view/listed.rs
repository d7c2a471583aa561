//! List above the prompt while the person types: commands, files, or sent messages.

use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::model::{Mode, Model, OfferedCommands, Recalled, files, is_recalling, short_help};
use crate::text::{Clusters, SafeText};

/// Column at which the descriptions begin.
const ABOUT: u16 = 28;

/// Column at which the descriptions begin on a narrow screen.
const ABOUT_NARROW: u16 = 18;

/// Width of a screen, in columns, below which it counts as narrow.
const NARROW: u16 = 70;

pub(super) fn palette(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    pane.clear(Style::new());
    if is_recalling(model) {
        return recalled(model, pane, theme);
    }
    if short_help::is_shown(model) {
        return keys(model, pane, theme);
    }
    if files::are_offered(model) {
        return files_found(model, pane, theme);
    }
    let Some(offered) = OfferedCommands::of(model) else { return };
    let (rows, chosen) = (offered.rows(), offered.choice());
    let has_mark = rows.len() > usize::from(pane.height()) && pane.height() > 1;
    let room = pane.height() - u16::from(has_mark);
    let first = (chosen.unwrap_or(0) + 1).saturating_sub(usize::from(room));
    let sign = if model.mode == Mode::Command { ':' } else { '/' };
    let abouts = abouts(pane.width(), rows.iter().map(|row| row.typed));
    for (y, (at, row)) in (0..room).zip(rows.iter().enumerate().skip(first)) {
        let is_chosen = chosen == Some(at);
        let style = if is_chosen { theme.strong() } else { Style::new() };
        if is_chosen {
            pane.put(0, y, "▸", style);
        }
        let typed = SafeText::line(&format!("{sign}{}", row.typed));
        let end = pane.put_cut(2, y, typed.all(), style);
        let about = SafeText::line(row.about);
        pane.put_cut(abouts.max(end + 2), y, about.all(), if is_chosen { style } else { theme.dim() });
    }
    if has_mark {
        let mark = more(first, rows.len() - first - usize::from(room));
        pane.put(2, room, SafeText::line(&mark).all(), theme.dim());
    }
}

/// Returns the column at which the descriptions begin. On a narrow screen, they get at least half of it if possible.
fn abouts<'a>(width: u16, typed: impl Iterator<Item = &'a str>) -> u16 {
    if width >= NARROW {
        return ABOUT;
    }
    let columns = |typed: &str| Clusters::new(typed, 0).map(|cluster| cluster.columns).sum::<usize>();
    let longest = typed.map(columns).max().unwrap_or_default();
    // Five more columns: a mark, a space and the sign before the text, two spaces behind it.
    let behind = u16::try_from(longest + 5).unwrap_or(u16::MAX);
    if behind <= width / 2 { behind.max(ABOUT_NARROW) } else { ABOUT_NARROW }
}

/// Returns the last row of a list with hidden rows: `↓ 7 more`.
fn more(above: usize, below: usize) -> String {
    match (above, below) {
        (above, 0) => format!("↑ {above} more"),
        (0, below) => format!("↓ {below} more"),
        (above, below) => format!("↑ {above} · ↓ {below} more"),
    }
}

fn keys(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    for (y, (key, about)) in (0..pane.height()).zip(short_help::rows(model)) {
        let end = pane.put(2, y, SafeText::line(&key).all(), theme.strong());
        pane.put_cut((ABOUT - 12).max(end + 2), y, about, theme.dim());
    }
}

fn files_found(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let note = model.files.note();
    let room = pane.height().saturating_sub(u16::from(note.is_some()));
    let chosen = model.files.chosen();
    let first = (chosen.unwrap_or(0) + 1).saturating_sub(usize::from(room));
    for (y, (at, name)) in (0..room).zip(model.files.offered().enumerate().skip(first)) {
        let (mark, style) = if chosen == Some(at) { ("▸", theme.strong()) } else { (" ", Style::new()) };
        pane.put(0, y, mark, style);
        pane.put_cut(2, y, SafeText::line(name).all(), style);
    }
    if let Some(note) = note {
        pane.put(2, room, SafeText::line(&note).all(), theme.dim());
    }
}

fn recalled(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    const ROW: usize = 500;
    let Some(recalled) = Recalled::of(model) else { return };
    let (found, chosen) = (recalled.found(), recalled.chosen());
    let room = usize::from(pane.height());
    let first = (chosen + 1).saturating_sub(room);
    for (y, (at, sent)) in (0..pane.height()).rev().zip(found.iter().enumerate().skip(first)) {
        let (mark, style) = if at == chosen { ("▸", theme.strong()) } else { (" ", Style::new()) };
        pane.put(0, y, mark, style);
        let beginning: String = sent.chars().take(ROW).collect();
        pane.put_cut(2, y, SafeText::line(&beginning).all(), style);
    }
}
